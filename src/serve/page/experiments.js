// Tables: one per experiment, one row per arm with the control first, settled numbers next to live ones.

import { nSettledOf } from "./chart-data.js";
import { drawCharts } from "./charts.js";
import { choose } from "./choice.js";
import { sortedBy } from "./controls.js";
import { $, attribute, hintAtMore, keyed, note, stamp, text, withTip } from "./document.js";
import { controlOf } from "./download.js";
import { earlierOf } from "./earlier.js";
import { asOf, drawLooks, hasAbsolute, planning } from "./looks.js";
import { drawProgress } from "./progress.js";
import { drawSettling } from "./settling.js";
import { copyBy } from "./share.js";
import { drawTrust } from "./trust.js";
import { drawValue } from "./why.js";
import { LABELS, STATES, WORDS, count, firstTerm, metricOf, near, percentage, signed, some, span, stateOf, visible, wordOf } from "./words.js";

const VIEWS = { both: ["settled", "live"], settled: ["settled"], live: ["live"] };
const VIEW_NOTES = { live: "every list as soon as it is read", settled: "lists that no click can change any more: compare arms on this" };
/** Page size for a single experiment. */
const ARMS_ON_A_PAGE = 50;
const EXPERIMENTS_ON_A_PAGE = 10;
/** Minimum widths in rem: the column of arm names, any other column, the column of view names in a stacked table. */
const LEAST = { names: 12, column: 7, views: 4.5 };
/** Width besides the table in rem: the padding of its section, and a possible scroll bar. */
const BESIDE = 3.2;

export function drawExperiments(answer, { show, view, difference }) {
  if (show !== "experiments") return;
  const { chosen: told, stream, line_window: lineWindow } = answer;
  const k = told.k === null ? "" : `@${told.k}`;
  const metrics = told.metrics.map((id, index) => ({ ...metricOf(id), index, k }));
  const views = VIEWS[view];
  const columns = views.flatMap((view) => [...metrics, null].map((metric) => ({ view, metric, key: `${view} ${metric?.id ?? ""}` })));
  const isStacked = views.length > 1 && !fits(LEAST.names + columns.length * LEAST.column);
  const least = isStacked ? LEAST.names + LEAST.views + (metrics.length + 1) * LEAST.column : LEAST.names + columns.length * LEAST.column;
  const isAlone = told.experiment !== null || answer.n_experiments_in_all === 1;
  const order = answer.profiles[0].metrics;
  // Looks use the first profile, over everything settled since the start.
  const hasAnalysis = told.window === "total" && answer.has_looks_of_scope && told.profile === answer.profiles[0].name;
  // The rows below then have everything that this table has.
  const isAnalysisOnly = hasAnalysis && view === "settled";
  const context = { told, stream, profiles: answer.profiles, order, hasAnalysis, isAnalysisOnly, lineWindow, metrics, views, columns, difference, isAlone, isStacked, least, nPartitions: answer.n_partitions };
  const sections = answer.experiments.map((experiment) => ({ ...experiment, context }));
  const several = sections.length > 1 ? sections : [];
  keyed($("#verdicts"), several, ({ name }) => name, verdictLine);
  $("#verdicts").hidden = several.length === 0;
  keyed($("#tables"), sections, ({ name }) => name, experimentSection);
  note($("#empty"), sections.length === 0 ? whyEmpty(answer) : "");
  drawFolded(answer);
  drawPages(answer, isAlone);
}

/** One line for names with very few lists, which are mostly misspelled. */
function drawFolded({ folded = [], n_folded: n = 0 }) {
  const node = $("#folded");
  node.hidden = n === 0;
  text($("span", node), `${some(n, "name")} with few lists ${n === 1 ? "is" : "are"} not shown, perhaps misspelled:`);
  keyed($(".names", node), folded, ({ name }) => name, foldedName);
  text($("small", node), n > folded.length ? `and ${count(n - folded.length)} more` : "");
}

