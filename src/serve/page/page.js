// The live page: follows the daemon and changes the document in place.
//
//   URL ─▶ choice ─▶ feed ─▶ answer ─▶ draw ─▶ state ┬▶ experiments: controls, tables
//                                                    └▶ operations: warnings, times, strip, stream
//
// Names of experiments and arms come from events, so they are untrusted: they enter the document as text and attribute values
// only, never as markup.

import { addressOf, chooseNothing, chosen, drawnAs, onChoice, query } from "./choice.js";
import { drawControls, startControls } from "./controls.js";
import { $, attribute, lines, note, sentence, startTips, text, told } from "./document.js";
import { startDownloads } from "./download.js";
import { drawExperiments } from "./experiments.js";
import { Feed } from "./feed.js";
import { startCopying } from "./share.js";
import { drawHealth, drawStream, losses } from "./stream.js";
import { clock, count, date, define, moment, some, visible } from "./words.js";

const MAX_WAITING = 5;
/** Maximum characters of a warning at the top. The full text is among the operations. */
const MAX_SAID = 120;
/** Plain words at the top for warnings that start with places in the log, by runbook. */
const PLAIN = {
  AbgaugeEventAhead: "Events have times in the future, and make others late",
  AbgaugeExactnessLost: "Numbers are not exact: records were left out",
  AbgaugeMisplacedKeys: "Clicks may find no list: records are in unexpected partitions",
  AbgaugePartitionersDiffer: "Clicks are being lost: producers use different partitioners",
  AbgaugePartitionHeld: "Numbers do not move: a record cannot be read yet",
  AbgaugeRecordsShed: "Records are being dropped: memory is at its limit",
};

let answer = null; // the last one, kept while no other arrives
let arrived = null; // its time of arrival, by this machine's clock
let asked = false; // set if it was polled because this page has no stream
let silence = null; // { since, reason } while abgauge does not answer
let waitsSince = null; // time of a choice that has no answer yet
let firstVersion = null; // abgauge's version when this page was loaded

const feed = new Feed({
  onAnswer(next, how) {
    const begin = performance.now();
    [answer, arrived, asked, silence] = [next, Date.now(), how.asked, null];
    firstVersion ??= answer.stream.version;
    define(answer);
    draw();
    measured("draw", begin);
    if (waitsSince !== null) measured("wait", waitsSince);
    waitsSince = null;
  },
  onSilence(reason) {
    silence = { since: silence?.since ?? Date.now(), reason };
    drawState();
  },
});

/** Records timings for developer tools, which tests check against bounds. */
function measured(name, start) {
  performance.clearMeasures(name);
  performance.measure(name, { start });
}

function draw() {
  drawShows();
  drawState();
  drawTimes(answer.stream);
  $("#demo").hidden = answer.demo !== true;
  drawNotes(answer);
  drawHealth(answer);
  drawControls(answer);
  drawExperiments(answer, drawnAs());
  drawStream(answer);
  text($("#printed"), `${location.href}, printed ${moment(Date.now())}`);
  document.body.setAttribute("aria-busy", "false");
}

const shows = [...document.querySelectorAll("#shows a")];

/** Shows one part of the page. Links lead to the other, with the same choice otherwise. */
function drawShows() {
  const { show } = drawnAs();
  for (const link of shows) {
    attribute(link, "href", addressOf(link.dataset.show));
    attribute(link, "aria-current", link.dataset.show === show ? "page" : null);
    document.getElementById(link.dataset.show).hidden = link.dataset.show !== show;
  }
}

const STATES = {
  asking: () => "connecting…",
  silent: () => `abgauge has not answered since ${clock(silence.since)} (${silence.reason}): trying again.`,
  ready: () => "ready",
  warned: (n) => `ready, with ${some(n, "warning")}`,
  wrong: () => "numbers missing or wrong",
  waiting: () => "not ready",
};
const TITLES = {
  asking: "abgauge",
  ready: "abgauge",
  silent: "abgauge: no answer",
  warned: "abgauge: warnings",
  wrong: "abgauge: numbers missing or wrong",
  waiting: "abgauge: not ready",
};
/** Severities that change the state. Other messages do not affect the numbers. */
const SEVERITIES = ["critical", "warning"];

function stateOf({ ready }, grave) {
  if (!ready) return "waiting";
  return ["wrong", "warned"][SEVERITIES.indexOf(grave[0]?.severity)] ?? "ready";
}

