// Results of the latest look at an experiment: a line for each arm, and below an open arm a row for each metric.

import { isUnfolded, partOf, unfold } from "./choice.js";
import { $, attribute, keyed, lines, note, stamp, text } from "./document.js";
import { drawAxis, drawBar, edgeOf } from "./intervals.js";
import { drawOwn } from "./own.js";
import { drawFacts } from "./progress.js";
import { drawValue } from "./why.js";
import { DECIDED, ROLES, STATES, count, day, digitsOf, heldOf, idsPerUser, interval, lift, metricOf, moment, nameOf, percentage, probability, stateOf, visible } from "./words.js";

/** Looks are ten minutes of event time apart. A look that is late by more than two intervals is held back. */
const LATE_MS = 20 * 60_000;
const ROLE_ORDER = ["primary", "guardrail", "secondary"];
/** Columns about a metric. Those about an arm follow. */
const COLUMNS = ["control", "arm", "lift", "interval", "p", "harm"];

export function drawLooks(node, experiment) {
  const { compared_with: control, looks, arms, context } = experiment;
  const isCompared = arms.some((arm) => arm.comparison);
  const alone = arms.filter((arm) => arm.own);
  node.hidden = !looks || (!isCompared && alone.length === 0 && looks.as_of !== null);
  if (node.hidden) return;
  lines($("[data-testid=held]", node), held(looks, context.stream));
  const table = $(".lifts", node);
  table.hidden = !isCompared;
  const isAbsolute = context.difference === "absolute" && hasAbsolute(arms);
  drawCompared(table, isCompared ? rowsOf(experiment, isAbsolute ? absoluteOf : decidedOr) : [], visible(control ?? ""), isAbsolute);
  drawOwn($(".own-arms", node), alone.map((arm) => ({ ...arm, experiment: experiment.name })), context);
}

/** Returns whether a comparison has absolute effects, which older answers lack. */
export function hasAbsolute(arms) {
  return arms.some(({ comparison }) => Object.values(comparison?.metrics ?? {}).some(({ absolute }) => absolute !== undefined));
}

/** Arms in the order of the answer, with the effects that `effectOf` returns. Only the arm named in the sentence is open by default, or the first one. */
function rowsOf({ name: experiment, compared_with: control, arms, verdict, context: { order } }, effectOf) {
  const claimed = arms.find((arm) => arm.comparison && arm.name === verdict.arm) ?? arms.find((arm) => arm.comparison);
  const promoted = verdict.badge === "win" ? verdict.arm : null;
  return arms.map(({ name, analysis, comparison }) => {
    const part = partOf(experiment, name);
    const isControl = name === control;
    const metrics = Object.entries(comparison?.metrics ?? {}).map(([key, metric]) => ({ key, ...metric, ...effectOf(metric, comparison.state), latest: metric }));
    const isOpen = comparison !== undefined && isUnfolded(part, name === claimed.name);
    return { name, experiment, part, isControl, analysis, comparison, promoted, isOpen, metrics: inOrder(metrics, order) };
  });
}

function drawCompared(table, arms, control, isAbsolute) {
  const shown = arms.flatMap(({ isOpen, metrics }) => (isOpen ? metrics : metrics.slice(0, 1)));
  const has = {
    harm: arms.some((arm) => arm.isOpen && arm.metrics.some((it) => showsHarm(it, arm.comparison))),
    users: arms.some(({ analysis }) => analysis?.users !== undefined),
  };
  for (const [column, isThere] of Object.entries(has)) table.classList.toggle(`without-${column}`, !isThere);
  for (const bdi of table.querySelectorAll("bdi.control")) text(bdi, control);
  // Lines of closed arms show their first metric.
  const first = arms.find(({ metrics }) => metrics.length > 0)?.metrics[0].key;
  const closed = $(".closed", table);
  note(closed, first === undefined ? "" : `(${nameOf(first)})`);
  attribute(closed, "data-tip", first === undefined ? null : metricOf(first.split("@")[0]).help);
  text($("[data-sort=lift]", table), isAbsolute ? "difference" : "lift");
  // Differences of several metrics have no common scale.
  table.classList.toggle("without-bars", isAbsolute);
  const edge = edgeOf(shown);
  drawAxis($(".axis", table), edge);
  const nColumns = COLUMNS.length - (has.harm ? 0 : 1);
  const n = 2 + nColumns + (has.users ? 1 : 0);
  keyed(table, arms.map((arm) => ({ ...arm, edge, nColumns, n })), ({ name }) => name, armGroup);
}

