// One line per experiment: how long it has run, how much of the data for a decision is there, when it ends, and when it was decided.

import { $, text } from "./document.js";
import { DECIDED, date, number, percentage, some, span } from "./words.js";

const DAY_MS = 86_400_000;

/** Draws the facts of the latest analysis about the arm of the sentence. Unknown ones are left out. */
export function drawProgress(node, { verdict, looks, arms }) {
  const asOf = looks?.as_of ?? null;
  node.hidden = asOf === null;
  if (asOf === null) return;
  const comparison = arms.find(({ name }) => name === verdict.arm)?.comparison;
  const collected = comparison?.waits_for?.information;
  const [before, after] = node.querySelectorAll("span");
  const rest = [...needed(comparison?.waits_for), ...ends(comparison, asOf), ...since(comparison)].join(" · ");
  const bar = $("progress", node);
  bar.hidden = collected === undefined;
  bar.value = Math.min(1, collected ?? 0);
  text(before, `${age(asOf - looks.start)}${rest === "" ? "" : " ·"}`);
  text(after, rest);
}

function age(ms) {
  return `${ms < 2 * DAY_MS ? span(ms / 1000) : `${number(ms / DAY_MS, 1)} days`} since the start`;
}

function needed(waits) {
  if (waits?.information === undefined) return [];
  const left = waits.days_needed === undefined ? 0 : Math.ceil(waits.days_needed - waits.days);
  const enough = waits.information >= 1 ? "all" : percentage(waits.information, 0);
  return [`${enough} of the data for a decision`, ...(left > 0 ? [`about ${some(left, "day")} to go`] : [])];
}

function ends(comparison, asOf) {
  const end = comparison?.planned_end;
  if (end === undefined) return [];
  return [end > asOf ? `planned end ${date(end)}` : `planned end was ${date(end)}`];
}

/** Day of the decision that holds, or of the first harm. Other states have no known begin. */
function since(comparison) {
  const metrics = Object.values(comparison?.metrics ?? {});
  const first = (times) => times.filter((at) => at !== undefined).sort((a, b) => a - b).slice(0, 1).map(date);
  if (DECIDED.includes(comparison?.state)) return first(metrics.map(({ decision }) => decision?.at)).map((day) => `decided ${day}`);
  if (comparison?.state === "harm") return first(metrics.map(({ harm_since: at }) => at)).map((day) => `harm found ${day}`);
  return [];
}