function drawState() {
  const warnings = answer === null ? [] : warningsOf(answer);
  const grave = SEVERITIES.flatMap((severity) => warnings.filter((it) => it.severity === severity));
  const state = silence ? "silent" : answer === null ? "asking" : stateOf(answer.stream, grave);
  const node = $("#state");
  attribute(node, "data-state", state);
  const old = state === "silent" && answer !== null ? ` The numbers below are from ${clock(arrived)}.` : "";
  text(node, STATES[state](grave.length) + old);
  document.body.classList.toggle("silent", state === "silent");
  document.title = TITLES[state];
  const waiting = state === "waiting" ? (answer.stream.waiting_for ?? []) : [];
  const ofPage = warnings.find(({ isOfPage }) => isOfPage);
  const reason = state === "waiting" ? { message: waiting[0] ?? "waiting for the brokers", runbook: "AbgaugeNotReady" } : (grave[0] ?? ofPage);
  const isTold = state !== "silent" && reason !== undefined;
  $("#reason").hidden = !isTold;
  // The state already shows the severity.
  if (isTold) sentence($("#reason"), { ...reason, message: state === "waiting" ? reason.message : plain(reason), severity: undefined });
  const further = waiting.slice(1);
  const beyond = further.length - MAX_WAITING;
  lines($("#waiting"), beyond > 0 ? [...further.slice(0, MAX_WAITING), `and ${count(beyond)} more`] : further);
  told($("#warnings"), warnings);
  // A message that is whole at the top need not be counted again.
  const isWhole = isTold && state !== "waiting" && plain(reason) === reason.message;
  const rest = isWhole ? warnings.filter((it) => it !== reason) : warnings;
  note($("#shows .count"), rest.length === 0 ? "" : count(rest.length));
  attribute($("#shows .count"), "aria-label", some(rest.length, "more message"));
}

/** One plain sentence of a message, and since when it is so. Operations have the rest. */
function plain({ message, runbook, since_ms: since }) {
  if (PLAIN[runbook] !== undefined) return `${PLAIN[runbook]}${since === undefined ? "" : `, since ${moment(since)}`}.`;
  return message.length > MAX_SAID ? `${message.slice(0, message.lastIndexOf(" ", MAX_SAID))} …` : message;
}

function drawTimes({ live_end_ms: live, settled_end_ms: settled, since_ms: since }) {
  instant($("[data-testid=live-end]"), live);
  instant($("[data-testid=settled-end]"), settled);
  instant($("[data-testid=since]"), since);
}

function instant(node, ms) {
  text(node, ms == null ? "–" : `${date(ms)} ${clock(ms)}`);
  attribute(node, "datetime", ms == null ? null : new Date(ms).toISOString());
  attribute(node, "data-value", ms);
}

/** Returns warnings of the daemon, about losses in the stream, and about this page itself. */
function warningsOf({ stream }) {
  const { exact, warnings = [], catalog, version } = stream;
  const isTold = ({ runbook }) => warnings.some((warning) => warning.runbook === runbook);
  const all = [...warnings, ...losses(stream).filter((loss) => !isTold(loss))];
  const add = (severity, message, runbook) => all.push({ severity, message, runbook, isOfPage: severity === "info" });
  if (exact === false && !["AbgaugeRecordsShed", "AbgaugeExactnessLost"].some((runbook) => isTold({ runbook })))
    add("critical", "The numbers are not exact: records were left out since the start.", "AbgaugeExactnessLost");
  if (catalog?.reload_fault)
    add("warning", `The catalogue could not be reloaded, and the previous one stays in use: ${catalog.reload_fault}`, "AbgaugeCatalogReloadFailed");
  if (version !== firstVersion) add("info", `abgauge is now version ${version}, but this page is from ${firstVersion}: reload it.`);
  if (asked) add("info", "This page updates only every five seconds: too many pages follow the stream already, or a proxy holds it back. It keeps trying.");
  return all;
}

function drawNotes({ notes }) {
  lines($("#notes ul"), notes.map(visible));
  $("#notes button").hidden = notes.length === 0;
}

function follow() {
  waitsSince = performance.now();
  document.body.setAttribute("aria-busy", "true");
  feed.follow(query());
}

let followed = query();

onChoice(() => {
  if (query() !== followed) {
    followed = query();
    follow();
  } else if (answer !== null) {
    draw();
  }
});

// The layout depends on how many columns fit.
addEventListener("resize", () => answer !== null && drawExperiments(answer, drawnAs()));

// The hash of the URL holds the choice, so the link cannot use it.
$(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  $(drawnAs().show === "operations" ? "#operations" : "#arms").focus();
});

$("#notes button").addEventListener("click", chooseNothing);

drawShows();
startTips();
startControls();
startCopying();
startDownloads(() => ({ answer, ...drawnAs(), chosen: chosen() }));
text($("#zone"), `your time zone (${Intl.DateTimeFormat().resolvedOptions().timeZone})`);
note($("#empty"), "");
follow();
