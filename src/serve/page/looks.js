// Results of the latest look at an experiment: for each arm except the control its state, its metrics, and its checks.

import { $, attribute, hintAtMore, keyed, lines, note, stamp, text } from "./document.js";
import { drawOwn } from "./own.js";
import { drawValue } from "./why.js";
import { ROLES, STATES, date, digitsOf, idsPerUser, metricOf, moment, nameOf, number, percentage, probability, signed, some, stateOf, visible } from "./words.js";

/** Looks are ten minutes of event time apart. A look that is late by more than two intervals is held back. */
const LATE_MS = 20 * 60_000;
const ROLE_ORDER = ["primary", "guardrail", "secondary"];
const NONE = "–";

export function drawLooks(node, { name, compared_with: control, looks, arms, verdict, context }) {
  const compared = arms.filter((arm) => arm.comparison);
  const alone = arms.filter((arm) => arm.own);
  node.hidden = !looks || (compared.length + alone.length === 0 && looks.as_of !== null);
  if (node.hidden) return;
  text($("h3 span", node), control === null ? "Each arm on its own" : "Compared with ");
  text($("h3 bdi", node), control === null ? "" : visible(control));
  lines($("[data-testid=held]", node), held(looks, context.stream));
  const order = context.order;
  // One comparison starts open: the arm named in the sentence, or the first one.
  const open = compared.find((arm) => arm.name === verdict.arm) ?? compared[0];
  const rows = compared.map((arm) => ({ ...arm.comparison, analysis: arm.analysis, name: arm.name, experiment: name, isOpen: arm === open, order, promoted: verdict.badge === "win" ? verdict.arm : null }));
  keyed($(".comparisons", node), rows, ({ name }) => name, comparisonOf);
  drawOwn($(".own-arms", node), alone.map((arm) => ({ ...arm, experiment: name })), context);
}

/**
 * Basis of the sentence. `start` is the first list read, which may be later than the experiment's start after a restart.
 * Without a look, the basis is the data in `total`.
 */
export function asOf(looks, { since_ms: since, settled_end_ms: settled }, hasAnalysis) {
  // Looks begin at a cell of ten minutes, and the first list may be later within it.
  if (looks?.as_of != null) {
    const range = `All lists settled from ${moment(Math.max(looks.start, since ?? looks.start))} to ${moment(looks.as_of)}.`;
    // The table shows other windows, views and profiles as of now.
    if (hasAnalysis) return `${range} The sentence, the lifts${atLevel(looks)} and the settled values are as of then.`;
    return `${range} The sentence and the lifts${atLevel(looks)} are as of then; values and counts in the table are current.`;
  }
  if (looks != null || since == null || settled == null || settled < since) return "";
  return `Settled lists from ${moment(since)} to ${moment(settled)}.`;
}

/** Advice to plan the decision, for an experiment that waits for a weekly look. Empty if no look may be planned. */
export function planning(looks, { badge }) {
  const power = looks?.power;
  const isWeekly = power?.design === "sequence" && power.min_days >= 7;
  const isUnplanned = badge === "early" && isWeekly && power.needs.planned !== undefined;
  return isUnplanned ? "No day is planned for the decision. For the next experiment, set planned_days under [experiments.NAME] before the start: the look on that day needs 7% more users than a test at a single look, and the first weekly look 15% more." : "";
}

/** Confidence level of the intervals. */
function atLevel({ power }) {
  return power == null ? "" : ` (${percentage(1 - power.alpha, digitsOf(power.alpha * 100))} intervals)`;
}

/** Sentences about causes that hold looks back, and about data that looks leave out. */
function held({ as_of: asOf, waits_for: waitsFor, given_up: isGivenUp, no_users: noUsers }, { settled_end_ms: settledEnd }) {
  if (isGivenUp) return ["No more looks are taken: statistics took more than limits.max_statistics. Raise it, and restart abgauge."];
  const sentences = [];
  const partition = waitsFor === null ? "" : ` Partition ${waitsFor} is furthest behind.`;
  if (asOf === null) sentences.push(`No look has been taken yet: the first one follows once lists have settled.${partition}`);
  else if (settledEnd !== null && settledEnd - asOf > LATE_MS) sentences.push(`The next look is held back.${partition}`);
  if (noUsers !== null) sentences.push(`${noUsers[0].toUpperCase()}${noUsers.slice(1)}.`);
  return sentences;
}

