// The live page: asks the API every two seconds and updates the document in place.
//
//   poll ─▶ reply ─▶ draw ─▶ components, each { node, draw(item) }, kept by key in `keyed`
//
// Names of experiments and arms come from events, hence from anyone: they reach the document as text
// and as attribute values only, never as markup.

const POLL_MS = 2_000;
const PATIENCE_MS = 10_000;
const MAX_EXPERIMENTS = 20;
const MAX_ARMS = 50;
const MAX_PARTITIONS = 64;
const MAX_WAITING = 5;

const VIEWS = ["live", "settled"];

const percent = (digits) => (share) => `${number(share * 100, digits)}\u00a0%`;
const decimals = (digits) => (value) => number(value, digits);
// Under some profiles a formula differs; what it is about does not.
const METRICS = {
  hit_rate: { name: "hit ratio", text: percent(2), help: "Share of lists with at least one clicked item in the top k." },
  ctr: { name: "CTR", text: percent(2), help: "Click-through rate: items clicked divided by items shown, in the top k, over all lists." },
  mrr: { name: "MRR", text: decimals(4), help: "Mean reciprocal rank: 1 ÷ the first clicked rank in the top k, 0 without one." },
  ndcg: { name: "NDCG", text: decimals(4), help: "Clicked items discounted by the logarithm of their rank, divided by the same of the best order." },
  precision: { name: "precision", text: percent(2), help: "Share of the top k that was clicked." },
  recall: { name: "recall", text: percent(2), help: "Share of a list's clicked items that stand in the top k." },
  map: { name: "MAP", text: decimals(4), help: "Mean average precision: precision at each clicked rank of the top k, averaged." },
  map_by_k: { name: "MAP by k", text: decimals(4), help: "MAP with its sum always divided by k." },
  mar: { name: "MAR", text: decimals(4), help: "Mean average recall: recall at each clicked rank of the top k, averaged." },
  hits: { name: "hits", text: decimals(3), help: "Mean number of clicked items in the top k." },
  alpha_ndcg: { name: "α-NDCG", text: decimals(4), help: "NDCG in which an aspect counts less each time the list shows it again." },
  coverage: { name: "coverage", text: percent(2), help: "Share of the catalogue that stood in any top k of the window. A distinct count: it has no time line." },
  popularity: { name: "popularity", text: percent(2), help: "Mean share of users who touched the items of the top k." },
  surprisal: { name: "surprisal", text: (bits) => `${number(bits, 2)}\u00a0bits`, help: "Mean surprisal of the items of the top k: the fewer users touched an item, the more bits." },
};
/** Shown until others are chosen. */
const N_FIRST = 3;

const OUTCOMES = {
  accepted: "Counted.",
  duplicate: "A list again that is already there.",
  late: "Older than the watermark of its partition.",
  future: "Further ahead of its record's timestamp than max_future.",
  invalid: "Could not be read; reasons are in /metrics.",
  after_settled: "Of a time that was settled already.",
  ignored: "Of a type that is neither a list nor a click.",
  replayed: "From before the place where counting begins.",
  shed: "Dropped because a memory bound was reached: numbers are no longer exact.",
};

const RESULTS = {
  matched: "Joined to its list.",
  repeat: "The same item of the same list again.",
  off_list: "The item is not in the list.",
  unmatched: "No list of its id can come any more.",
  undecided: "Its list may lie before the begin of what was read.",
};

const $ = (selector, root = document) => root.querySelector(selector);

// ---- Asking -------------------------------------------------------------------------------------

let reply = null; // the last good one: kept while later ones fail
let silence = null; // { since, reason } while abgauge does not answer
let timer;
let asking; // aborts the request under way

async function poll() {
  clearTimeout(timer);
  asking?.abort();
  const mine = (asking = new AbortController());
  const asked = Date.now();
  try {
    const signal = AbortSignal.any([mine.signal, AbortSignal.timeout(PATIENCE_MS)]);
    reply = await ask(signal);
    silence = null;
  } catch (error) {
    if (mine.signal.aborted) return; // a newer poll took over, or the tab is hidden
    silence = { since: silence?.since ?? Date.now(), reason: reasonOf(error) };
  }
  if (!document.hidden) timer = setTimeout(poll, Math.max(0, asked + POLL_MS - Date.now()));
  draw();
}

