// Text on the page, and formats of numbers, times and names.

const percent = (digits) => (share) => `${number(share * 100, digits)}%`;
export const percentage = (share, digits = 1) => percent(digits)(share);
const decimals = (digits) => (value) => number(value, digits);
const points = (digits) => (share) => `${number(share * 100, digits)}\u00a0pp`;
const plain = (digits) => ({ text: decimals(digits), difference: decimals(digits) });
const bits = (digits) => (n) => `${number(n, digits)}\u00a0bits`;
/** Formats of a metric's value and of the difference between two values, by unit. */
const UNITS = {
  share: (digits) => ({ text: percent(digits), difference: points(digits) }),
  score: plain,
  items: plain,
  bits: (digits) => ({ text: bits(digits), difference: bits(digits) }),
};

let definitions = new Map(); // by id, in the order of export
let parts = []; // names of each metric's numerator and denominator, by profile

/** Sets the metrics' names, units and meanings, and the names of their parts, which every answer has. */
export function define({ definitions: all = [], profiles = [] }) {
  definitions = new Map(all.map((it) => [it.id, it]));
  parts = profiles;
}

/** Names of a metric's numerator and denominator in a profile, by default in the first one, which analyses use. */
export function namesOfParts(key, profile = parts[0]?.name) {
  return parts.find(({ name }) => name === profile)?.parts?.[key];
}

export function metricOf(id) {
  const { name = id, unit = "score", digits = 4, meaning = "" } = definitions.get(id) ?? {};
  return { id, name, unit, help: meaning, ...(UNITS[unit] ?? plain)(digits) };
}

/** Name of a metric's key, such as "MRR@5". */
export function nameOf(key) {
  const [id, k] = key.split("@");
  return metricOf(id).name + (k === undefined ? "" : `@${k}`);
}

/** Ids of the metrics per user. */
export function idsPerUser() {
  return [...definitions.values()].filter((it) => it.per_user).map(({ id }) => id);
}

/** Ids of a profile's metrics, from keys such as `mrr@5`. */
export function idsOf({ metrics }) {
  return [...new Set(metrics.map((key) => key.split("@")[0]))];
}

/** Values of the address and of JSON that the page shows as other words, by parameter. */
const SHOWN = { view: { settled: "final" }, window: { total: "since start" } };

/** The word for the value of a parameter, which is mostly the value itself. */
export const wordOf = (parameter, value) => SHOWN[parameter]?.[value] ?? value;

export const WORDS = {
  live: "Every list counts as soon as it is read, so the newest lists still wait for their clicks and values are too low.",
  settled: "Lists whose attribution window has closed: no click can change them any more. Compare arms on this.",
  control: "The arm that the others are compared with: control under [experiments.NAME] in the configuration, or by default the arm called “control”.",
  uncontrolled: "No arm is called “control”, so there are no differences. Name one as control under [experiments.NAME] in the configuration.",
  last: "Event time from the arm's newest list to the live end.",
  lists: "Lists served: each is one set of recommendations that a user was shown. They are the sample behind the values, whatever k is.",
  clicks: "Distinct items of these lists that were clicked.",
  users: "Users with these lists, as of the latest analysis.",
};

/** Words of a sentence that need an explanation. */
const TERMS = {
  buckets: "Users are put into 256 groups, the buckets, to measure how much users differ. About 500 users in each arm fill enough of them.",
  "expected hits": "Lists with a click that an arm should have by now, if all arms are equally good. 100 are needed for a test.",
  guardrail: "A metric that must not fall by more than its margin.",
  "one-sided test of harm": "A test at every analysis for one question only: is the arm worse? It finds harm sooner than the interval shown, which looks both ways.",
  "data collected": "Users and clicks so far, as a share of those needed to find an effect of this size in four of five cases.",
};

/** Returns the first metric or term in the words whose name is not `known` yet: { name, words, at, help }, or undefined. */
export function firstTerm(words, known) {
  const metrics = [...definitions.values()].map(({ name, meaning }) => [name, meaning]);
  const found = [...metrics, ...Object.entries(TERMS)].filter(([name, help]) => help && !known.has(name)).flatMap(([name, help]) => {
    const match = new RegExp(`(?<!\\w)${name.replaceAll(/[^\w ]/g, "\\$&")}(?:@\\d+)?(?!\\w)`).exec(words);
    return match === null ? [] : [{ name, help, words: match[0], at: match.index }];
  });
  // The longest name at a place: "hit ratio" may be the start of another metric's name.
  return found.sort((a, b) => a.at - b.at || b.words.length - a.words.length)[0];
}

