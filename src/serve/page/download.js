// Downloads of the shown data as CSV and JSON, as of the moment on the page rather than a later one.

import { $ } from "./document.js";

const VIEWS = { both: ["settled", "live"], settled: ["settled"], live: ["live"] };
const COLUMNS = [
  "experiment", "arm", "is_control", "view", "window", "k", "profile", "metric", "value", "control_value",
  "difference_absolute", "difference_relative", "lists", "clicks", "items_shown", "last_list",
  "live_end", "settled_end", "since", "analysis", "analysis_value", "analysis_control_value", "lift", "lift_lower", "lift_upper", "p_adjusted", "role",
  "decision_at", "decision_lift", "decision_lower", "decision_upper", "decision_p_adjusted", "state", "label", "result", "reason", "badge", "sentence",
  "analysis_lists", "users", "planned_share", "decision_since", "harm_since",
];

/** `shown()` returns the data on the page: { answer, view }. */
export function startDownloads(shown) {
  $("#csv").addEventListener("click", () => save(shown(), "csv", "text/csv", csv));
  $("#json").addEventListener("click", () => save(shown(), "json", "application/json", json));
}

function save(shown, ending, type, write) {
  if (shown.answer === null) return;
  const url = URL.createObjectURL(new Blob([write(shown)], { type }));
  const at = new Date(shown.answer.stream.live_end_ms ?? Date.now()).toISOString().slice(0, 19).replaceAll(":", "");
  const link = document.createElement("a");
  Object.assign(link, { href: url, download: `abgauge-${at}.${ending}` });
  link.click();
  URL.revokeObjectURL(url);
}

/** A row for each arm, view and metric. Every row contains the ends of its view, so that files of several moments can be combined. */
function csv(shown) {
  const ends = endsOf(shown.answer.stream);
  const rows = records(shown).map((record) => ({ ...record, ...ends })).map((record) => COLUMNS.map((name) => field(record[name])).join(","));
  return [COLUMNS.join(","), ...rows, ""].join("\r\n");
}

function json(shown) {
  return `${JSON.stringify({ chosen: shown.answer.chosen, ...endsOf(shown.answer.stream), rows: records(shown) }, null, 2)}\n`;
}

/** Ends of the views. All times of a file have one form. */
function endsOf({ live_end_ms: live, settled_end_ms: settled, since_ms: since }) {
  return { live_end: instant(live), settled_end: instant(settled), since: instant(since) };
}

/** The latest analysis of an arm and a metric: what was known, what was decided, and on how many users. */
function analysisOf({ looks, verdict }, { analysis, comparison }, key) {
  if (looks?.as_of == null) return {};
  const metric = comparison?.metrics[key];
  const decision = metric?.decision;
  return {
    analysis: instant(looks.as_of),
    analysis_value: metric?.arm,
    analysis_control_value: metric?.control,
    lift: metric?.lift,
    lift_lower: metric?.lower,
    lift_upper: metric?.upper,
    p_adjusted: metric?.p_adjusted,
    role: metric?.role,
    decision_at: instant(decision?.at),
    decision_lift: decision?.lift,
    decision_lower: decision?.lower,
    decision_upper: decision?.upper,
    decision_p_adjusted: decision?.p_adjusted,
    state: comparison?.state,
    label: comparison?.label,
    result: comparison?.result,
    reason: comparison?.reason,
    badge: verdict.label,
    sentence: verdict.sentence,
    analysis_lists: analysis?.lists,
    users: analysis?.users,
    planned_share: analysis?.share,
    decision_since: instant(decision?.since),
    harm_since: instant(metric?.harm_since),
  };
}

function records({ answer, view }) {
  const { window, k, profile, metrics } = answer.chosen;
  return answer.experiments.flatMap((experiment) => {
    const control = controlOf(experiment);
    const ofArm = (arm) => VIEWS[view].filter((view) => arm[view]).flatMap((view) => metrics.map((metric, i) => ofMetric(arm, view, metric, i)));
    const ofMetric = (arm, view, metric, i) => {
      const it = arm[view];
      const [value, controlValue] = [it.values[i], control?.[view]?.values[i] ?? null];
      const isCompared = arm !== control && value !== null && controlValue !== null;
      return {
        experiment: experiment.name,
        arm: arm.name,
        is_control: arm === control,
        view,
        window,
        k: k ?? "whole",
        profile,
        metric,
        value,
        control_value: controlValue,
        difference_absolute: isCompared ? value - controlValue : null,
        difference_relative: isCompared && controlValue !== 0 ? (value - controlValue) / controlValue : null,
        lists: it.lists,
        clicks: it.clicks,
        items_shown: it.items_shown,
        last_list: instant(arm.last_list_ms),
        // Looks use the first profile.
        ...(profile === answer.profiles[0].name ? analysisOf(experiment, arm, metric + (k === null ? "" : `@${k}`)) : {}),
      };
    };
    return experiment.arms.flatMap(ofArm);
  });
}

function instant(ms) {
  return ms == null ? null : new Date(ms).toISOString();
}

/** The control of an experiment, if it has lists. It is then the first row. */
export function controlOf({ control, arms }) {
  return control !== null && arms[0]?.name === control ? arms[0] : null;
}

/** Returns the keys of the primary metrics. Empty without a comparison. */
export function primariesOf(arms) {
  const metrics = arms.find((arm) => arm.comparison)?.comparison.metrics ?? {};
  return Object.keys(metrics).filter((key) => metrics[key].role === "primary");
}

/** Control characters, line breaks, marks and overrides of text direction, and the byte order mark. */
const STEERING = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu;

/** Names are untrusted: none may become a formula in a spreadsheet or affect its display. `abgauge evaluate` writes the same. */
function field(value) {
  if (value == null) return "";
  if (typeof value !== "string") return String(value);
  const visible = value.replace(STEERING, escaped);
  const plain = /^\s*[=+\-@＝＋－＠]/.test(visible) ? `'${visible}` : visible;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

function escaped(char) {
  const short = { "\t": "\\t", "\r": "\\r", "\n": "\\n" };
  return short[char] ?? `\\u{${char.codePointAt(0).toString(16)}}`;
}
