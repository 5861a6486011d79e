// Intervals drawn as bars with one scale: a line from the lower to the upper end, a dot for the lift, and a line at zero.

import { $, attribute, keyed, text } from "./document.js";
import { digitsOf, percentage, signed } from "./words.js";

/** Intervals wider than this many times the median one are cut off at the edge. */
const WIDEST = 3;
const SVG = "http://www.w3.org/2000/svg";

/** Extent of the scale to both sides of zero, for these results. Those without a lift are ignored. */
export function edgeOf(results) {
  const known = results.filter(({ lift }) => lift !== undefined);
  const ends = known.map(({ lift, lower = lift, upper = lift }) => Math.max(Math.abs(lower), Math.abs(upper))).sort((a, b) => a - b);
  const middle = ends[Math.floor(ends.length / 2)] ?? 0;
  return Math.max(Math.min(ends.at(-1) ?? 0, WIDEST * middle) * 1.05, 0.001);
}

/** Draws a bar, or nothing without an interval. A guardrail has a tick at its margin. */
export function drawBar(svg, { lift, lower, upper, guardrail }, edge) {
  const place = (it) => `${(50 + (50 * Math.max(-edge, Math.min(edge, it))) / edge).toFixed(2)}%`;
  const isKnown = lift !== undefined && lower !== undefined;
  svg.toggleAttribute("hidden", !isKnown);
  if (!isKnown) return;
  const bar = $(".bar", svg);
  attribute(bar, "x1", place(lower));
  attribute(bar, "x2", place(upper));
  attribute($("circle", svg), "cx", place(lift));
  const margin = $(".margin", svg);
  margin.toggleAttribute("hidden", guardrail === undefined);
  if (guardrail === undefined) return;
  // The margin lies on the side of the worst lift.
  const at = place(guardrail.bound > lift ? guardrail.margin : -guardrail.margin);
  for (const name of ["x1", "x2"]) attribute(margin, name, at);
}

export function drawAxis(axis, edge) {
  const step = niceStep(edge * 0.75);
  const ticks = [-step, 0, step];
  const digits = digitsOf(step * 100);
  keyed(axis, ticks.map((at) => ({ at, edge, digits })), ({ at }) => at.toFixed(6), tick);
}

function tick() {
  const node = document.createElementNS(SVG, "text");
  attribute(node, "text-anchor", "middle");
  attribute(node, "y", "12");
  return {
    node,
    draw({ at, edge, digits }) {
      attribute(node, "x", `${(50 + (50 * at) / edge).toFixed(2)}%`);
      text(node, at === 0 ? "0" : signed(at, (it) => percentage(it, digits)));
    },
  };
}

function niceStep(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return [5, 2, 1].map((it) => it * power).find((it) => it <= most);
}