/** p of harm matters once an arm does harm, and for guardrails. */
function showsHarm({ role, p_harm: p }, { state }) {
  return p !== undefined && (role === "guardrail" || (role === "primary" && ["harm", "loss"].includes(state)));
}

/** The decision that a state rests on, as in the sentence, or else the latest analysis. */
function decidedOr({ decision, ...metric }, state) {
  const isDecided = DECIDED.includes(state) && decision?.lift !== undefined;
  const { lift, lower, upper, p_adjusted: p } = isDecided ? decision : metric;
  return { lift, lower, upper, p_adjusted: p, decided: isDecided ? decision.at : undefined };
}

/** The difference of the values in the latest analysis. */
function absoluteOf({ absolute }) {
  return { lift: absolute?.value, lower: absolute?.lower, upper: absolute?.upper, isAbsolute: true };
}

/**
 * Basis of the sentence. `start` is the first list read, which may be later than the experiment's start after a restart.
 * Without a look, the basis is the data in `total`.
 */
export function asOf(looks, { since_ms: since, settled_end_ms: settled }, hasAnalysis) {
  // Looks begin at a cell of ten minutes, and the first list may be later within it.
  if (looks?.as_of != null) {
    const range = `All lists from ${moment(Math.max(looks.start, since ?? looks.start))} to ${moment(looks.as_of)} that no click can change any more (final).`;
    // The table shows other windows, views and profiles as of now.
    if (hasAnalysis) return `${range} The sentence, the lifts${atLevel(looks)} and the final values are as of then.`;
    return `${range} The sentence and the lifts${atLevel(looks)} are as of then; values and counts in the table are current.`;
  }
  if (looks != null || since == null || settled == null || settled < since) return "";
  return `Final lists from ${moment(since)} to ${moment(settled)}.`;
}

/** Advice to plan the decision, for an experiment that waits for a weekly look. Empty if no look may be planned. */
export function planning(looks, { badge }) {
  const power = looks?.power;
  const isWeekly = power?.design === "sequence" && power.min_days >= 7;
  const isUnplanned = badge === "early" && isWeekly && power.needs.planned !== undefined;
  return isUnplanned ? "No day is planned for the decision. For the next experiment, set planned_days under [experiments.NAME] before the start: a decision on that day needs 7% more users than a test at a single time, and the first weekly decision 15% more." : "";
}

/** Confidence level of the intervals. */
function atLevel({ power }) {
  return power == null ? "" : ` (${percentage(1 - power.alpha, digitsOf(power.alpha * 100))} intervals)`;
}

/** Returns whether the next look waits for a partition that is behind. */
export function isHeld({ as_of: asOf }, { settled_end_ms: settledEnd }) {
  return asOf !== null && settledEnd !== null && settledEnd - asOf > LATE_MS;
}