/** States of an arm: their meaning, and the failed check of an invalid one. */
export const STATES = {
  collecting: { help: "There are too few users or clicks for any test." },
  no_decision: { help: "Nothing is decided. That does not mean that there is no difference." },
  no_effect: { help: "The arm's effect on the primary metrics is smaller than the smallest effect that matters (mde)." },
  win: { help: "The arm reaches the goal." },
  loss: { help: "A primary metric is worse than the control's." },
  harm: { help: "The arm makes a metric worse, or did on some day. This is tested at every analysis, independently of decisions, and never withdrawn." },
  "invalid(srm)": { check: "traffic split", first: "whether each arm logs all of its lists, and whether a redirect, a bot filter or a late log loses users of one arm.", runbook: "AbgaugeSampleRatioMismatch", help: "Users are not split as planned in shares: assignment or logging is broken. Ignore the lifts." },
  "invalid(multi_arm)": { check: "users in two arms", first: "whether the assignment uses one stable user id on all devices and after a change of shares.", runbook: "AbgaugeUsersInTwoArms", help: "Too many users were seen in two arms. Ignore the lifts." },
  "invalid(users)": { check: "users", first: "whether every list has a user id, and whether one id stands for many users.", runbook: "AbgaugeListsWithoutUser", help: "Too many lists have no user, so intervals would be too narrow, or one user has too many lists. No lifts are shown." },
  "invalid(refused)": { check: "refused events", first: "the dead-letter topic and the clocks of the producers of this arm.", runbook: "AbgaugeRefusedLists", help: "An arm loses a different share of its lists or clicks than the control: its log is broken, or written late. Ignore the lifts." },
  "invalid(list_ratio)": { check: "list ratio", first: "whether shares are the ones that you set, and whether the arm changes how often users ask.", runbook: "AbgaugeListRatioMismatch", help: "The arm changes how many lists a user gets, or the shares are wrong. Ignore the lifts." },
};

/** States that rest on a decision look. */
export const DECIDED = ["win", "loss", "no_effect"];

/** First times of an arm's state, Unix ms: `since` when it holds without a break, and the latest decision look that `confirmed` it. */
export function heldOf({ state, metrics }) {
  const known = Object.values(metrics ?? {});
  if (state === "harm") return { since: first(known.map(({ harm_since: at }) => at)) };
  const decision = DECIDED.includes(state) ? known.find(({ decision }) => decision)?.decision : undefined;
  return { since: decision?.since, confirmed: decision?.at };
}

const first = (times) => times.filter((at) => at !== undefined).sort((a, b) => a - b)[0];

/** The state of an arm in words: its label, with the failed check of an invalid one. */
export function stateOf({ state, label }) {
  const check = STATES[state]?.check;
  return (label ?? state ?? "") + (check ? `: ${check}` : "");
}

/** Meanings of the labels of an experiment. */
export const LABELS = {
  Better: "An arm is better than the control by the configured tests. The lift and its interval are from the analysis that decided.",
  "Not worse": "The goal is not to be worse: an arm is not worse than the control by more than its margin. It need not be better. The lift and its interval are from the analysis that decided.",
  Worse: "An arm is worse than the control, and none is better.",
  "Probably harmful": "By the one-sided test of harm, an arm makes a metric worse. The two-sided interval shown here still includes 0.",
  "No effect": "All lifts are within the smallest effect that matters (mde).",
  Undecided: "Nothing is decided. That does not mean that there is no difference. You may check the lift as often as you like, but if you stop at a lucky moment it will be too high.",
  Collecting: "There are too few final lists, users or clicks for any test.",
  Invalid: "A check failed: assignment or logging is broken, and no number can be trusted.",
  "Not compared": "No arm is tested against a control; the sentence says why. A control, and the shares of the users, are set under [experiments.NAME] in the configuration.",
};

/** Roles of metrics that affect a decision. */
export const ROLES = {
  primary: "Decides the experiment.",
  guardrail: "Must not fall by more than its margin.",
};

export const OUTCOMES = {
  accepted: "Counted.",
  duplicate: "Already counted.",
  late: "Older than the watermark of its partition.",
  future: "Further ahead of its record's timestamp than max_future.",
  invalid: "Could not be read; reasons are in /metrics.",
  after_settled: "Arrived after its time slot became final.",
  late_row: "An item of a list that was already complete.",
  ignored: "Neither a list nor a click.",
  replayed: "Older than the point at which counting started.",
  shed: "Dropped because a memory bound was reached: numbers are no longer exact.",
  skipped: "Left out by ingest.skip_records.",
};