/** One reply with the time lines that the chosen window needs. After a silence the windows may be others. */
async function ask(signal) {
  const known = silence === null && reply !== null ? reply : await get("/api/v1/experiments", signal);
  const window = lineWindow(known);
  if (window === undefined) return known;
  const { profile } = choice(known);
  const asked = new URLSearchParams({ timelines: window, profile });
  return { ...(await get(`/api/v1/experiments?${asked}`, signal)), linesOf: profile };
}

async function get(url, signal) {
  const response = await fetch(url, { signal, cache: "no-store" });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  const body = await response.json();
  if (body.version !== 1) throw new Error(`its API has version ${body.version}, this page reads 1: reload the page`);
  return body;
}

function reasonOf(error) {
  if (error instanceof TypeError) return "no connection";
  return error.name === "TimeoutError" ? `no answer in ${PATIENCE_MS / 1000} s` : error.message;
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) return poll();
  clearTimeout(timer);
  asking?.abort();
});

// ---- What is chosen: kept in the hash, so that a link shows the same ------------------------------

function choice({ windows, k, profiles }) {
  const hash = new URLSearchParams(location.hash.slice(1));
  const one = (name, values, otherwise) => (values.includes(hash.get(name)) ? hash.get(name) : otherwise);
  const cutoffs = [...k.map(String), "whole"];
  const names = profiles.map(({ name }) => name);
  const profile = one("profile", names, names[0]);
  const ids = idsOf(profiles, profile);
  const wanted = hash.get("metrics")?.split(",") ?? [];
  const metrics = ids.filter((id) => wanted.includes(id));
  return {
    window: one("window", windows, windows[0]),
    k: one("k", cutoffs, "whole"),
    profile,
    metrics: metrics.length > 0 ? metrics : ids.slice(0, N_FIRST),
  };
}

/** Ids of the metrics that a profile has, from keys such as `mrr@5`. */
function idsOf(profiles, profile) {
  const { metrics } = profiles.find(({ name }) => name === profile);
  return [...new Set(metrics.map((key) => key.split("@")[0]))];
}

function metricOf(id) {
  return { id, ...(METRICS[id] ?? { name: id, text: decimals(4), help: "" }) };
}

/** The window whose time line is drawn: `total` has none, so the longest one stands in. */
function lineWindow(reply) {
  const { window } = choice(reply);
  return window === "total" ? reply.windows.findLast((name) => name !== "total") : window;
}

$("#controls").addEventListener("change", ({ target }) => {
  const { window, k, profile, metrics } = choice(reply);
  const chosen = { window, k };
  const { profiles } = reply;
  if (profile !== profiles[0].name) chosen.profile = profile;
  // Kept where another profile lacks some of them; what is shown without a choice needs no mention.
  const ids = new URLSearchParams(location.hash.slice(1)).get("metrics");
  if (ids) chosen.metrics = ids;
  if (target.name === "metric") {
    chosen.metrics = idsOf(profiles, profile).filter((id) => (id === target.value ? target.checked : metrics.includes(id))).join(",");
  } else {
    chosen[target.name] = target.value;
  }
  const hash = new URLSearchParams(chosen);
  history.replaceState(null, "", `#${hash}`);
  draw();
  poll();
});

addEventListener("hashchange", () => {
  if (reply) draw();
  poll();
});

// ---- Drawing ------------------------------------------------------------------------------------

function draw() {
  drawState();
  if (reply === null) return;
  const { stream } = reply;
  drawTimes(stream);
  drawWarnings(stream);
  drawControls();
  drawExperiments();
  drawStream(stream);
}

