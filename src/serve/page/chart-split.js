// Split of the traffic: each arm's planned share next to its actual one.

import { $, attribute, keyed, stamp, text } from "./document.js";
import { count, percentage, visible } from "./words.js";

/** Counts users if they are known, else lists: all settled ones up to the latest look, or those in the table's window before the first look. */
export function drawSplit(figure, { arms: charted, split }, arms, colourOf) {
  const unit = split === undefined || split.users === undefined ? "lists" : "users";
  const listsOf = ({ live, settled }) => (settled ?? live)?.lists ?? 0;
  const own = split === undefined ? arms.map((arm) => ({ name: arm.name, n: listsOf(arm) })) : charted.map((arm) => ({ ...arm, n: arm[unit] ?? 0 }));
  const all = split === undefined ? own.reduce((sum, { n }) => sum + n, 0) : split[unit];
  const planned = own.reduce((sum, it) => sum + (it.planned ?? 0), 0);
  figure.hidden = all === 0;
  if (figure.hidden) return;
  text($("caption .unit", figure), unit);
  text($("caption .of", figure), split === undefined ? "in the window of the table" : "of all final lists up to the latest analysis");
  figure.classList.toggle("unplanned", planned === 0);
  const hasShare = ({ planned: share }) => planned === 0 || share !== undefined;
  const rows = own.map((arm) => ({ ...arm, seen: hasShare(arm) ? arm.n / all : null, unit, colour: colourOf(arm.name) }));
  const widest = Math.max(...rows.map(({ seen, planned = 0 }) => Math.max(seen ?? 0, planned)));
  keyed($("tbody", figure), rows.map((row) => ({ ...row, widest })), ({ name }) => name, row);
}

function row({ name }) {
  const node = stamp("split-line");
  attribute(node, "data-arm", name);
  text($("bdi", node), visible(name));
  return {
    node,
    draw({ planned, seen, n, unit, colour, widest }) {
      $(".swatch", node).dataset.colour = colour;
      attribute($("svg", node), "data-colour", colour);
      attribute($("rect", node), "width", `${((96 * (seen ?? 0)) / widest).toFixed(2)}%`);
      const plan = $("line", node);
      plan.toggleAttribute("hidden", planned === undefined);
      for (const name of ["x1", "x2"]) attribute(plan, name, `${((96 * (planned ?? 0)) / widest).toFixed(2)}%`);
      text($(".planned", node), planned === undefined ? "–" : percentage(planned));
      text($(".seen", node), seen === null ? "no share" : percentage(seen));
      text($(".n", node), `${count(n)} ${unit}`);
    },
  };
}
