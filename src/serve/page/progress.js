// Facts other than lifts. One line per experiment: how long it has run, the share of the data for a decision, users out of the planned
// ones, when it ends, and when it was decided. Below an arm: the facts that decide or delay a decision.

import { $, lines, text } from "./document.js";
import { count, day, days, digitsOf, heldOf, interval, lift, nameOf, number, percentage, span } from "./words.js";

const DAY_MS = 86_400_000;

/** Draws the facts of the latest analysis about the arm of the sentence. Unknown ones are left out. */
export function drawProgress(node, { verdict, looks, arms, users, planned_users: planned }) {
  const asOf = looks?.as_of ?? null;
  node.hidden = asOf === null;
  if (asOf === null) return;
  const comparison = arms.find(({ name }) => name === verdict.arm)?.comparison;
  const collected = comparison?.waits_for?.information;
  const [before, after] = node.querySelectorAll("span");
  const rest = [...needed(comparison?.waits_for), ...enrolled(users, planned), ...ends(comparison, asOf), ...since(comparison)].join(" · ");
  const bar = $("progress", node);
  bar.hidden = collected === undefined;
  bar.value = Math.min(1, collected ?? 0);
  text(before, `${age(asOf - looks.start)}${rest === "" ? "" : " ·"}`);
  text(after, rest);
}

function age(ms) {
  return `${ms < 2 * DAY_MS ? span(ms / 1000) : `${number(ms / DAY_MS, 1)} days`} since the start`;
}

function needed(waits) {
  if (waits?.information === undefined) return [];
  const left = waits.days_needed === undefined ? 0 : waits.days_needed - waits.days;
  const enough = waits.information >= 1 ? "all" : percentage(waits.information, 0);
  return [`${enough} of the data for a decision`, ...(left > 0 ? [`about ${days(left)} to go`] : [])];
}

/** Users of all arms, out of the planned ones. */
function enrolled(users, planned) {
  if (users === undefined || planned === undefined) return [];
  // 100% only once all of them are there.
  const share = users < planned ? Math.min(0.99, users / planned) : users / planned;
  return [`${count(users)} of ${count(planned)} planned users (${percentage(share, 0)})`];
}

function ends(comparison, asOf) {
  const end = comparison?.planned_end;
  if (end === undefined) return [];
  return [end > asOf ? `planned end ${day(end).long}` : `planned end was ${day(end).long}`];
}

/** Day since which the decision holds and day of the look that confirmed it, or day of the first harm. Other states have no known begin. */
function since(comparison) {
  const { since, confirmed } = heldOf(comparison ?? {});
  if (since === undefined) return [];
  if (comparison.state === "harm") return [`harm found ${day(since).long}`];
  // The interval of a loss that is only probable now has changed since its decision.
  const begin = comparison.label === "Probably harmful" ? `decided ${day(since).long}` : `${comparison.label} since ${day(since).long}`;
  return [day(confirmed).long === day(since).long ? begin : `${begin}, last confirmed ${day(confirmed).long}`];
}

// ---- An arm -------------------------------------------------------------------------------------

/** Draws the facts of a compared arm, whose rows of metrics are these. */
export function drawFacts(node, comparison, metrics) {
  lines($("[data-testid=facts]", node), factsOf(comparison, metrics));
}

/** Later numbers, harm, guardrails, and how much of the data is there. */
function factsOf({ state, waits_for: waits }, metrics) {
  const later = metrics.filter(({ decided, lift, latest }) => decided !== undefined && latest.lift !== lift).map(laterOf);
  const latest = metrics.map(({ key, latest }) => ({ key, ...latest }));
  const harms = latest.filter(({ harm }) => harm !== undefined).map(harmOf);
  const guardrails = latest.filter(({ guardrail }) => guardrail !== undefined);
  const none = state === "win" && guardrails.length === 0 ? ["No guardrail is set."] : [];
  const inAll = waits?.days_needed === undefined ? "" : `, about ${days(waits.days_needed)} in all`;
  const data = waits?.information === undefined ? [] : [`Data collected for a decision: ${percentage(waits.information, 0)}${inAll}.`];
  return [...later, ...harms, ...guardrails.map(guardrailOf), ...none, ...data];
}

function laterOf({ key, decided, latest }) {
  return `${nameOf(key)} is shown as decided on ${day(decided).long}. The latest analysis: ${lift(latest.lift)} (${interval(latest)}).`;
}

function harmOf({ key, lift, lower, upper, harm: { bound, level }, harm_since: since }) {
  const digits = digitsOf(Math.round(level * 1000) / 10);
  const isHeld = lower !== undefined && lower <= 0 && upper >= 0;
  // The bound lies on the better side of the lift, so it shows which side is better.
  const isWorse = bound > lift ? bound < 0 : bound > 0;
  const now = isWorse ? `at least ${percentage(Math.abs(bound))} worse (one-sided ${percentage(level, digits)})` : "its one-sided bound includes 0 now";
  return `${nameOf(key)}: harm found ${day(since).long}; ${now}.${isHeld ? " The two-sided interval includes 0." : ""}`;
}

const GUARDRAILS = { holds: "holds", not_yet: "not shown to hold yet", broken: "broken" };

function guardrailOf({ key, guardrail: { margin, bound, state } }) {
  const now = bound === undefined ? "no interval yet" : state === "holds" ? `at worst ${lift(bound)}` : `may be ${bound < 0 ? "down" : "up"} ${percentage(Math.abs(bound))}`;
  return `Guardrail ${nameOf(key)} ${GUARDRAILS[state] ?? state}: ${now}, ${percentage(margin)} allowed.`;
}
