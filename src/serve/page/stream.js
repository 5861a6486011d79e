// Health of the stream: a strip at the top, and the detailed counts below.

import { $, attribute, keyed, named, note, text, withTip } from "./document.js";
import { ABOVE, ENOUGH } from "./limits.js";
import { OUTCOMES, RESULTS, bytes, clock, count, date, moment, number, share, some, span } from "./words.js";

/** Outcomes that are not a fault of the producer, and so do not count as refused. */
const NOT_REFUSED = ["accepted", "duplicate", "ignored", "replayed", "skipped"];
/** Other outcomes, by the alert that watches them. */
const WATCHED = {
  AbgaugeInvalidRecords: ["invalid"],
  AbgaugeLateRecords: ["late", "after_settled", "late_row"],
  AbgaugeFutureRecords: ["future"],
  AbgaugeRecordsShed: ["shed"],
};

export function drawHealth(answer) {
  const { stream, n_partitions: nPartitions, lag } = answer;
  const records = Object.entries(stream.records ?? {});
  const tiles = [
    { name: "lag", value: lag == null ? "–" : some(lag, "record"), tip: "Records between the read positions and the ends of the log, all partitions together." },
    {
      name: "delay of final lists",
      value: stream.settle_delay_seconds == null ? "–" : span(Math.max(0, stream.settle_delay_seconds)),
      isMuch: stream.ready && stream.settle_delay_seconds > ABOVE.AbgaugeSettleDelay,
      tip: `How much later than attribution + lateness lists become final, in event time, in the slowest pair of partitions. Near zero when all is well, marked above ${span(ABOVE.AbgaugeSettleDelay)}.`,
    },
    newestList(answer),
    { name: "open lists", value: count(stream.open_lists), tip: "Lists whose attribution window is open: they count in the live view, and not yet in the final one." },
    { name: "clicks waiting", value: count(stream.clicks_waiting), tip: "Clicks whose list has not been read yet." },
    memory(stream),
    { name: "partitions", value: count(nPartitions), tip: "Partitions of the topics that this instance reads." },
    ...records.map(([topic, outcomes]) => refused(topic, outcomes)),
    unmatchedTile(stream),
  ];
  keyed($("#tiles"), tiles, ({ name }) => name, named("tile"));
  $("#health").hidden = false;
}

/** Plain words for lost records, by the alert that watches them. */
const PLAIN = {
  AbgaugeInvalidRecords: "Records are being lost",
  AbgaugeLateRecords: "Records are being lost",
  AbgaugeFutureRecords: "Records are being lost",
  AbgaugeUnmatchedClicks: "Clicks are being lost",
};
/** Descriptions of lost records, by the alert that watches them. The daemon itself reports shed records. */
const LOST = {
  AbgaugeInvalidRecords: "cannot be read",
  AbgaugeLateRecords: "came too late to count",
  AbgaugeFutureRecords: "are in the future and do not count",
};
/** Share of losses above which the remaining numbers are meaningless. */
const MOST = 0.5;

/** Returns the losses of the stream since the start that exceed the threshold of an alert. */
export function losses(stream) {
  const { records = {}, since_ms: since } = stream;
  const loss = (...of) => lossOf(since, ...of);
  const ofTopics = Object.entries(records).flatMap(([topic, outcomes]) => {
    const read = readOf(outcomes);
    return Object.entries(LOST).map(([alert, what]) => loss(alert, sumOf(outcomes, WATCHED[alert]), read, `records of topic ${topic} ${what}`));
  });
  const clicks = clicksOf(stream);
  const unmatched = loss("AbgaugeUnmatchedClicks", clicks.unmatched, clicks.all, "accepted clicks find no list");
  // Without a list there are no numbers, whatever the reason.
  const [[topic, served] = ["", {}]] = Object.entries(records);
  const read = readOf(served);
  const message = `Nothing is counted: none of ${some(read, "record")} of topic ${topic} was accepted as a list${whence(since)}.`;
  const nothing = read >= ENOUGH && !served.accepted ? { severity: "critical", message, runbook: "AbgaugeInvalidRecords" } : null;
  return [nothing, unmatched, ...ofTopics].filter((it) => it !== null);
}

function lossOf(since, alert, n, all, what) {
  if (!isMuch(alert, n, all)) return null;
  return { severity: n > MOST * all ? "critical" : "warning", message: `${PLAIN[alert]}: ${share(n, all)} of the ${what}${whence(since)}.`, runbook: alert };
}

const whence = (since) => (since == null ? "" : `, since ${moment(since)}`);