function drawState() {
  const state = silence ? "silent" : reply.stream.ready ? "ready" : "waiting";
  const words = {
    silent: () => `abgauge does not answer since ${clock(silence.since)} (${silence.reason})`,
    ready: () => "ready",
    waiting: () => "catching up",
  };
  const node = $("#state");
  attribute(node, "data-state", state);
  text(node, words[state]());
  document.body.classList.toggle("silent", state === "silent");
  document.title = state === "ready" ? "abgauge" : `abgauge: ${state === "silent" ? "does not answer" : "catching up"}`;
  const waiting = state === "waiting" ? (reply.stream.waiting_for ?? []) : [];
  const beyond = waiting.length - MAX_WAITING;
  lines($("#waiting"), beyond > 0 ? [...waiting.slice(0, MAX_WAITING), `and ${count(beyond)} more`] : waiting);
}

function drawTimes({ live_end_ms: live, settled_end_ms: settled, since_ms: since }) {
  instant($("[data-testid=live-end]"), live);
  instant($("[data-testid=settled-end]"), settled);
  instant($("[data-testid=since]"), since);
}

function drawWarnings({ exact, warnings, catalog }) {
  const inexact = "The numbers are not exact: records were dropped because a memory bound was reached (outcome shed).";
  const stale = catalog?.reload_fault && `The catalogue could not be read again, and the one before stays in use: ${catalog.reload_fault}`;
  lines($("#warnings"), [exact === false && inexact, stale, ...(warnings ?? [])].filter(Boolean));
}

function drawControls() {
  const { profiles } = reply;
  const chosen = choice(reply);
  const options = (name, values) => values.map(([value, label]) => ({ type: "radio", name, value, label, checked: value === chosen[name] }));
  const names = (values) => values.map((name) => [name, name]);
  keyed($("#windows"), options("window", names(reply.windows)), (item) => item.value, option);
  const cutoffs = [...reply.k.map((k) => [String(k), String(k)]), ["whole", "whole list"]];
  keyed($("#cutoffs"), options("k", cutoffs), (item) => item.value, option);
  keyed($("#profiles"), options("profile", names(profiles.map(({ name }) => name))), (item) => item.value, option);
  $("#profiles").hidden = profiles.length < 2;
  const metrics = idsOf(profiles, chosen.profile).map(metricOf);
  const isLast = (id) => chosen.metrics.length === 1 && chosen.metrics[0] === id;
  const boxes = metrics.map(({ id, name, help }) => {
    return { type: "checkbox", name: "metric", value: id, label: name, help, checked: chosen.metrics.includes(id), disabled: isLast(id) };
  });
  keyed($("#metrics"), boxes, (item) => item.value, option);
  keyed($("#metric-words"), metrics, ({ id }) => id, word);
  note($("#undefined"), whyUndefined(chosen));
  $("#controls").hidden = false;
}

function option({ type, name, value, label, help }) {
  const node = stamp("choice");
  const input = $("input", node);
  Object.assign(input, { type, name, value });
  attribute(input, "data-testid", name);
  attribute(node, "title", help);
  text($("span", node), label);
  return { node, draw: ({ checked, disabled = false }) => Object.assign(input, { checked, disabled }) };
}

function word({ name, help }) {
  const node = stamp("word");
  text($("dt", node), name);
  text($("dd", node), help);
  return { node, draw() {} };
}

/** Metrics that are chosen and that the profile does not have at the chosen k. */
function whyUndefined({ k, profile, metrics }) {
  const { metrics: keys } = reply.profiles.find(({ name }) => name === profile);
  const missing = metrics.filter((id) => !keys.includes(id + suffix(k)));
  if (missing.length === 0) return "";
  const where = k === "whole" ? "over the whole list" : `at k = ${k}`;
  return `Profile ${profile} has no ${missing.map((id) => metricOf(id).name).join(", no ")} ${where}.`;
}

/** What follows an id in a key. */
function suffix(k) {
  return k === "whole" ? "" : `@${k}`;
}

