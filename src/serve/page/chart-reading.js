// Text alternatives of a chart: a key of its arms with the values at one place, and a table of all values.

import { $, attribute, keyed, text } from "./document.js";
import { visible } from "./words.js";

/** Draws the key. `said(arm)` is the text for an arm. */
export function drawKey(list, arms, said) {
  keyed(list, arms.map((arm) => ({ arm, said: said(arm) })), ({ arm }) => arm.name, keyOf);
}

/** Draws a row per place and a column per arm. `said(arm, place)` is the text of a cell. */
export function drawTable(table, { arms, x, placeOf, title }, said) {
  text($("caption", table), title);
  keyed($("thead tr", table), arms, ({ name }) => name, nameOf);
  const rows = x.map((at, i) => ({ at, time: placeOf(i), cells: arms.map((arm) => said(arm, i)) }));
  keyed($("tbody", table), rows, ({ at }) => at, rowOf);
}

function keyOf({ arm: { name } }) {
  const node = document.createElement("li");
  const [swatch, bdi, value] = ["span", "bdi", "span"].map((tag) => document.createElement(tag));
  swatch.className = "swatch";
  value.className = "said";
  text(bdi, visible(name));
  attribute(node, "data-arm", name);
  node.append(swatch, " ", bdi, " ", value);
  return {
    node,
    draw({ arm: { colour }, said }) {
      attribute(swatch, "data-colour", colour);
      text(value, said);
    },
  };
}

function nameOf({ name }) {
  const node = document.createElement("th");
  const bdi = document.createElement("bdi");
  node.scope = "col";
  text(bdi, visible(name));
  node.append(bdi);
  return { node, draw() {} };
}

function rowOf() {
  const node = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  node.append(head);
  const cell = () => {
    const cell = document.createElement("td");
    return { node: cell, draw: ({ said }) => text(cell, said) };
  };
  return {
    node,
    draw({ time, cells }) {
      text(head, time);
      keyed(node, cells.map((said, i) => ({ said, i })), ({ i }) => i, cell);
    },
  };
}