const isMuch = (alert, n, all) => all >= ENOUGH && n > ABOVE[alert] * all;
const sumOf = (outcomes, names) => names.reduce((sum, name) => sum + (outcomes[name] ?? 0), 0);
/** Records read, without replayed ones. */
const readOf = (outcomes) => Object.entries(outcomes).reduce((sum, [name, n]) => sum + (name === "replayed" ? 0 : n), 0);

function newestList({ newest_list_ms: newest, stream: { live_end_ms: end } }) {
  const seconds = newest == null || end == null ? null : Math.max(0, (end - newest) / 1000);
  return {
    name: "newest list",
    value: seconds === null ? "–" : `${span(seconds)} old`,
    isMuch: seconds > ABOVE.AbgaugeNoEvents,
    tip: `Event time from the newest list of any arm to the live end, which follows the clock while no events arrive. Marked above ${span(ABOVE.AbgaugeNoEvents)}: check the producers.`,
  };
}

function memory({ state_bytes: taken, state_max_bytes: bound }) {
  return {
    name: "memory",
    value: bytes(taken),
    isMuch: bound != null && taken > ABOVE.AbgaugeStateNearBound * bound,
    tip: `Memory of open lists and waiting clicks, at most ${bytes(bound)} (limits.max_state). Marked above ${share(ABOVE.AbgaugeStateNearBound, 1)} of it: at the limit, records are shed.`,
  };
}

function refused(topic, outcomes) {
  const all = Object.entries(outcomes).filter(([name, n]) => n > 0 && name !== "replayed");
  const { lost, read } = recordsOf({ records: { [topic]: outcomes } });
  const causes = all.map(([name, n]) => `${name} ${share(n, read)}`).join(", ");
  return {
    name: `${topic}: refused`,
    value: share(lost, read),
    isMuch: Object.entries(WATCHED).some(([alert, names]) => isMuch(alert, sumOf(outcomes, names), read)),
    tip: `Share of ${some(read, "record")} of topic ${topic} since the start that were refused, without replayed ones. Marked if ${share(ABOVE.AbgaugeInvalidRecords, 1)} are invalid, late or future, or if any is shed. By outcome: ${causes || "none read yet"}.`,
  };
}

/** Records read and refused since the start, over all topics. */
export function recordsOf({ records = {} }) {
  const sum = (of) => Object.values(records).reduce((n, outcomes) => n + of(outcomes), 0);
  const lostOf = (outcomes) => sumOf(outcomes, Object.keys(outcomes).filter((name) => !NOT_REFUSED.includes(name)));
  return { lost: sum(lostOf), read: sum(readOf) };
}

/** Accepted clicks since the start, and those whose list never came. */
export function clicksOf({ click_results: results = {} }) {
  return { unmatched: results.unmatched ?? 0, all: sumOf(results, Object.keys(results)) };
}

function unmatchedTile(stream) {
  const { unmatched, all } = clicksOf(stream);
  return {
    name: "unmatched clicks",
    value: share(unmatched, all),
    isMuch: isMuch("AbgaugeUnmatchedClicks", unmatched, all),
    tip: `Share of the clicks accepted since the start whose list never came. Marked above ${share(ABOVE.AbgaugeUnmatchedClicks, 1)}: check the partitioner of the producers.`,
  };
}

export function drawStream(answer) {
  const { stream } = answer;
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
    { name: "clicks waiting", numbers: [stream.clicks_waiting] },
    { name: "open lists", numbers: [stream.open_lists] },
    { name: "state", help: "Bytes of open lists and waiting clicks.", numbers: [stream.state_bytes], format: bytes },
    { name: "arms folded into __other__", help: "Arms beyond max_arms.", numbers: [stream.arms_folded] },
    ...catalogRows(stream),
  ]);

  const partitions = (stream.partitions ?? []).map((it) => ({ ...it, name: `${it.topic}-${it.partition}` }));
  // Both times are sampled at slightly different moments, so a watermark may seem ahead of the live end.
  const cells = ({ lag, watermark_delay_seconds: delay }) => [count(lag), delay == null ? "–" : `${number(Math.max(0, delay), 1)}\u00a0s`];
  rows($("[data-testid=partitions]"), partitions.map((it) => ({ name: it.name, numbers: cells(it), format: String })));
  const beyond = answer.n_partitions - partitions.length;
  note($("#more-partitions"), beyond > 0 ? `${some(beyond, "more partition")}, less far behind: see /metrics` : "");

  text($("#version"), stream.version ?? "");
  $("#stream").hidden = false;
}

function catalogRows({ catalog, arms_without_coverage: leftOut }) {
  if (catalog == null) return [];
  return [
    { name: "catalogue", help: `Number of items. Read ${date(catalog.taken_ms)} ${clock(catalog.taken_ms)}.`, numbers: [catalog.items] },
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
    head.append(help ? withTip(name, help) : name);
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