export const RESULTS = {
  matched: "Joined to its list.",
  repeat: "The same item of the same list again.",
  off_list: "The item is not in the list.",
  unmatched: "No list with its id can arrive any more.",
  undecided: "Its list may be older than what was read.",
};

/** Escapes characters in a name that would be invisible or would change the text direction. */
export function visible(name) {
  const hidden = /^\s+|\s+$|[\p{Cc}\p{Zl}\p{Zp}\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu;
  const escape = (char) => `\\u{${char.codePointAt(0).toString(16)}}`;
  return name.replace(hidden, (found) => Array.from(found, escape).join(""));
}

const formats = new Map();

export function number(n, digits) {
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  if (!formats.has(digits)) formats.set(digits, new Intl.NumberFormat("en", options));
  return formats.get(digits).format(n);
}

/** Number of digits that distinguishes numbers which are `step` apart. */
export function digitsOf(step) {
  const isWhole = (digits) => Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) < 1e-6 * 10 ** digits * step;
  return [0, 1, 2, 3, 4, 5].find(isWhole) ?? 6;
}

/** Adds a sign, with a typographic minus. */
export function signed(n, write) {
  const words = write(Math.abs(n));
  if (!/[1-9]/.test(words)) return `±${words}`;
  return `${n < 0 ? "−" : "+"}${words}`;
}

/** An effect with its sign, a lift by default. */
export function lift(effect, write = percentage) {
  return effect === undefined ? "–" : signed(effect, write);
}

export function interval({ lower, upper }, write = percentage) {
  return lower === undefined ? "–" : `${lift(lower, write)} to ${lift(upper, write)}`;
}

/** A p-value in a sentence: "p = 0.830", "p < 0.001". */
export function equation(name, p) {
  const words = probability(p);
  return words.startsWith("<") ? `${name} < ${words.slice(1)}` : `${name} = ${words}`;
}

/** A p-value with three digits. */
export function probability(p) {
  if (p === undefined) return "–";
  if (p < 0.001) return "<0.001";
  return p >= 0.9995 ? "1" : number(p, 3);
}

export function count(n) {
  return n == null ? "–" : number(n, 0);
}

export function some(n, thing) {
  return `${count(n)} ${thing}${n === 1 ? "" : "s"}`;
}

export function share(part, whole) {
  return whole > 0 ? `${number((100 * part) / whole, 1)}%` : "–";
}

export function bytes(n) {
  if (n == null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = n < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(n) / 10));
  return `${number(n / 1024 ** power, power === 0 ? 0 : 1)}\u00a0${units[power]}`;
}

/** An estimate of days, in hours if it is short. */
export function days(n) {
  return n < 2 ? some(Math.max(1, Math.round(n * 24)), "hour") : some(Math.round(n), "day");
}

/** A duration in its largest suitable unit. */
export function span(seconds) {
  if (seconds == null) return "–";
  const units = [["d", 86_400], ["h", 3_600], ["min", 60]];
  const [unit, length] = units.find(([, length]) => seconds >= 2 * length) ?? ["s", 1];
  return `${number(seconds / length, length === 1 && seconds < 10 ? 1 : 0)}\u00a0${unit}`;
}

const two = (n) => String(n).padStart(2, "0");

export function date(ms) {
  const it = new Date(ms);
  return `${it.getFullYear()}-${two(it.getMonth() + 1)}-${two(it.getDate())}`;
}

const DAY = new Intl.DateTimeFormat("en-US", { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });

/** Day of a decision, in UTC as in the sentence: { long: "Mon 24 Nov", short: "24 Nov" }. */
export function day(ms) {
  const { weekday, day, month } = Object.fromEntries(DAY.formatToParts(ms).map(({ type, value }) => [type, value]));
  return { long: `${weekday} ${day} ${month}`, short: `${day} ${month}` };
}

export function clock(ms) {
  const it = new Date(ms);
  return `${two(it.getHours())}:${two(it.getMinutes())}:${two(it.getSeconds())}`;
}

/** Date and hh:mm. */
export function moment(ms) {
  return `${date(ms)} ${clock(ms).slice(0, 5)}`;
}

/** hh:mm, with the date if it differs from the date of `other`. */
export function near(ms, other) {
  return date(ms) === date(other) ? clock(ms).slice(0, 5) : moment(ms);
}