function foldedName({ name }) {
  const node = document.createElement("button");
  Object.assign(node, { type: "button", className: "alone" });
  node.addEventListener("click", () => choose({ experiment: name }));
  return { node, draw: ({ lists }) => text(node, `${visible(name)} (${some(lists, "list")})`) };
}

// Cached between draws, because measuring forces a layout.
let room = null; // in rem
addEventListener("resize", () => (room = null));

/** Returns whether a table of this width fits on the page. */
function fits(rem) {
  room ??= $("#tables").clientWidth / parseFloat(getComputedStyle(document.documentElement).fontSize);
  return rem + BESIDE <= room;
}

function whyEmpty({ chosen: told, n_arms_in_all: nArms, stream: { ready, records } }) {
  if (told.scope === "global" && nArms === 0) return "The view of all partitions is empty: no final list is stored yet, or its numbers are withheld.";
  if (!ready && nArms === 0) return "Not ready yet: numbers appear once abgauge has caught up. The reason is at the top.";
  if (nArms > 0 && told.filter !== "") return `None of the ${some(nArms, "arm")} has “${told.filter}” in its name, nor does any experiment.`;
  const served = Object.values(records ?? {})[0] ?? {};
  const read = Object.values(records ?? {}).flatMap(Object.values).reduce((sum, n) => sum + n, 0);
  if (read === 0) return "Ready, but no list has been read.";
  if (!served.accepted) return `Ready, but none of the ${some(read, "record")} read was accepted as a list: see Operations.`;
  return "Ready: lists were accepted, but none of them belongs to an experiment that is shown.";
}

// ---- Pages --------------------------------------------------------------------------------------

const pages = $("#pages");
pages.addEventListener("click", ({ target }) => {
  const button = target.closest("button");
  if (button && button.getAttribute("aria-disabled") !== "true") choose({ page: button.value });
});

function drawPages({ page, n_pages: nPages, experiments, n_experiments: nExperiments }, isAlone) {
  pages.hidden = nPages < 2;
  if (pages.hidden) return;
  const [experiment] = experiments;
  const hasControl = isAlone && controlOf(experiment) !== null;
  const n = isAlone ? experiment.n_found - hasControl : nExperiments;
  const onPage = isAlone ? ARMS_ON_A_PAGE : EXPERIMENTS_ON_A_PAGE;
  const [first, last] = [(page - 1) * onPage + 1, Math.min(n, page * onPage)];
  const things = isAlone ? `arms${hasControl ? " other than the control" : ""}` : "experiments";
  text($("[role=status]", pages), `${count(first)}–${count(last)} of ${count(n)} ${things}`);
  const goals = { first: 1, previous: page - 1, next: page + 1, last: nPages };
  for (const [name, goal] of Object.entries(goals)) {
    const button = $(`[data-goal=${name}]`, pages);
    button.value = goal;
    attribute(button, "aria-disabled", goal < 1 || goal > nPages || goal === page ? "true" : null);
  }
}

// ---- An experiment ------------------------------------------------------------------------------

let sections = 0;

