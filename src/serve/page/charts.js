// Charts of each experiment, below its table: its arms over time, their lifts since the start and window by window, their users, CTR
// by rank, the split of the traffic.
//
//   view ─▶ follow ──in sight?──▶ ask /api/v1/view/charts, one question at a time ─▶ draw
//
// Charts show the first arms of the table, at most eleven, so their cost does not grow with the number of arms.

import { Chart } from "./chart.js";
import { cellsOf, looksOf, plannedOf, windowsOf } from "./chart-data.js";
import { drawRanks } from "./chart-ranks.js";
import { drawSplit } from "./chart-split.js";
import { choose, chosen, isUnfolded, partOf, unfold } from "./choice.js";
import { $, attribute, keyed, note, stamp, text } from "./document.js";
import { primariesOf } from "./download.js";
import { count, digitsOf, metricOf, moment, nameOf, near, number, percentage, signed, span, visible } from "./words.js";

const PATH = "api/v1/view/charts";
const PATIENCE_MS = 10_000;
/** The control and ten others, the daemon's limit. */
const MAX_ARMS = 11;
/** Number of colors besides that of the control. */
const N_COLOURS = 10;
/** Charts are drawn shortly before they scroll into view. */
const AHEAD = "200px";
/** Charts are fetched again once event time has advanced by this share of a cell. */
const FRESH = 0.1;
/** With more bands, they hide each other. */
const MAX_BANDS = 4;

/** Value of the parameter “band” for the results of each look in place of single cells. */
const BY_LOOK = "looks";

const drawn = new WeakMap(); // section → its charts

/** Fetches the data of charts: { answer, fault }, where the fault is the reason for a failure, or "". */
export async function fetchCharts(asked) {
  try {
    const response = await fetch(`${PATH}?${new URLSearchParams(asked)}`, { signal: AbortSignal.timeout(PATIENCE_MS), cache: "no-store" });
    return response.ok ? { answer: await response.json(), fault: "" } : { answer: null, fault: `HTTP ${response.status}` };
  } catch (error) {
    return { answer: null, fault: error instanceof TypeError ? "no connection" : error.message };
  }
}

const isByLook = () => chosen().band === BY_LOOK;

/** Draws the charts of an experiment. */
export function drawCharts(section, experiment) {
  if (!drawn.has(section)) drawn.set(section, new Charts(section, visible(experiment.name)));
  drawn.get(section).follow(experiment);
}

addEventListener("beforeprint", () => document.querySelectorAll(".charts").forEach((section) => drawn.get(section)?.print()));

const sights = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (target.isConnected) drawn.get(target).seen(isIntersecting);
      else sights.unobserve(target);
    }
  },
  { rootMargin: AHEAD },
);

class Charts {
  #section;
  #experiment = null; // from the last view
  #answer = null;
  #isAsking = false;
  #asked = ""; // last question
  #of = null; // look and stream at that question
  #isInSight = false;
  #key = ""; // of the drawn metric
  #isOfLooks = false; // values of looks are drawn in place of cells
  #plannedUsers; // as drawn
  #primaries = new Set(); // keys
  #colours = new Map(); // by arm
  #time;
  #lift;
  #windows;
  #users;

