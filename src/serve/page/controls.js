// Controls: what is measured, what is compared, which arms, and in which order.

import { choose, chosen, drawnAs } from "./choice.js";
import { $, attribute, keyed, note, stamp, text } from "./document.js";
import { count, idsOf, metricOf, some, span, wordOf } from "./words.js";

/** Pause after which typing counts as finished. */
const TYPING_MS = 150;

const PHONE = matchMedia("(max-width: 30rem)");

let sort = "-lift"; // from the last answer

export function startControls() {
  const form = $("#controls");
  const fold = () => ($("#choices").open = !PHONE.matches);
  PHONE.addEventListener("change", fold);
  fold();
  let typing;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => {
    if (target.name !== "filter") return;
    clearTimeout(typing);
    typing = setTimeout(() => choose({ filter: target.value }, { refines: true }), TYPING_MS);
  });
  form.addEventListener("change", ({ target }) => {
    if (target.name === "metric") choose({ metrics: ticked().join(",") });
    else if (target.name === "sort") choose({ sort: target.value });
    else if (target.name !== "filter") choose({ [target.name]: target.value });
  });
  $("#direction").addEventListener("click", () => choose({ sort: turned(sort) }));
  $("#filter").addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.target.value === "") return;
    event.target.value = "";
    choose({ filter: "" }, { refines: true });
  });
}

const turned = (order) => (order.startsWith("-") ? order.slice(1) : `-${order}`);

/** Returns the order after a click on a column's head. Numbers start with the largest. */
export function sortedBy(key, current) {
  const [first, then] = key === "name" ? [key, `-${key}`] : [`-${key}`, key];
  return current === first ? then : first;
}

function ticked() {
  return [...document.querySelectorAll("#metrics input:checked")].map(({ value }) => value);
}

export function drawControls(answer) {
  const { profiles, windows, k, chosen: told } = answer;
  const { view, difference } = drawnAs();
  radios("#scopes", "scope", [["own", "this instance"], ["global", "all"]], told.scope);
  $("#scopes").hidden = told.scope === undefined;
  radios("#windows", "window", windows.map((name) => [name, wordOf("window", name)]), told.window);
  const cutoffs = [...k.map((k) => [String(k), String(k)]), ["whole", "whole list"]];
  radios("#cutoffs", "k", cutoffs, told.k === null ? "whole" : String(told.k));
  radios("#views", "view", ["settled", "both", "live"].map((value) => [value, wordOf("view", value)]), view);
  radios("#differences", "difference", [["relative", "relative"], ["absolute", "absolute"]], difference);
  radios("#profiles", "profile", profiles.map(({ name }) => [name, name]), told.profile);
  $("#profiles").hidden = profiles.length < 2;
  drawMetrics(answer);
  drawSort(told.sort, told.metrics.map(metricOf), view);
  const filter = $("#filter");
  if (document.activeElement !== filter) filter.value = chosen().filter ?? "";
  text($("[data-testid=shown]"), inWords(told, view, difference));
  note($("#whole"), told.scope === "global" ? ofAll(answer.global) : "");
  $("#choices").hidden = false;
}

/** Describes the state of the view over all partitions. */
function ofAll({ withheld, behind_seconds: behind, n_lagging: nLagging, lagging }) {
  if (withheld !== null) return `The view of all partitions is empty: ${withheld}.`;
  const listed = lagging.map(({ partition, seconds }) => `${partition} (${span(seconds)})`).join(", ");
  const further = nLagging > lagging.length ? ` and ${count(nLagging - lagging.length)} more` : "";
  const lag = nLagging === 0 ? "" : ` Behind the furthest partition: ${listed}${further}.`;
  return `The view of all partitions has final numbers only, as stored ${span(behind)} ago. Each instance shows its own live numbers.${lag}`;
}

/** Summarizes the choice, for readers who have folded the controls. */
function inWords({ window, k, profile, metrics, filter, scope }, view, difference) {
  const cut = k === null ? "whole list" : `k = ${k}`;
  const by = $("#profiles").hidden ? null : `profile ${profile}`;
  const only = filter === "" ? null : `“${filter}”`;
  const views = view === "both" ? "both views" : wordOf("view", view);
  const whose = scope === "global" ? "all partitions" : null;
  return [whose, wordOf("window", window), cut, views, `${difference} differences`, some(metrics.length, "metric"), by, only].filter(Boolean).join(", ");
}

function radios(fieldset, name, values, current) {
  const options = values.map(([value, label]) => ({ type: "radio", name, value, label, checked: value === current }));
  keyed($(fieldset), options, (item) => item.value, option);
}

function drawMetrics({ profiles, chosen: { k, profile, metrics: ids } }) {
  const ofProfile = profiles.find(({ name }) => name === profile);
  const metrics = idsOf(ofProfile).map(metricOf);
  const isLast = (id) => ids.length === 1 && ids[0] === id;
  const boxes = metrics.map(({ id, name, help }) => {
    return { type: "checkbox", name: "metric", value: id, label: name, help, checked: ids.includes(id), disabled: isLast(id) };
  });
  keyed($("#metrics"), boxes, (item) => item.value, option);
  keyed($("#metric-words"), metrics, ({ id }) => id, word);
  const missing = ids.filter((id) => !ofProfile.metrics.includes(k === null ? id : `${id}@${k}`));
  const where = k === null ? "over the whole list" : `at k = ${k}`;
  const names = missing.map((id) => metricOf(id).name).join(", no ");
  note($("#undefined"), missing.length > 0 ? `Profile ${profile} has no ${names} ${where}.` : "");
}

function drawSort(current, metrics, view) {
  sort = current;
  const key = current.replace(/^-/, "");
  const views = view === "both" ? ["settled", "live"] : [view];
  const numbers = [...metrics, { id: "lists", name: "lists" }, { id: "clicks", name: "clicks" }];
  const ofViews = views.flatMap((view) => numbers.map(({ id, name }) => [`${view}.${id}`, `${name}, ${wordOf("view", view)}`]));
  const options = [["lift", "lift, lower end"], ["name", "name"], ["last", "newest list"], ...ofViews];
  if (!options.some(([value]) => value === key)) options.push([key, key]);
  const select = $("#sort");
  keyed(select, options.map(([value, label]) => ({ value, label })), ({ value }) => value, ({ value, label }) => {
    const node = document.createElement("option");
    node.value = value;
    text(node, label);
    return { node, draw() {} };
  });
  if (select.value !== key) select.value = key;
  const isDown = current.startsWith("-");
  const direction = $("#direction");
  text(direction, isDown ? "↓" : "↑");
  attribute(direction, "aria-label", isDown ? "Descending: sort ascending" : "Ascending: sort descending");
}

function option({ type, name, value, label, help }) {
  const node = stamp("choice");
  const input = $("input", node);
  Object.assign(input, { type, name, value });
  attribute(input, "data-testid", name);
  attribute(node, "data-tip", help || null);
  text($("span", node), label);
  return { node, draw: ({ checked, disabled = false }) => Object.assign(input, { checked, disabled }) };
}

function word({ name, help }) {
  const node = stamp("word");
  text($("dt", node), name);
  text($("dd", node), help);
  return { node, draw() {} };
}
