// Shows the time when numbers of an experiment start to be final, and the progress until then.

import { $, attribute, note } from "./document.js";
import { near, percentage } from "./words.js";

export function drawSettling(node, { arms, context: { stream, views } }) {
  const begin = views.includes("settled") && arms.length > 0 && arms.every(({ settled }) => settled === undefined) ? beginOf(arms, stream) : null;
  node.hidden = begin === null;
  if (begin === null) return;
  const { live_end_ms: end, settle_after_ms: after } = stream;
  const share = Math.max(0, Math.min(1, 1 - (begin - end) / after));
  note($("span", node), `Nothing is final yet. Final numbers start at ${near(begin, end)}, when the first lists can get no more clicks: ${percentage(share, 0)} of the way.`);
  const progress = $("progress", node);
  progress.value = share;
  attribute(progress, "data-begin", begin);
}

/** Returns the time when the first lists settle, or null if unknown because they may be older than the window. */
function beginOf(arms, { live_end_ms: end, settled_end_ms: settled, since_ms: since, settle_after_ms: after }) {
  const lines = arms.map(({ live }) => live?.line).filter((line) => line?.lists.some((n) => n > 0));
  if (lines.length === 0 || end == null) return null;
  const firsts = lines.map(({ start_ms: start, cell_ms: cell, lists }) => start + lists.findIndex((n) => n > 0) * cell);
  // A cell may begin before all events.
  const first = Math.max(Math.min(...firsts), since ?? 0, settled ?? 0);
  return first + after > end ? first + after : null;
}
