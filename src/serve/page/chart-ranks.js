// CTR by rank: a row for the ranks between two cut-offs, a dot for each arm.

import { $, attribute, keyed, text } from "./document.js";
import { percentage, visible } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

/** Draws the settled lists in the cells of a window, if CTR is measured at a cut-off. */
export function drawRanks(figure, { ranks = [], arms: all, window }, colourOf) {
  const arms = all.filter((arm) => arm.by_rank?.some((it) => it !== null)).map((arm) => ({ ...arm, colour: colourOf(arm.name) }));
  figure.hidden = ranks.length === 0 || arms.length === 0;
  if (figure.hidden) return;
  text($("caption .of", figure), `of final lists, in the last ${window}`);
  const highest = Math.max(...arms.flatMap((arm) => arm.by_rank)) || 1;
  text($(".scale", figure), `0 to ${percentage(highest, 2)}`);
  keyed($("thead tr", figure), arms, ({ name }) => name, head);
  const rows = ranks.map((it, i) => ({ ranks: it, i, arms, highest })).filter(({ i }) => arms.some((arm) => arm.by_rank[i] !== null));
  keyed($("tbody", figure), rows, ({ ranks: { from } }) => from, row);
}

function head({ name }) {
  const node = document.createElement("th");
  const [swatch, bdi] = ["span", "bdi"].map((tag) => document.createElement(tag));
  node.scope = "col";
  swatch.className = "swatch";
  text(bdi, visible(name));
  node.append(swatch, " ", bdi);
  return { node, draw: ({ colour }) => (swatch.dataset.colour = colour) };
}

function row() {
  const node = document.createElement("tr");
  const [name, drawn] = ["th", "td"].map((tag) => document.createElement(tag));
  const svg = document.createElementNS(SVG, "svg");
  name.scope = "row";
  drawn.className = "drawn";
  attribute(svg, "aria-hidden", "true");
  drawn.append(svg);
  node.append(name, drawn);
  return {
    node,
    draw({ ranks: { from, to }, i, arms, highest }) {
      text(name, to === from ? `${from}` : to === null ? `${from} and below` : `${from} to ${to}`);
      const dots = arms.filter((arm) => arm.by_rank[i] !== null).map(({ name, colour, by_rank: values }) => ({ name, colour, at: values[i] / highest }));
      keyed(svg, dots, (dot) => dot.name, dotOf);
      keyed(node, arms.map((arm) => ({ name: arm.name, value: arm.by_rank[i] })), (it) => it.name, cell);
    },
  };
}

function dotOf() {
  const node = document.createElementNS(SVG, "circle");
  for (const [name, it] of Object.entries({ cy: "50%", r: 4 })) attribute(node, name, it);
  return {
    node,
    draw({ colour, at }) {
      attribute(node, "data-colour", colour);
      attribute(node, "cx", `${(2 + 96 * at).toFixed(2)}%`);
    },
  };
}

function cell({ name }) {
  const node = document.createElement("td");
  attribute(node, "data-arm", name);
  return { node, draw: ({ value }) => text(node, value === null ? "–" : percentage(value, 2)) };
}