  constructor(section, name) {
    this.#section = section;
    attribute(section, "aria-label", `Charts of ${name}`);
    for (const region of section.querySelectorAll("[role=region]")) attribute(region, "aria-label", `${region.getAttribute("aria-label")}, ${name}`);
    const figures = ["time", "lift", "windows", "users"].map((kind) => {
      const figure = stamp("chart");
      figure.hidden = true;
      attribute(figure, "data-chart", kind);
      attribute($("[role=region]", figure), "aria-label", `Values of the chart of ${kind}, ${name}`);
      return figure;
    });
    $(".plots", section).prepend(...figures);
    [this.#time, this.#lift, this.#windows, this.#users] = figures.map((figure) => ({ figure, chart: new Chart(figure) }));
    $("select", section).addEventListener("change", ({ target }) => choose({ chart: target.value }, { refines: true }));
    $(".by", section).addEventListener("click", () => choose({ band: isByLook() ? "" : BY_LOOK }, { refines: true }));
    section.addEventListener("toggle", () => {
      if (section.open !== this.#isOpen()) unfold(this.#part(), section.open);
    });
    sights.observe(section);
  }

  follow(experiment) {
    this.#experiment = experiment;
    this.#section.hidden = experiment.arms.length === 0;
    if (this.#section.hidden) return;
    this.#section.open = this.#isOpen();
    if (this.#isInSight) this.#refresh();
    else if (this.#section.open) this.#drawChoice();
    this.#drawAge();
  }

  #part() {
    return partOf(this.#experiment.name);
  }

  /** Several experiments fit on a screen only without their charts. */
  #isOpen() {
    return isUnfolded(this.#part(), this.#experiment.context.isAlone);
  }

  /** Fetches what is older than the sentence. A print that does not wait for it shows the age of the charts. */
  print() {
    if (this.#experiment !== null && !this.#section.hidden) this.#refresh();
  }

  /** Shows the analysis of the charts, which may be older than the sentence while they are out of sight. Before that, nothing is drawn. */
  #drawAge() {
    const [shown, latest] = [this.#answer?.looks?.times.at(-1), this.#experiment.looks?.as_of];
    const isOlder = shown < latest;
    const unseen = this.#answer === null && !this.#isInSight ? "Charts are drawn once they are in view." : "";
    note($("[data-testid=charts-as-of]", this.#section), shown === undefined ? unseen : `As of the analysis of ${moment(shown)}${isOlder ? `, older than the one above of ${moment(latest)}` : ""}.`);
  }

  seen(isInSight) {
    this.#isInSight = isInSight;
    if (this.#experiment === null) return;
    if (isInSight) this.#refresh();
    this.#drawAge();
  }

  #arms() {
    return this.#experiment.arms.slice(0, MAX_ARMS);
  }

  #refresh() {
    if (!this.#section.open) return;
    if (this.#answer !== null && this.#isOfLooks !== isByLook()) this.#drawTime();
    // A reload may plan other users between two looks.
    if (this.#answer !== null && this.#plannedUsers !== this.#experiment.planned_users) this.#drawUsers();
    this.#drawChoice();
    const arms = this.#arms();
    this.#paint(arms);
    const { n_found: nFound } = this.#experiment;
    note($("[data-testid=charted]", this.#section), arms.length < nFound ? `Charts show ${count(arms.length)} of ${count(nFound)} arms: the first ones in the table.` : "");
    this.#ask();
  }

  /** Draws the selection of a metric: the primaries, and those selected for the table. */
  #drawChoice() {
    const { arms, context } = this.#experiment;
    const { told, metrics, profiles } = context;
    const { name: profile, metrics: known } = profiles.find(({ name }) => name === told.profile);
    const isOfLooks = profile === profiles[0].name;
    const primaries = primariesOf(arms);
    const keys = new Set([...(isOfLooks ? primaries : []), ...metrics.map(({ id, k }) => id + k)]);
    this.#primaries = new Set(primaries);
    const options = [...keys].filter((key) => known.includes(key)).map((key) => ({ key, words: nameOf(key) }));
    const select = $("select", this.#section);
    keyed(select, options, ({ key }) => key, optionOf);
    this.#key = (options.find(({ key }) => key === chosen().chart) ?? options[0])?.key ?? "";
    if (select.value !== this.#key) select.value = this.#key;
  }

  /** Gives each arm the color of its place among the names of all arms, in any order of the table. If another arm shown has it, the next free one. */
  #paint(arms) {
    const taken = new Set();
    for (const { name, number } of arms.toSorted((a, b) => (a.number ?? -1) - (b.number ?? -1))) {
      const colours = Array.from({ length: N_COLOURS }, (_, i) => ((number + i) % N_COLOURS) + 1);
      const colour = number === undefined ? 0 : (colours.find((it) => !taken.has(it)) ?? colours[0]);
      taken.add(colour);
      this.#colours.set(name, colour);
    }
  }

  #colour(name) {
    return this.#colours.get(name);
  }

  /** Returns the query for the daemon. */
  #question() {
    const { name, context } = this.#experiment;
    const { window, profile, scope } = context.told;
    const asked = new URLSearchParams({ experiment: name, arms: JSON.stringify(this.#arms().map((arm) => arm.name)), metric: this.#key, profile, window });
    if (scope !== undefined) asked.set("scope", scope);
    return String(asked);
  }

  /** Returns whether nothing new has arrived that a chart would show. */
  #isFresh({ look, since_ms: since, live_end_ms: end }) {
    const lines = this.#answer?.arms.flatMap(({ live, settled }) => [live, settled].filter(Boolean)) ?? [];
    const cell = lines[0]?.cell_ms ?? 0;
    return look === this.#of?.look && since === this.#of.since_ms && Math.abs(end - this.#of.live_end_ms) < FRESH * cell;
  }

  /** Fetches data, one request at a time, and only if there is something new. */
  async #ask() {
    const asked = this.#question();
    const { looks, context } = this.#experiment;
    const stream = { ...context.stream, look: looks?.as_of };
    if (this.#isAsking || this.#key === "" || (asked === this.#asked && this.#isFresh(stream))) return;
    [this.#isAsking, this.#asked, this.#of] = [true, asked, stream];
    const { answer, fault } = await fetchCharts(asked);
    this.#isAsking = false;
    note($("[data-testid=chart-fault]", this.#section), fault && `Could not update the charts: ${fault}.`);
    if (fault !== "") return;
    this.#answer = { ...answer, settledEnd: stream.settled_end_ms };
    this.#draw();
    if (this.#isInSight && this.#question() !== asked) this.#ask();
  }

  #draw() {
    if (this.#answer === null) return;
    this.#drawAge();
    const begin = performance.now();
    this.#drawTime();
    this.#drawLift();
    this.#drawWindows();
    this.#drawUsers();
    drawSplit($(".split", this.#section), this.#answer, this.#arms(), (name) => this.#colour(name));
    drawRanks($(".ranks", this.#section), this.#answer, (name) => this.#colour(name));
    attribute(this.#section, "data-drawn", this.#answer.metric);
    performance.clearMeasures("charts");
    performance.measure("charts", { start: begin });
  }

  #drawTime() {
    const byLook = looksOf(this.#answer, "value");
    const by = $(".by", this.#section);
    by.hidden = byLook === null;
    this.#isOfLooks = isByLook();
    const isOfLooks = this.#isOfLooks && byLook !== null;
    attribute(by, "aria-pressed", String(isOfLooks));
    const cells = isOfLooks ? null : cellsOf(this.#answer, this.#answer.settledEnd);
    const drawn = isOfLooks ? byLook : cells;
    this.#time.figure.hidden = drawn === null;
    if (drawn === null) return;
    const metric = metricOf(this.#answer.metric.split("@")[0]);
    this.#time.chart.draw({
      ...drawn,
      title: `${nameOf(this.#answer.metric)} ${isOfLooks ? "since the start" : "over time"}`,
      about: isOfLooks ? aboutValue(drawn) : aboutCells(cells, this.#answer.window),
      arms: this.#coloured(drawn.arms),
      hasTotals: isOfLooks,
      hasBands: drawn.arms.length <= MAX_BANDS,
      placeOf: isOfLooks ? upTo(drawn.x) : cellAt(cells),
      write: metric.text,
      tick: tickOf(metric),
      marks: this.#answer.marks,
      isWith0: false,
    });
  }

  #drawLift() {
    const drawn = looksOf(this.#answer, "lift");
    this.#lift.figure.hidden = drawn === null;
    const isPrimary = this.#primaries.has(this.#answer.metric);
    const others = [...this.#primaries].map(nameOf).join(", ");
    const why = drawn !== null || others === "" ? "" : isPrimary ? "Lifts over time start with the first interval." : `Lifts over time are kept for primary metrics only: ${others}.`;
    note($("[data-testid=no-lift]", this.#section), why);
    if (drawn === null) return;
    this.#lift.chart.draw({
      ...drawn,
      title: `Lift of ${nameOf(this.#answer.metric)} over the control`,
      about: `At each analysis, over all final lists since the start. ${bandOf(drawn.arms, "the lifts compatible with the data", "may be read at any time")} ${everyLook(this.#answer.looks)}`,
      hasTotals: true,
      ...this.#scaleOfLifts(drawn),
    });
  }

  /** Draws the lift in each window alone, which shows whether an effect wears off. */
  #drawWindows() {
    const drawn = windowsOf(this.#answer);
    this.#windows.figure.hidden = drawn === null;
    if (drawn === null) return;
    const { window, arms } = drawn;
    this.#windows.chart.draw({
      ...drawn,
      title: `Lift of ${nameOf(this.#answer.metric)} in each ${window} alone`,
      about: `Over the final lists of the ${window} before each point, and no others. ${bandOf(arms, "the lifts compatible with these lists", "does not decide anything")}`,
      hasTotals: false,
      ...this.#scaleOfLifts(drawn),
    });
  }

  #scaleOfLifts({ x, arms }) {
    return {
      arms: this.#coloured(arms),
      hasBands: arms.length <= MAX_BANDS,
      placeOf: upTo(x),
      write: (lift) => signed(lift, percentage),
      tick: (lift, step) => signed(lift, (it) => percentage(it, digitsOf(step * 100))),
      marks: this.#answer.marks,
      isWith0: true,
    };
  }

  /** Draws users next to their planned share of all users, if it is known, and up to their planned number, if one is set. */
  #drawUsers() {
    const { arms, enrollment, marks } = this.#answer;
    this.#plannedUsers = this.#experiment.planned_users;
    const counted = arms.filter(({ enrolled }) => enrolled !== undefined);
    this.#users.figure.hidden = counted.length === 0;
    if (counted.length === 0) return;
    const planned = ({ planned }) => (planned === undefined ? undefined : enrollment.users.map((all) => all * planned));
    const isPlanned = counted.some(({ planned }) => planned !== undefined);
    const levels = plannedOf(counted, this.#plannedUsers);
    this.#users.chart.draw({
      x: enrollment.times,
      title: "Users since the start",
      about: `Users with final lists at each analysis.${isPlanned ? " Dashed: the arm's planned share of all users." : ""}${aboutPlan(levels, this.#plannedUsers)}`,
      levels: levels.filter(({ isNear }) => isNear).map((level) => ({ ...level, label: `${count(level.value)} planned${forArms(levels, level, shortly)}` })),
      arms: this.#coloured(counted.map((arm) => ({ name: arm.name, values: arm.enrolled, open: planned(arm) }))),
      hasTotals: true,
      hasBands: false,
      placeOf: upTo(enrollment.times),
      write: count,
      tick: (users) => count(users),
      marks,
      isWith0: true,
    });
  }

  #coloured(arms) {
    return arms.map((arm) => ({ ...arm, colour: this.#colour(arm.name) }));
  }
}

function optionOf({ key, words }) {
  const node = document.createElement("option");
  node.value = key;
  text(node, words);
  return { node, draw() {} };
}

/** Formats a number on an axis, with enough digits to distinguish two ticks. */
function tickOf({ unit }) {
  return (value, step) => (unit === "share" ? percentage(value, digitsOf(step * 100)) : number(value, digitsOf(step)));
}

function cellAt({ begins, cell }) {
  return (i) => `${near(begins[i], begins.at(-1))} to ${near(begins[i] + cell, begins[i])}`;
}

function upTo(times) {
  return (i) => `up to ${moment(times[i])}`;
}

function aboutCells({ cell, begins, openFrom }, window) {
  const each = `The value of each ${span(cell / 1000)}, in the last ${window}.`;
  if (openFrom === null) return each;
  const from = near(openFrom, begins.at(-1));
  return `${each} Faded from ${from} on: clicks may still arrive, so values are too low. Cells less than half full are left out.`;
}

function aboutValue({ x: times, arms }) {
  const band = bandOf(arms, "an arm's values compatible with the data at that analysis", "does not describe differences");
  return `Over all final lists from the start up to each analysis, from ${moment(times[0])} on. ${band}`;
}

/** Names the planned users of each arm, and where they are drawn. */
function aboutPlan(levels, plannedUsers) {
  if (plannedUsers === undefined) return "";
  // Without shares, or after they have changed, no arm has a number of its own.
  if (levels.length === 0) return ` Planned: ${count(plannedUsers)} users in all.`;
  const numbers = (those) => those.map((level) => `${count(level.value)}${forArms(levels, level, listed)}`).join("; ");
  const [near, far] = [levels.filter(({ isNear }) => isNear), levels.filter(({ isNear }) => !isNear)];
  const drawn = near.length > 0 ? ` Dotted: planned users, ${numbers(near)}.` : "";
  return drawn + (far.length > 0 ? ` Planned users, drawn once half of them are there: ${numbers(far)}.` : "");
}

/** The arms of a planned number of users. Arms that are not shown may have another number. */
function forArms(levels, { names }, write) {
  return levels.length === 1 ? " for each arm shown with a share" : ` for ${write(names.map(visible))}`;
}

const listed = (names) => new Intl.ListFormat("en").format(names);

/** Names for a label in a chart. */
function shortly(names) {
  if (names.length > 2) return `${names.length} arms`;
  return listed(names.map((name) => (name.length > 20 ? `${Array.from(name).slice(0, 20).join("")}…` : name)));
}

/** Explains the bounds, and where they are shown. */
function bandOf(arms, what, how) {
  if (arms.length <= MAX_BANDS) return `The band shows ${what}. It ${how}.`;
  return `Bounds are above and in the table: they show ${what}, and ${how.replace("does", "do")}.`;
}

function everyLook({ times, every_ms: every }) {
  return `One point every ${span(every / 1000)}, from ${moment(times[0])} on.`;
}