function experimentSection({ name }) {
  const node = stamp("experiment");
  const heading = $("h2", node);
  heading.id = `experiment-${sections++}`;
  for (const it of [node, $("table", node)]) attribute(it, "aria-labelledby", heading.id);
  const wide = $(".wide", node);
  attribute(wide, "aria-label", `table of ${visible(name)}`);
  hintAtMore(wide);
  attribute(node, "data-experiment", name);
  text($("bdi", heading), visible(name));
  attribute($(".uncontrolled", node), "data-tip", WORDS.uncontrolled);
  const verdict = verdictOf(node);
  const drawEarlier = earlierOf(node);
  let shown;
  copyBy($(".copy", node), node, () => shown);
  const alone = $("[data-testid=alone]", node);
  let isShownAlone = false;
  alone.addEventListener("click", () => choose({ experiment: isShownAlone ? "" : name }));
  node.addEventListener("click", ({ target }) => {
    const key = target.closest("thead [data-sort]")?.dataset.sort;
    if (key) choose({ sort: sortedBy(key, node.dataset.order) });
  });
  return {
    node,
    draw(experiment) {
      shown = experiment;
      const { context } = experiment;
      const { metrics, views } = context;
      isShownAlone = context.told.experiment !== null;
      attribute(node, "data-order", context.told.sort);
      wide.classList.toggle("stacked", context.isStacked);
      $("table", node).style.setProperty("--least", `${context.least}rem`);
      $("table", node).style.setProperty("--of-view", metrics.length + 1);
      $("table", node).style.setProperty("--views", views.length);
      drawAbout(node, experiment);
      verdict(experiment);
      drawEarlier(experiment);
      const hasEffects = context.difference === "relative" || hasAbsolute(experiment.arms);
      const isReplaced = context.isAnalysisOnly && hasEffects && experiment.arms.some(({ comparison, own }) => comparison || own);
      wide.hidden = isReplaced;
      const counted = isReplaced ? [] : experiment.arms;
      const scales = metrics.map((metric) => scaleOf(counted, metric, views));
      const control = controlOf(experiment);
      const arms = counted.map((arm) => analyzed(arm, experiment.arms, context));
      drawHeads(node, arms, context);
      const rows = arms.map((arm, i) => ({ ...arm, experiment: name, control: control && arms[0], isControl: experiment.arms[i] === control, scales, context }));
      keyed($("tbody", node), rows, (arm) => arm.name, armRow);
      note($(".lines", node), isReplaced ? "" : aboutLines(scales, context));
      drawLooks($(".looks", node), experiment);
      drawSettling($(".settling", node), experiment);
      drawCharts($(".charts", node), experiment);
    },
  };
}

/**
 * Puts the numbers of the latest analysis in the place of later counts, so that the sentence, the lifts and the values of the settled view
 * since the start agree. A metric that the analysis does not have keeps its count.
 */
function analyzed(arm, arms, { hasAnalysis, metrics }) {
  if (!hasAnalysis || !arm.analysis || !arm.settled) return arm;
  const keys = metrics.map(({ id, k }) => id + k);
  const compared = arms.find(({ comparison }) => comparison)?.comparison.metrics;
  const [from, side] = arm.comparison ? [arm.comparison.metrics, "arm"] : [compared, "control"];
  const ofKey = (key) => (arm.own ? arm.own.metrics[key]?.value : from?.[key]?.[side]);
  const partsOf = (key) => (arm.own ? arm.own.metrics[key] : from[key].parts?.[side]);
  const values = keys.map((key, i) => ofKey(key) ?? arm.settled.values[i]);
  const parts = keys.map((key, i) => (ofKey(key) === undefined ? arm.settled.parts?.[i] : partsOf(key)));
  return { ...arm, settled: { ...arm.settled, values, parts, lists: arm.analysis.lists, users: arm.analysis.users, isAnalysis: true } };
}

function drawAbout(node, { description, owner, control, arms, n_arms: nArms, n_found: nFound, context }) {
  const { told, isAlone } = context;
  const shown = arms.length;
  const found = told.filter === "" ? some(nArms, "arm") : `${count(nFound)} of ${some(nArms, "arm")}`;
  const few = shown < nFound ? `, ${count(shown)} shown` : "";
  text($(".extent", node), found + few);
  const about = [description, owner && `Owner: ${owner}`].filter((text) => text).map(visible);
  note($("[data-testid=about]", node), about.join(" · "));
  $(".uncontrolled", node).hidden = control !== null || nArms < 2;
  const isAbsent = control !== null && controlOf({ control, arms }) === null;
  note($(".absent", node), isAbsent ? `The control “${visible(control)}” has no lists here: there are no differences.` : "");
  const alone = $("[data-testid=alone]", node);
  alone.hidden = isAlone ? told.experiment === null : shown === nFound;
  text(alone, isAlone ? "all experiments" : `all ${some(nFound, "arm")}`);
}