function drawExperiments() {
  const { window, k, profile, metrics } = choice(reply);
  const isFirst = profile === reply.profiles[0].name;
  const shown = metrics.map(metricOf);
  const context = {
    window,
    lineWindow: lineWindow(reply),
    k: suffix(k),
    metrics: shown,
    columns: VIEWS.flatMap((view) => [...shown, null].map((metric) => ({ view, metric, key: `${view} ${metric?.id ?? ""}` }))),
    valuesOf: (it) => (isFirst ? it?.metrics : it?.profiles?.[profile]),
    // The answer that is on its way has the lines of a profile just chosen.
    timelineOf: (it) => (reply.linesOf === profile ? it?.timeline : undefined),
    stream: reply.stream,
  };
  const experiments = Object.entries(reply.experiments).map(([name, { arms }]) => {
    const sorted = Object.entries(arms).map(([arm, it]) => ({ ...it, name: arm, size: sizeOf(it) }));
    return { name, arms: sorted, size: sorted.reduce((sum, arm) => sum + arm.size, 0), context };
  });
  const drawn = largest(experiments, MAX_EXPERIMENTS).sort(byName);
  keyed($("#experiments"), drawn, (experiment) => experiment.name, experimentSection);
  note($("#more-experiments"), more(experiments.length - drawn.length, "experiment"));
  note($("#empty"), drawn.length === 0 ? whyEmpty(reply.stream) : "");
}

/** Lists of an arm over the longest span there is: steadier than the chosen window's. */
function sizeOf({ windows }) {
  const longest = windows[reply.windows.at(-1)];
  return longest?.live?.lists ?? longest?.settled?.lists ?? 0;
}

function whyEmpty({ ready, records }) {
  if (!ready) return "Not ready yet: numbers appear once abgauge has caught up. What it waits for stands at the top.";
  const served = records?.served ?? {};
  const read = Object.values(served).reduce((sum, n) => sum + n, 0);
  if (read === 0) return "Ready, but no list has been read.";
  if (!served.accepted) return `Ready, but none of the ${count(read)} records read as lists was accepted: see Stream below.`;
  return `Ready: ${count(served.accepted)} lists were accepted, but none of them belongs to an experiment that is shown.`;
}

let sections = 0;

function experimentSection({ name }) {
  const node = stamp("experiment");
  const heading = $("h2", node);
  heading.id = `experiment-${sections++}`;
  attribute(node, "aria-labelledby", heading.id);
  attribute($("table", node), "aria-labelledby", heading.id);
  attribute(node, "data-experiment", name);
  text($("bdi", heading), visible(name));
  return {
    node,
    draw({ arms, context }) {
      const { metrics, columns } = context;
      $("table", node).style.setProperty("--columns", metrics.length + 1);
      node.querySelectorAll("[scope=colgroup]").forEach((head) => attribute(head, "colspan", metrics.length + 1));
      const heads = columns.map((column) => ({ ...column, context }));
      keyed($(".columns", node), heads, ({ key }) => key, columnHead);
      const shown = largest(arms, MAX_ARMS).sort(byName);
      const scales = new Map(metrics.map((metric) => [metric.id, scaleOf(shown, metric, context)]));
      const rows = shown.map((arm) => ({ ...arm, experiment: name, scales, context }));
      keyed($("tbody", node), rows, (arm) => arm.name, armRow);
      note($(".more", node), more(arms.length - shown.length, "arm"));
      note($(".lines", node), aboutLines(scales, context));
    },
  };
}

function columnHead({ view, metric }) {
  const node = document.createElement("th");
  node.scope = "col";
  attribute(node, "role", "columnheader");
  node.className = view;
  node.title = metric ? metric.help : "What the values rest on, over the whole list";
  if (metric === null) {
    text(node, "bases");
    return { node, draw() {} };
  }
  // A narrow column breaks before the k.
  const k = document.createElement("span");
  node.append(metric.name, document.createElement("wbr"), k);
  return { node, draw: ({ context }) => text(k, context.k) };
}

function armRow({ name, experiment }) {
  const node = stamp("arm");
  attribute(node, "data-experiment", experiment);
  attribute(node, "data-arm", name);
  text($("bdi", node), visible(name));
  const cell = ({ view, metric }) => (metric ? metricCell(view, metric, experiment, name) : basesCell(view, experiment, name));
  return {
    node,
    draw(arm) {
      const cells = arm.context.columns.map((column) => ({ ...column, ...arm }));
      keyed(node, cells, ({ key }) => key, cell);
    },
  };
}