let comparisons = 0;

function comparisonOf({ name, experiment, isOpen }) {
  const node = stamp("comparison");
  node.open = isOpen;
  for (const part of [node, ...node.querySelectorAll("[data-testid]")]) {
    attribute(part, "data-experiment", experiment);
    attribute(part, "data-arm", name);
  }
  for (const bdi of node.querySelectorAll("bdi.arm")) text(bdi, visible(name));
  const caption = $("caption", node);
  caption.id = `comparison-${comparisons++}`;
  attribute($(".scroll-x", node), "aria-labelledby", caption.id);
  hintAtMore($(".scroll-x", node));
  // The sentence may move on to another arm. Comparisons that the reader has opened or closed stay as they are.
  let wasOpened = isOpen;
  return {
    node,
    draw(comparison) {
      if (node.open === wasOpened) node.open = comparison.isOpen;
      wasOpened = comparison.isOpen;
      drawComparison(node, comparison);
    },
  };
}

function drawComparison(node, comparison) {
  const { control, state, label, result, reason, next_decision: next, planned_end: end, metrics, checks, notes, order } = comparison;
  const decision = $("[data-testid=decision]", node);
  text(decision, state === undefined ? "not tested" : stateOf(comparison));
  attribute(decision, "data-state", state);
  attribute(decision, "data-label", label);
  text($("[data-testid=decision-reason]", node), state === undefined ? "It has no share of the users." : `${actionOf(comparison)}${reason ? `: ${visible(reason)}` : ""}`);
  const isWithoutShares = reason === NO_SHARES;
  node.classList.toggle("without-shares", isWithoutShares);
  node.classList.toggle("without-decision", Object.values(metrics).every((metric) => metric.decision === undefined));
  const help = isWithoutShares ? NO_SHARES_HELP : STATES[state]?.help;
  lines($("[data-testid=facts]", node), factsOf(comparison, order));
  const dates = isWithoutShares ? [] : [next && `Next decision: ${moment(next)}.`, end && `Planned end: ${moment(end)}.`];
  note($("[data-testid=state-words]", node), [help, ...dates].filter(Boolean).join(" "));
  for (const bdi of node.querySelectorAll("bdi.control")) text(bdi, visible(control));
  const rows = Object.entries(metrics).map(([key, metric]) => ({ key, of: comparison, ...metric }));
  keyed($("tbody", node), inOrder(rows, order), ({ key }) => key, metricRow);
  keyed($("dl", node), checksOf(checks), ({ name }) => name, checkOf);
  lines($("[data-testid=comparison-notes]", node), notes);
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

/** Facts that decide or delay a decision: harm, guardrails, and how much of the data is there. */
function factsOf({ state, metrics, waits_for: waits }, order) {
  const watched = inOrder(Object.entries(metrics).map(([key, metric]) => ({ key, ...metric })), order);
  const harms = watched.filter(({ harm }) => harm !== undefined).map(harmOf);
  const guardrails = watched.filter(({ guardrail }) => guardrail !== undefined);
  const none = state === "win" && guardrails.length === 0 ? ["No guardrail is set."] : [];
  const days = waits?.days_needed === undefined ? "" : `, about ${some(Math.round(waits.days_needed), "day")} in all`;
  const data = waits?.information === undefined ? [] : [`Data collected for a decision: ${percentage(waits.information, 0)}${days}.`];
  return [...harms, ...guardrails.map(guardrailOf), ...none, ...data];
}

function harmOf({ key, lift, lower, upper, harm: { bound, level }, harm_since: since }) {
  const digits = digitsOf(Math.round(level * 1000) / 10);
  const isHeld = lower !== undefined && lower <= 0 && upper >= 0;
  // The bound lies on the better side of the lift, so it shows which side is better.
  const isWorse = bound > lift ? bound < 0 : bound > 0;
  const now = isWorse ? `at least ${percentage(Math.abs(bound))} worse (one-sided ${percentage(level, digits)})` : "its one-sided bound includes 0 now";
  return `${nameOf(key)}: harm found ${date(since)}; ${now}.${isHeld ? " The two-sided interval includes 0." : ""}`;
}

const GUARDRAILS = { holds: "holds", not_yet: "not shown to hold yet", broken: "broken" };

function guardrailOf({ key, guardrail: { margin, bound, state } }) {
  const now = bound === undefined ? "no interval yet" : state === "holds" ? `at worst ${lift(bound)}` : `may be ${bound < 0 ? "down" : "up"} ${percentage(Math.abs(bound))}`;
  return `Guardrail ${nameOf(key)} ${GUARDRAILS[state] ?? state}: ${now}, ${percentage(margin)} allowed.`;
}

/** Primaries first, then guardrails, then others in the order of export, and metrics per user last. */
export function inOrder(metrics, order) {
  const keys = [...order, ...idsPerUser()];
  const rank = ({ key, role }) => ROLE_ORDER.indexOf(role) * keys.length + keys.indexOf(key);
  return metrics.toSorted((a, b) => rank(a) - rank(b));
}

function metricRow({ key, role }) {
  const node = stamp("compared-metric");
  const metric = metricOf(key.split("@")[0]);
  attribute(node, "data-metric", key);
  attribute(node, "data-role", role);
  text($(".name", node), nameOf(key));
  attribute($(".name", node), "data-tip", metric.help || null);
  const badge = $(".badge", node);
  badge.hidden = ROLES[role] === undefined;
  text(badge, badge.hidden ? "" : role);
  attribute(badge, "data-tip", ROLES[role]);
  return { node, draw: (it) => keyed(node, cellsOf(it), ({ name }) => name, cell) };
}

function cellsOf(it) {
  const value = (side, arm) => ({ key: it.key, arm, value: it[side], parts: it.parts?.[side], of: side === "arm" ? { comparison: it.of, analysis: it.of.analysis } : undefined });
  return [
    { name: "lift", words: lift(it.lift) },
    { name: "interval", words: interval(it) },
    { name: "p", words: probability(it.p_adjusted) },
    { name: "control", value: value("control", it.of.control) },
    { name: "arm", value: value("arm", it.of.name) },
    { name: "harm", words: probability(it.p_harm) },
    { name: "per user", words: it.per_user === undefined ? NONE : `${lift(it.per_user.lift)} (${interval(it.per_user)})` },
    { name: "decision", words: it.decision === undefined ? NONE : `${lift(it.decision.lift)} (${interval(it.decision)}), ${date(it.decision.at)}` },
  ];
}

function cell({ name }) {
  const node = document.createElement("td");
  attribute(node, "data-column", name);
  return { node, draw: ({ words, value }) => (value ? drawValue(node, value) : text(node, words)) };
}

export function lift(share) {
  return share === undefined ? NONE : signed(share, percentage);
}

export function interval({ lower, upper }) {
  return lower === undefined ? NONE : `${lift(lower)} to ${lift(upper)}`;
}

/** Largest p at which users are not split as planned. */
const SPLIT_ALARM = 0.001;

function pIs(p) {
  const words = probability(p);
  return words.startsWith("<") ? `p < ${words.slice(1)}` : `p = ${words}`;
}

function checksOf({ srm, list_ratio: ratio, multi_arm: multiArm }) {
  const checks = [];
  if (srm) checks.push({ name: "traffic split", words: `${srm.p > SPLIT_ALARM ? "OK" : "not as planned"} (${pIs(srm.p)})`, tip: "Test of the sample ratio: p-value of users being split as shares are set. At 0.001 or less, assignment or logging is broken and no number can be trusted." });
  if (ratio) {
    const bounds = ratio.lower === undefined ? "" : ` (${number(ratio.lower, 3)} to ${number(ratio.upper, 3)})`;
    checks.push({ name: "list ratio", words: `${number(ratio.value, 3)}${bounds}, p ${probability(ratio.p)}`, tip: "Lists per assigned user, divided by the control's. If an arm changes how many lists a user gets, a ratio per list is not an effect on users." });
  }
  if (multiArm) checks.push({ name: "users in two arms", words: percentage(multiArm.share, 2), tip: "Share of users who were seen in two arms. Above 1% of at least a thousand, the comparison is invalid." });
  return checks;
}

function checkOf({ name }) {
  const node = document.createElement("div");
  const [term, button, value] = ["dt", "button", "dd"].map((tag) => document.createElement(tag));
  Object.assign(button, { type: "button", className: "explain" });
  attribute(node, "data-check", name);
  text(button, name);
  term.append(button);
  node.append(term, value);
  return {
    node,
    draw({ words, tip }) {
      text(value, words);
      attribute(button, "data-tip", tip);
    },
  };
}