/** Draws the headline of an experiment. Names in it keep their own text direction. */
function verdictOf(node) {
  const [badge, sentence] = ["badge", "sentence"].map((testid) => $(`[data-testid=${testid}]`, node));
  let drawn = null;
  $(".anyway", node).addEventListener("click", ({ target }) => text(target, node.classList.toggle("anyway") ? "hide the lifts" : "show the lifts anyway"));
  return (experiment) => {
    const { verdict, looks, arms, context } = experiment;
    const { stream, hasAnalysis } = context;
    for (const key of ["badge", "label"]) attribute($("[data-testid=verdict]", node), `data-${key}`, verdict[key]);
    text(badge, verdict.label);
    // An upgraded daemon may send labels that this page does not know.
    attribute(badge, "data-tip", LABELS[verdict.label] ?? null);
    if (drawn !== verdict.sentence) {
      const nodesOf = partsOf();
      const basis = document.createElement("span");
      basis.className = "basis";
      const claim = verdict.parts.slice(0, verdict.n_claiming).flatMap(nodesOf);
      basis.append(...verdict.parts.slice(verdict.n_claiming).flatMap(nodesOf));
      sentence.replaceChildren(...claim, basis);
    }
    drawn = verdict.sentence;
    drawProgress($("[data-testid=progress]", node), experiment);
    drawTrust($("[data-testid=trust]", node), experiment);
    note($("[data-testid=chance]", node), verdict.chance === null ? "" : `For comparison, ${verdict.chance}.`);
    note($("[data-testid=as-of]", node), asOf(looks, stream, hasAnalysis));
    note($("[data-testid=planning]", node), planning(looks, verdict));
    drawDistrust(node, verdict, arms);
  };
}