/** Sentences about causes that hold looks back, and about data that looks leave out. */
function held(looks, stream) {
  const { as_of: asOf, waits_for: waitsFor, given_up: isGivenUp, no_users: noUsers } = looks;
  if (isGivenUp) return ["No more analyses are made: statistics took more than limits.max_statistics. Raise it, and restart abgauge."];
  const sentences = [];
  const partition = waitsFor === null ? "" : ` Partition ${waitsFor} is furthest behind.`;
  if (asOf === null) sentences.push(`No analysis has been made yet: the first one follows once the first lists are final.${partition}`);
  else if (isHeld(looks, stream)) sentences.push(`The next analysis is held back.${partition} What is shown stays valid for the lists named above.`);
  if (noUsers !== null) sentences.push(`${noUsers[0].toUpperCase()}${noUsers.slice(1)}.`);
  return sentences;
}

/** An arm: its line, and if it is open a row for each metric and its details. */
function armGroup({ name, experiment }) {
  const node = document.createElement("tbody");
  for (const [key, it] of Object.entries({ "data-testid": "comparison", "data-experiment": experiment, "data-arm": name, role: "rowgroup" })) attribute(node, key, it);
  return {
    node,
    draw(arm) {
      attribute(node, "data-label", arm.comparison?.label);
      const metrics = arm.isOpen ? arm.metrics.map((it) => ({ ...it, row: it.key, edge: arm.edge, of: arm })) : [];
      const details = arm.isOpen ? [{ ...arm, row: "" }] : [];
      keyed(node, [{ ...arm, row: "line" }, ...metrics, ...details], ({ row }) => `row ${row}`, rowOf);
    },
  };
}

function rowOf({ row, key, ...arm }) {
  return row === "line" ? armLine(arm) : row === "" ? armDetails(arm) : metricRow({ key, ...arm });
}

function armLine({ name, experiment }) {
  const node = stamp("compared-arm");
  const [fold, badge] = ["fold", "decision"].map((testid) => $(`[data-testid=${testid}]`, node));
  for (const it of [fold, badge]) for (const [key, of] of Object.entries({ experiment, arm: name })) attribute(it, `data-${key}`, of);
  for (const bdi of node.querySelectorAll("bdi")) text(bdi, visible(name));
  let arm;
  fold.addEventListener("click", () => unfold(arm.part, !arm.isOpen));
  return {
    node,
    draw(next) {
      arm = next;
      const { comparison, metrics, isControl, isOpen, analysis, edge } = arm;
      fold.hidden = comparison === undefined;
      $(".whose", node).hidden = comparison !== undefined;
      attribute(fold, "aria-expanded", String(isOpen));
      badge.hidden = comparison === undefined;
      text(badge, comparison?.state === undefined ? "not tested" : stateOf(comparison));
      attribute(badge, "data-state", comparison?.state);
      attribute(badge, "data-label", comparison?.label);
      attribute(badge, "data-tip", helpOf(comparison ?? {}));
      const [primary] = metrics;
      // A control that is called so needs no mark.
      $(".is-control", node).hidden = !isControl || name === "control";
      const { since } = heldOf(comparison ?? {});
      note($(".since", node), since === undefined ? "" : `since ${day(since).short}`);
      attribute(node, "data-role", primary?.role);
      const isWhole = isOpen || primary === undefined;
      const cells = isWhole ? [{ name: "reason", words: isOpen ? reasonOf(arm) : "", span: arm.nColumns }] : cellsOf(primary, { name, comparison, analysis }, edge);
      const sizes = ["users", "lists"].map((name) => ({ name, words: analysis?.[name] === undefined ? "" : count(analysis[name]) }));
      keyed(node, [...cells, ...sizes], ({ name }) => name, cell);
    },
  };
}

function reasonOf({ comparison, name, promoted }) {
  if (comparison.state === undefined) return "It has no share of the users.";
  return `${actionOf({ ...comparison, name, promoted })}${comparison.reason ? `: ${visible(comparison.reason)}` : ""}`;
}

function helpOf({ state, reason }) {
  return reason === NO_SHARES ? NO_SHARES_HELP : STATES[state]?.help;
}