function metricCell(view, metric, experiment, arm) {
  const node = stamp("metric");
  node.className = view;
  node.title = metric.help;
  const label = $(".label", node);
  const value = $(".value", node);
  const line = $("svg", node);
  for (const [key, it] of Object.entries({ experiment, arm, view })) attribute(value, `data-${key}`, it);
  return {
    node,
    draw({ windows, scales, context }) {
      const key = metric.id + context.k;
      const it = context.valuesOf(windows[context.window]?.[view])?.[key];
      text(label, `${metric.name}${context.k}, ${view}`);
      text(value, it == null ? "–" : metric.text(it));
      attribute(value, "data-metric", key);
      attribute(value, "data-value", it);
      const timeline = context.timelineOf(windows[context.lineWindow]?.[view]);
      const cells = timeline?.metrics?.[key] ?? [];
      attribute($("path", line), "d", pathOf(cells, scales.get(metric.id)));
      text($("title", line), describeLine(timeline, cells, metric));
    },
  };
}

function basesCell(view, experiment, arm) {
  const node = stamp("bases");
  for (const [key, it] of Object.entries({ experiment, arm, view })) attribute(node, `data-${key}`, it);
  node.classList.add(view);
  return {
    node,
    draw(arm) {
      const it = arm.windows[arm.context.window]?.[view];
      text($(".label", node), `bases, ${view}`);
      text($(".lists", node), it ? some(it.lists, "list") : whyAbsent(view, arm));
      text($(".clicks", node), it ? some(it.clicks, "click") : "");
      text($(".items", node), it ? `${count(it.items_shown)} shown` : "");
      attribute(node, "data-lists", it?.lists);
    },
  };
}

/** Why an arm has no numbers in a view: its lists are still open to clicks, or there are none. */
function whyAbsent(view, arm) {
  const { live_end_ms: live, settled_end_ms: settled, settle_after_ms: after } = arm.context.stream;
  const open = settled == null || arm.last_list_ms > settled;
  if (view === "live" || !open) return "no list in this window";
  const { timeline, lists } = arm.windows[arm.context.lineWindow]?.live ?? {};
  const first = timeline?.lists.findIndex((n) => n > 0) ?? -1;
  const firstMs = first >= 0 ? timeline.start_ms + first * timeline.cell_ms : arm.last_list_ms;
  const isFirst = lists === arm.size;
  return `settles ${isFirst ? "from" : "by"} ${near(Math.max(firstMs, settled ?? firstMs) + after, live)}`;
}

// ---- Lines --------------------------------------------------------------------------------------

/**
 * Lowest and highest cell of a metric over all arms and both views: one scale, so that lines compare. Cells with few
 * lists, such as the one that has just begun, do not count: their noise would press all else flat.
 */
function scaleOf(arms, { id }, { lineWindow, k, timelineOf }) {
  const timelines = arms.flatMap(({ windows }) => VIEWS.map((view) => timelineOf(windows[lineWindow]?.[view]) ?? null));
  return extent(timelines.flatMap((timeline) => (timeline === null ? [] : wellFilled(timeline, id + k))));
}

/** Values of the cells that hold at least half as many lists as the fullest one; of all where that leaves none. */
function wellFilled({ lists, metrics }, key) {
  const cells = metrics[key] ?? [];
  const enough = Math.max(...lists) / 2;
  const filled = cells.filter((value, i) => value !== null && lists[i] >= enough);
  return filled.length > 0 ? filled : cells;
}

function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? { low, high } : null;
}

/**
 * SVG path over cells, one unit apart, held where it would leave the scale; null cells are gaps, and a cell between two
 * gaps is a dot.
 */
function pathOf(cells, scale) {
  if (scale === null) return "";
  const inside = (height) => Math.min(20, Math.max(0, height));
  const height = ({ low, high }, value) => (high > low ? inside(20 - (20 * (value - low)) / (high - low)) : 10);
  let path = "";
  cells.forEach((value, x) => {
    if (value === null) return;
    const joins = x > 0 && cells[x - 1] !== null;
    path += `${joins ? "L" : "M"}${x} ${height(scale, value).toFixed(1)}${joins ? "" : "h0"}`;
  });
  return path;
}