/** Folds the lifts of an experiment whose check failed, and shows what to check first. */
function drawDistrust(node, verdict, arms) {
  const isInvalid = verdict.label === "Invalid";
  node.classList.toggle("invalid", isInvalid);
  const place = $("[data-testid=distrust]", node);
  place.hidden = !isInvalid;
  if (!isInvalid) return;
  const state = arms.map((arm) => arm.comparison?.state).find((state) => STATES[state]?.first !== undefined);
  const known = STATES[state];
  text($("span", place), known ? `Check first: ${known.first}` : "");
  attribute($("a", place), "href", `runbooks${known ? `#${known.runbook.toLowerCase()}` : ""}`);
  text($(".anyway", place), node.classList.contains("anyway") ? "hide the lifts" : "show the lifts anyway");
}

/** One entry of the list at the top, shown for several experiments: its badge, and a link to its sentence. */
function verdictLine({ name }) {
  const node = stamp("verdict");
  attribute(node, "data-experiment", name);
  text($("bdi", node), visible(name));
  $("button", node).addEventListener("click", () => {
    const heading = $(`#tables [data-experiment="${CSS.escape(name)}"] h2`);
    heading.focus({ preventScroll: true });
    heading.closest("section").scrollIntoView();
  });
  return {
    node,
    draw({ verdict }) {
      attribute(node, "data-label", verdict.label);
      text($(".kind", node), verdict.label);
    },
  };
}

/** Returns a function that turns a part of a sentence into nodes. Metrics and terms explain themselves where they are first mentioned. */
function partsOf() {
  const known = new Set();
  const explained = (words) => {
    const term = firstTerm(words, known);
    if (term === undefined) return [words];
    known.add(term.name);
    const [end, rest] = [term.at + term.words.length, words.slice(term.at + term.words.length)];
    return [words.slice(0, term.at), withTip(words.slice(term.at, end), term.help), ...explained(rest)];
  };
  return (it) => {
    if (typeof it === "string") return explained(it);
    const node = document.createElement("bdi");
    node.textContent = visible(it.name);
    return [node];
  };
}

function drawHeads(node, arms, context) {
  const { views, metrics, told } = context;
  const groups = views.map((view) => ({ view, span: metrics.length + 1 }));
  keyed($(".groups", node), groups, ({ view }) => view, groupHead);
  const heads = context.columns.map((column) => ({ ...column, bases: column.metric ? null : basesOf(arms, column.view) }));
  keyed($(".columns", node), heads, ({ key, bases }) => `${key} ${bases}`, columnHead);
  for (const button of node.querySelectorAll("thead [data-sort]")) {
    const key = button.dataset.sort;
    const order = told.sort === key ? "ascending" : told.sort === `-${key}` ? "descending" : null;
    attribute(button, "data-order", order);
    // A head may have two buttons. It announces the order of the active one.
    const head = button.closest("th");
    const inUse = order ?? $(`[data-order]`, head)?.dataset.order ?? null;
    attribute(head, "aria-sort", inUse);
  }
}

function groupHead({ view }) {
  const node = stamp("group");
  node.classList.add(view);
  const name = $("button", node);
  text(name, wordOf("view", view));
  attribute(name, "data-tip", WORDS[view]);
  text($("small", node), VIEW_NOTES[view]);
  return { node, draw: ({ span }) => attribute(node, "colspan", span) };
}

/** Numbers in a column of bases: an analysis has users, if they are counted, in the place of clicks. */
function basesOf(arms, view) {
  const analyses = arms.map((arm) => arm[view]).filter((it) => it?.isAnalysis);
  if (analyses.length === 0) return ["lists", "clicks"];
  return analyses.some(({ users }) => users !== undefined) ? ["lists", "users"] : ["lists"];
}

function columnHead({ view, metric, bases }) {
  const node = document.createElement("th");
  node.scope = "col";
  attribute(node, "role", "columnheader");
  node.className = view;
  if (metric === null) {
    node.append(...bases.flatMap((it) => [it === "users" ? withTip(it, WORDS.users) : sorter(`${view}.${it}`, it, WORDS[it]), " "]));
    return { node, draw() {} };
  }
  const button = sorter(`${view}.${metric.id}`, "", metric.help);
  node.append(button);
  // A narrow column breaks before the k.
  const k = document.createElement("span");
  button.append(metric.name, document.createElement("wbr"), k);
  return { node, draw: ({ metric }) => text(k, metric.k) };
}

function sorter(key, words, help) {
  const node = document.createElement("button");
  Object.assign(node, { type: "button", className: "sort" });
  attribute(node, "data-sort", key);
  attribute(node, "data-tip", help || null);
  node.append(words);
  return node;
}

// ---- An arm -------------------------------------------------------------------------------------

function armRow({ name, experiment }) {
  const node = stamp("arm");
  attribute(node, "data-experiment", experiment);
  attribute(node, "data-arm", name);
  // A stacked table shows it in front of the row.
  attribute(node, "data-final", wordOf("view", "settled"));
  text($("bdi", node), visible(name));
  const badge = $(".badge", node);
  attribute(badge, "data-tip", WORDS.control);
  const state = $("[data-testid=arm-state]", node);
  for (const [key, it] of Object.entries({ experiment, arm: name })) attribute(state, `data-${key}`, it);
  const last = $(".last", node);
  attribute(last, "data-tip", WORDS.last);
  const cell = ({ view, metric }) => (metric ? metricCell(view, metric, experiment, name) : basesCell(view, experiment, name));
  return {
    node,
    draw(arm) {
      const { stream, columns } = arm.context;
      // A control that is called so needs no mark.
      badge.hidden = !arm.isControl || name === "control";
      const { state: said, label } = arm.comparison ?? {};
      state.hidden = said === undefined;
      text(state, stateOf(arm.comparison ?? {}));
      attribute(state, "data-state", said);
      for (const it of [state, node]) attribute(it, "data-label", label);
      node.classList.toggle("control", arm.isControl);
      const age = stream.live_end_ms == null ? null : Math.max(0, stream.live_end_ms - arm.last_list_ms) / 1000;
      text(last, age === null ? "" : `newest list ${span(age)} ago`);
      node.classList.toggle("quiet", arm.live === undefined);
      const cells = columns.map((column) => ({ ...arm, ...column }));
      keyed(node, cells, ({ key }) => key, cell);
    },
  };
}

function metricCell(view, { id }, experiment, arm) {
  const node = stamp("metric");
  node.className = view;
  const label = $(".label", node);
  const value = $(".value", node);
  const difference = $(".difference", node);
  const line = $("svg", node);
  for (const [key, it] of Object.entries({ experiment, arm, view, metric: id }))
    for (const part of [value, difference, line]) attribute(part, `data-${key}`, it);
  return {
    node,
    draw({ [view]: it, control, isControl, analysis, comparison, scales, metric, context }) {
      const told = it?.values[metric.index];
      text(label, `${metric.name}${metric.k}, ${wordOf("view", view)}`);
      drawValue(value, { key: metric.id + metric.k, arm, value: told, parts: it?.parts?.[metric.index], profile: context.told.profile, of: it?.isAnalysis ? { comparison, analysis } : undefined });
      attribute(value, "data-value", told);
      attribute(value, "data-key", metric.id + metric.k);
      // The lift of an analysis is in the rows below. A plain difference next to it would be another number.
      const isPlain = !isControl && !(view === "settled" && context.hasAnalysis && context.difference === "relative" && comparison);
      const compared = isPlain ? differenceOf(told, control?.[view]?.values[metric.index], context.difference) : null;
      attribute(difference, "data-value", compared);
      text(difference, compared === null ? "" : writeDifference(compared, metric, context.difference));
      const cells = it?.line?.values[metric.index] ?? [];
      const settledEnd = view === "settled" ? Infinity : context.stream.settled_end_ms;
      drawLine(line, it?.line, cells, scales[metric.index], settledEnd);
      attribute(line, "aria-label", describeLine(it?.line, cells, metric, settledEnd));
    },
  };
}

/** The difference of an arm from its control, absolute or relative, or null if undefined. */
function differenceOf(value, control, kind) {
  if (value == null || control == null) return null;
  if (kind === "absolute") return value - control;
  return control === 0 ? null : (value - control) / control;
}

function writeDifference(difference, metric, kind) {
  return signed(difference, kind === "absolute" ? metric.difference : percentage);
}

function basesCell(view, experiment, arm) {
  const node = stamp("bases");
  for (const [key, it] of Object.entries({ experiment, arm, view })) attribute(node, `data-${key}`, it);
  node.classList.add(view);
  return {
    node,
    draw(arm) {
      const it = arm[view];
      text($(".label", node), `bases, ${wordOf("view", view)}`);
      const { isAnalysis, users } = it ?? {};
      text($(".lists", node), it ? some(it.lists, "list") : whyAbsent(view, arm));
      text($(".clicks", node), isAnalysis ? (users === undefined ? "" : some(users, "user")) : it ? some(it.clicks, "click") : "");
      text($(".items", node), it && !isAnalysis ? `${count(it.items_shown)} items shown` : "");
      attribute(node, "data-lists", it?.lists);
    },
  };
}

/** Explains why an arm has no numbers in a view: its lists are still open to clicks, or there are none. */
function whyAbsent(view, { live, last_list_ms: last, context }) {
  const { live_end_ms: end, settled_end_ms: settled, since_ms: since, settle_after_ms: after } = context.stream;
  const isOpen = settled == null || last > settled;
  if (view === "live" || !isOpen) return "no list in this window";
  const line = live?.line;
  const first = line?.lists.findIndex((n) => n > 0) ?? -1;
  // The arm may have lists from before the window.
  if (first === 0 && line.start_ms > (since ?? end)) return "not final yet";
  // A cell may begin before all events.
  const firstMs = first >= 0 ? Math.max(line.start_ms + first * line.cell_ms, since ?? 0) : last;
  return `final from ${near(Math.max(firstMs, settled ?? firstMs) + after, end)}`;
}

// ---- Lines --------------------------------------------------------------------------------------

/**
 * Lowest and highest cell of a metric over all arms and views shown: a common scale makes lines comparable. Cells with few lists,
 * such as the current one, are ignored, because their noise would flatten everything else.
 */
function scaleOf(arms, { index }, views) {
  const lines = arms.flatMap((arm) => views.map((view) => arm[view]?.line ?? null));
  return extent(lines.flatMap((line) => (line === null ? [] : wellFilled(line, index))));
}

/** Values of the cells with at least half as many lists as the fullest one, or all values if that leaves none. */
function wellFilled({ lists, values }, index) {
  const cells = values[index] ?? [];
  const enough = Math.max(...lists) / 2;
  const filled = cells.filter((value, i) => value !== null && lists[i] >= enough);
  return filled.length > 0 ? filled : cells;
}

function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value === null) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? { low, high } : null;
}