function armDetails() {
  const node = stamp("compared-details");
  return {
    node,
    draw({ name, comparison, metrics, n }) {
      attribute(node.firstElementChild, "colspan", n);
      const { next_decision: next, planned_end: end, reason, notes } = comparison;
      for (const it of node.querySelectorAll("[data-testid]")) attribute(it, "data-arm", name);
      const dates = reason === NO_SHARES ? [] : [next && `Next decision: ${day(next).long}.`, end && `Planned end: ${day(end).long}.`];
      // The meaning of other states is explained at their badges.
      const help = reason === NO_SHARES || comparison.label === "Invalid" ? helpOf(comparison) : "";
      note($("[data-testid=state-words]", node), [help, ...dates].filter(Boolean).join(" "));
      drawFacts(node, comparison, metrics);
      lines($("[data-testid=comparison-notes]", node), notes);
    },
  };
}

/** Reason that rules out any decision. */
const NO_SHARES = "no shares";
const NO_SHARES_HELP = "Nothing is decided or checked until the configuration sets each arm's share of the users: shares under [experiments.NAME].";
const RESULTS = { pass: "promote", hold: "hold", rollback: "roll back" };

/** The action for a rollout. Arms that beat the control are not compared with each other, so only one of them is promoted. */
function actionOf({ result, name, promoted }) {
  if (result !== "pass" || promoted === null || promoted === name) return RESULTS[result];
  return `also passes, not compared with ${visible(promoted)}`;
}

/** Primaries first, then guardrails, then others in the order of export, and metrics per user last. */
function inOrder(metrics, order) {
  const keys = [...order, ...idsPerUser()];
  const rank = ({ key, role }) => ROLE_ORDER.indexOf(role) * keys.length + keys.indexOf(key);
  return metrics.toSorted((a, b) => rank(a) - rank(b));
}

function metricRow({ key, role }) {
  const node = stamp("compared-metric");
  const { help } = metricOf(key.split("@")[0]);
  attribute(node, "data-metric", key);
  attribute(node, "data-role", role);
  const name = $(".name", node);
  text(name, nameOf(key));
  const badge = $(".badge", node);
  badge.hidden = ROLES[role] === undefined;
  text(badge, badge.hidden ? "" : role);
  attribute(badge, "data-tip", ROLES[role]);
  return {
    node,
    draw(it) {
      const perUser = it.per_user === undefined ? "" : `Per assigned user: ${lift(it.per_user.lift)} (${interval(it.per_user)}).`;
      attribute(name, "data-tip", [help, perUser].filter(Boolean).join(" ") || null);
      keyed(node, cellsOf(it, it.of, it.edge), ({ name }) => name, cell);
    },
  };
}

function cellsOf(it, { name: arm, comparison, analysis }, edge) {
  const metric = metricOf(it.key.split("@")[0]);
  const by = it.isAbsolute ? metric.difference : percentage;
  const words = { lift: lift(it.lift, by), interval: interval(it, by), p: probability(it.p_adjusted), harm: showsHarm(it, comparison) ? probability(it.p_harm) : "" };
  const explained = (side, arm, of) => ({ key: it.key, arm, value: it[side], parts: it.parts?.[side], of });
  const values = { control: explained("control", comparison.control), arm: explained("arm", arm, { comparison, analysis }) };
  return COLUMNS.map((name) => ({ name, words: words[name], explained: values[name], value: name === "lift" ? it.lift : null, bar: name === "interval" ? it : null, edge }));
}

function cell({ name }) {
  const node = name === "interval" ? stamp("interval") : document.createElement("td");
  attribute(node, "role", "cell");
  attribute(node, "data-column", name);
  const said = $(".interval > span", node) ?? node;
  return {
    node,
    draw({ words, explained, value, span, bar, edge }) {
      if (explained?.value !== undefined) drawValue(said, explained);
      else text(said, words ?? "");
      attribute(node, "data-value", value);
      attribute(node, "colspan", span);
      if (bar) drawBar($("svg", node), bar, edge);
    },
  };
}
