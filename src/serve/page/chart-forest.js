// Forest plot of lifts: one line per metric and arm, from the latest look.

import { $, attribute, keyed, stamp, text } from "./document.js";
import { inOrder } from "./looks.js";
import { digitsOf, nameOf, percentage, signed, visible } from "./words.js";

/** Intervals wider than this many times the median one are cut off at the edge. */
const WIDEST = 3;
const PHONE = matchMedia("(max-width: 30rem)");
const SVG = "http://www.w3.org/2000/svg";

/** Draws the comparisons of `arms` with their control, or hides the figure if none has a lift. */
export function drawForest(figure, { compared_with: control, context }, arms, colourOf) {
  const rows = arms.flatMap(({ name, comparison }) =>
    Object.entries(comparison?.metrics ?? {})
      .filter(([, { lift }]) => lift !== undefined)
      .map(([key, it]) => ({ ...it, key, arm: name, colour: colourOf(name) })),
  );
  figure.hidden = rows.length === 0;
  if (figure.hidden) return;
  const edge = edgeOf(rows);
  text($("caption bdi", figure), visible(control ?? ""));
  const groups = [...Map.groupBy(rows, ({ key }) => key)].map(([key, rows]) => ({ key, role: rows[0].role, rows, edge }));
  keyed($("table", figure), inOrder(groups, context.order), ({ key }) => key, group);
  drawAxis($(".axis", figure), edge);
}

/** Extent of the axis to both sides. */
function edgeOf(rows) {
  const ends = rows.map(({ lift, lower = lift, upper = lift }) => Math.max(Math.abs(lower), Math.abs(upper))).sort((a, b) => a - b);
  const middle = ends[Math.floor(ends.length / 2)];
  const widest = Math.min(ends.at(-1), WIDEST * middle);
  return Math.max(widest * 1.05, 0.001);
}

function group({ key }) {
  const node = document.createElement("tbody");
  const head = document.createElement("tr");
  const name = document.createElement("th");
  Object.assign(name, { scope: "rowgroup", colSpan: 3 });
  const words = document.createElement("span");
  const badge = document.createElement("span");
  badge.className = "role";
  text(words, nameOf(key));
  name.append(words, " ", badge);
  head.append(name);
  node.append(head);
  return {
    node,
    draw({ role, rows, edge }) {
      text(badge, role === "secondary" ? "" : role);
      keyed(node, rows.map((row) => ({ ...row, edge })), ({ arm }) => arm, lineOf);
    },
  };
}

function lineOf({ key, arm }) {
  const node = stamp("forest-line");
  attribute(node, "data-metric", key);
  attribute(node, "data-arm", arm);
  text($("bdi", node), visible(arm));
  return {
    node,
    draw({ lift, lower, upper, guardrail, colour, edge }) {
      $(".swatch", node).dataset.colour = colour;
      const place = (it) => `${(50 + (50 * Math.max(-edge, Math.min(edge, it))) / edge).toFixed(2)}%`;
      const bar = $(".bar", node);
      bar.toggleAttribute("hidden", lower === undefined);
      if (lower !== undefined) for (const [name, it] of [["x1", place(lower)], ["x2", place(upper)]]) attribute(bar, name, it);
      attribute($("circle", node), "cx", place(lift));
      const margin = $(".margin", node);
      margin.toggleAttribute("hidden", guardrail === undefined);
      // The margin lies on the side of the worst lift.
      const end = guardrail && place(guardrail.bound > lift ? guardrail.margin : -guardrail.margin);
      if (guardrail) for (const name of ["x1", "x2"]) attribute(margin, name, end);
      attribute($("svg", node), "data-colour", colour);
      const isSure = lower !== undefined && (lower > 0 || upper < 0);
      node.classList.toggle("sure", isSure);
      text($(".lift", node), signed(lift, percentage));
      text($(".interval", node), lower === undefined ? "no interval yet" : `${signed(lower, percentage)} to ${signed(upper, percentage)}`);
    },
  };
}

function drawAxis(axis, edge) {
  const step = niceStep(PHONE.matches ? edge * 0.75 : edge / 2);
  const n = PHONE.matches ? 1 : Math.floor((edge * 0.95) / step);
  const ticks = Array.from({ length: 2 * n + 1 }, (_, i) => (i - n) * step).filter((at) => at !== 0 || !PHONE.matches);
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
      text(node, signed(at, (it) => percentage(it, digits)));
    },
  };
}

function niceStep(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return [5, 2, 1].map((it) => it * power).find((it) => it <= most);
}