function describeLine(timeline, cells, metric) {
  const range = extent(cells);
  if (!timeline || !range) return "no time line";
  const { start_ms: start, cell_ms: cell } = timeline;
  const end = start + cells.length * cell;
  return `${metric.name} from ${near(start, end)} to ${near(end, end)}: lowest ${metric.text(range.low)}, highest ${metric.text(range.high)}`;
}

function aboutLines(scales, { window, lineWindow, metrics }) {
  if (lineWindow === undefined) return "";
  const span = window === "total" ? `the last ${lineWindow} (total has no time line)` : lineWindow;
  const drawn = metrics.filter(({ id }) => scales.get(id) !== null);
  if (drawn.length === 0) return `Lines: ${span}.`;
  const range = ({ low, high }, text) => `${text(low)} to ${text(high)}`;
  const ranges = drawn.map(({ id, name, text }) => `${name} ${range(scales.get(id), text)}`);
  return `Lines: ${span}, all at one scale: ${ranges.join(", ")}.`;
}

// ---- Stream -------------------------------------------------------------------------------------

function drawStream(stream) {
  const records = stream.records ?? {};
  const topics = Object.keys(records);
  const outcomes = [...new Set([...Object.keys(OUTCOMES), ...topics.flatMap((topic) => Object.keys(records[topic]))])];
  const table = $("[data-testid=records]");
  keyed($("thead tr", table), topics, (topic) => topic, topicHead);
  const row = (outcome) => ({ name: outcome, help: OUTCOMES[outcome], numbers: topics.map((topic) => records[topic][outcome] ?? 0) });
  rows(table, outcomes.map(row));

  const results = Object.entries(stream.click_results ?? {});
  rows($("#click-results"), results.map(([name, n]) => ({ name, help: RESULTS[name], numbers: [n] })));

  rows($("#gauges"), [
    { name: "clicks waiting", help: "Clicks whose list has not been read yet.", numbers: [stream.clicks_waiting] },
    { name: "open lists", help: "Lists whose attribution window is open.", numbers: [stream.open_lists] },
    { name: "state", help: "Bytes of open lists and waiting clicks.", numbers: [stream.state_bytes], format: bytes },
    { name: "arms folded into __other__", help: "Arms beyond max_arms.", numbers: [stream.arms_folded] },
    ...catalogRows(stream),
  ]);

  const partitions = (stream.partitions ?? []).map((it) => ({ ...it, name: `${it.topic}-${it.partition}`, size: it.lag ?? 0 }));
  const shown = largest(partitions, MAX_PARTITIONS).sort(byName);
  const cells = ({ lag, watermark_delay_seconds: delay }) => [count(lag), delay == null ? "–" : `${number(delay, 1)}\u00a0s`];
  rows($("[data-testid=partitions]"), shown.map((it) => ({ name: it.name, numbers: cells(it), format: String })));
  note($("#more-partitions"), more(partitions.length - shown.length, "partition"));

  text($("#version"), stream.version ?? "");
  $("#stream").hidden = false;
}

function catalogRows({ catalog, arms_without_coverage: leftOut }) {
  if (catalog == null) return [];
  return [
    { name: "catalogue", help: `Items of it. Taken ${date(catalog.taken_ms)} ${clock(catalog.taken_ms)}.`, numbers: [catalog.items] },
    { name: "arms without coverage", help: "Arms beyond max_coverage.", numbers: [leftOut] },
  ];
}

function topicHead(topic) {
  const node = document.createElement("th");
  node.scope = "col";
  text(node, topic);
  return { node, draw() {} };
}

/** Fills a table with one row per item: its name, then its numbers. */
function rows(table, items) {
  keyed($("tbody", table), items, (item) => item.name, ({ name, help }) => {
    const node = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    attribute(node, "data-name", name);
    if (help) head.title = help;
    text(head, name);
    node.append(head);
    return { node, draw: ({ numbers, format = count }) => keyed(node, numbers.map((n, i) => ({ n, i, format })), ({ i }) => i, numberCell) };
  });
}

function numberCell() {
  const node = document.createElement("td");
  return {
    node,
    draw({ n, format }) {
      text(node, format(n));
      node.classList.toggle("zero", n === 0);
    },
  };
}

