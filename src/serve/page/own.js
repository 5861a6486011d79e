// Results of the latest look for arms that are not compared: the value and interval of every selected metric.

import { $, attribute, hintAtMore, keyed, stamp, text } from "./document.js";
import { drawValue } from "./why.js";
import { count, visible } from "./words.js";

let tables = 0;

/** Draws the table into `place`, or removes it if there are no rows. */
export function drawOwn(place, arms, { metrics }) {
  keyed(place, arms.length > 0 ? [{ arms, metrics }] : [], () => "own", ownTable);
}

function ownTable({ arms: [{ experiment }] }) {
  const node = stamp("own");
  const caption = $("caption", node);
  caption.id = `own-${tables++}`;
  text($("bdi", caption), visible(experiment));
  const region = $("[role=region]", node);
  attribute(region, "aria-labelledby", caption.id);
  hintAtMore(region);
  return {
    node,
    draw({ arms, metrics }) {
      const bases = [{ key: "lists", name: "lists" }, { key: "users", name: "users" }];
      const counted = bases.filter(({ key }) => arms.some(({ own }) => own[key] !== undefined));
      const columns = [...counted, ...metrics.map((metric) => ({ ...metric, key: metric.id + metric.k, isMetric: true }))];
      keyed($("thead tr", node), columns, ({ key }) => key, head);
      const rows = arms.map((arm) => ({ ...arm, columns }));
      keyed($("tbody", node), rows, ({ name }) => name, row);
    },
  };
}

function head({ name, k, help }) {
  const node = document.createElement("th");
  node.scope = "col";
  if (k === undefined) {
    text(node, name);
    return { node, draw() {} };
  }
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "explain" });
  attribute(button, "data-tip", help || null);
  text(button, name + k);
  node.append(button);
  return { node, draw() {} };
}

function row({ name, experiment }) {
  const node = stamp("own-arm");
  attribute(node, "data-experiment", experiment);
  attribute(node, "data-arm", name);
  text($("bdi", node), visible(name));
  return { node, draw: ({ own, columns }) => keyed(node, columns.map((column) => ({ ...column, own, arm: name })), ({ key }) => key, cell) };
}

function cell({ key, isMetric }) {
  const node = document.createElement("td");
  attribute(node, "data-column", key);
  if (!isMetric) return { node, draw: ({ own }) => text(node, count(own[key])) };
  const [value, interval] = ["span", "small"].map((tag) => document.createElement(tag));
  node.append(value, " ", interval);
  return {
    node,
    draw({ own, arm, text: write }) {
      const it = own.metrics[key];
      drawValue(value, { key, arm, value: it?.value, parts: it });
      text(interval, it === undefined ? "" : it.lower === undefined ? "no interval yet" : `${write(it.lower)} to ${write(it.upper)}`);
    },
  };
}