/** Draws the settled part, and faded the part that is still open to clicks, which continues from there. */
function drawLine(node, line, cells, scale, settledEnd) {
  const n = line ? Math.min(cells.length, nSettledOf(line, settledEnd)) : 0;
  const isOpen = n < cells.length;
  attribute($("path", node), "d", pathOf(cells, scale, 0, n));
  attribute($(".open", node), "d", isOpen ? pathOf(cells, scale, Math.max(0, n - 1), cells.length) : "");
  attribute(node, "data-open", line && isOpen ? line.start_ms + n * line.cell_ms : null);
}

/** SVG path over a range of cells, one unit apart, clamped to the scale. Null cells are gaps, and a cell between two gaps is a dot. */
function pathOf(cells, scale, from, to) {
  if (scale === null) return "";
  const inside = (height) => Math.min(20, Math.max(0, height));
  const height = ({ low, high }, value) => (high > low ? inside(20 - (20 * (value - low)) / (high - low)) : 10);
  let path = "";
  for (let x = from; x < to; x++) {
    if (cells[x] === null) continue;
    const joins = x > from && cells[x - 1] !== null;
    path += `${joins ? "L" : "M"}${x} ${height(scale, cells[x]).toFixed(1)}${joins ? "" : "h0"}`;
  }
  return path;
}

function describeLine(line, cells, metric, settledEnd) {
  const range = extent(cells);
  if (!line || !range) return "no time line";
  const { start_ms: start, cell_ms: cell } = line;
  const end = start + cells.length * cell;
  const n = nSettledOf(line, settledEnd);
  const open = n < cells.length ? `; still open to clicks from ${near(start + n * cell, end)} on` : "";
  return `${metric.name} from ${near(start, end)} to ${near(end, end)}: lowest ${metric.text(range.low)}, highest ${metric.text(range.high)}${open}`;
}

function aboutLines(scales, { told: { window }, lineWindow, metrics, views }) {
  const spanned = window === "total" ? `the last ${lineWindow} (there is no line for “${wordOf("window", window)}”)` : lineWindow;
  const drawn = metrics.filter(({ index }) => scales[index] !== null);
  if (drawn.length === 0) return `Lines: ${spanned}.`;
  const ranges = drawn.map(({ index, name, text }) => `${name} ${text(scales[index].low)} to ${text(scales[index].high)}`);
  const open = views.includes("live") ? " Their faded ends are still open to clicks, so values there are too low." : "";
  return `Lines: ${spanned}, all on one scale: ${ranges.join(", ")}.${open}`;
}