// ---- Changing the document only where it differs --------------------------------------------------

const kept = new WeakMap(); // parent → (key → component)

/** Makes the components of `parent` those of `items`, in order: old ones are kept, moved only if they must be. */
function keyed(parent, items, keyOf, create) {
  const before = kept.get(parent) ?? new Map();
  const after = new Map();
  for (const item of items) after.set(keyOf(item), before.get(keyOf(item)) ?? create(item));
  for (const [key, { node }] of before) if (!after.has(key)) node.remove();
  kept.set(parent, after);

  const ours = new Set([...after.values()].map(({ node }) => node));
  let place = [...parent.children].find((child) => ours.has(child)) ?? null;
  for (const item of items) {
    const { node, draw } = after.get(keyOf(item));
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
    draw(item);
  }
}

function stamp(template) {
  return document.getElementById(template).content.firstElementChild.cloneNode(true);
}

function text(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

function attribute(node, name, value) {
  if (value == null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** A paragraph that is there only while it has something to say. */
function note(node, words) {
  text(node, words);
  node.hidden = words === "";
}

/** A list of sentences, there only while there are any. */
function lines(list, sentences) {
  const items = sentences.map((sentence, i) => ({ sentence, i }));
  keyed(list, items, ({ i }) => i, () => {
    const node = document.createElement("li");
    return { node, draw: ({ sentence }) => text(node, sentence) };
  });
  list.hidden = sentences.length === 0;
}

// ---- Order and words ------------------------------------------------------------------------------

const collator = new Intl.Collator("en", { numeric: true });
const isControl = ({ name }) => /^(control|baseline)$/i.test(name);

/** Control first, then by name; names that collate alike still have one order. */
function byName(a, b) {
  return isControl(b) - isControl(a) || collator.compare(a.name, b.name) || (a.name < b.name ? -1 : 1);
}

/** At most `n` items, the largest; a control is never left out. */
function largest(items, n) {
  return items.toSorted((a, b) => isControl(b) - isControl(a) || b.size - a.size || byName(a, b)).slice(0, n);
}

function more(n, thing) {
  if (n <= 0) return "";
  return `${some(n, `more ${thing}`)} ${n === 1 ? "is" : "are"} in /metrics`;
}

/** A name with what would be invisible, or would turn its text around, written as an escape. */
function visible(name) {
  const hidden = /^\s+|\s+$|[\p{Cc}\p{Zl}\p{Zp}\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu;
  const escape = (char) => `\\u{${char.codePointAt(0).toString(16)}}`;
  return name.replace(hidden, (found) => Array.from(found, escape).join(""));
}

const formats = new Map();

function number(n, digits) {
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  if (!formats.has(digits)) formats.set(digits, new Intl.NumberFormat("en", options));
  return formats.get(digits).format(n);
}

function count(n) {
  return n == null ? "–" : number(n, 0);
}

function some(n, thing) {
  return `${count(n)} ${thing}${n === 1 ? "" : "s"}`;
}

function bytes(n) {
  if (n == null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = n < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(n) / 10));
  return `${number(n / 1024 ** power, power === 0 ? 0 : 1)}\u00a0${units[power]}`;
}

const two = (n) => String(n).padStart(2, "0");

function date(ms) {
  const it = new Date(ms);
  return `${it.getFullYear()}-${two(it.getMonth() + 1)}-${two(it.getDate())}`;
}

function clock(ms) {
  const it = new Date(ms);
  return `${two(it.getHours())}:${two(it.getMinutes())}:${two(it.getSeconds())}`;
}

/** hh:mm, with the date where it is not that of `other`. */
function near(ms, other) {
  const time = clock(ms).slice(0, 5);
  return date(ms) === date(other) ? time : `${date(ms)} ${time}`;
}

function instant(node, ms) {
  text(node, ms == null ? "–" : `${date(ms)} ${clock(ms)}`);
  attribute(node, "datetime", ms == null ? null : new Date(ms).toISOString());
  attribute(node, "data-value", ms);
}

text($("#zone"), `your time zone (${Intl.DateTimeFormat().resolvedOptions().timeZone})`);
poll();
