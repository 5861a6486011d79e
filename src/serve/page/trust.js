// One line that answers whether the numbers of an experiment can be trusted: each check in plain words, with its result, and the
// runbook if something is wrong. All facts are those of the latest analysis, or of the stream since its start.

import { $, attribute, keyed, named, text } from "./document.js";
import { isHeld } from "./looks.js";
import { clicksOf, losses, recordsOf } from "./stream.js";
import { STATES, equation, number, percentage, share, some } from "./words.js";

/** Runbooks of warnings about clicks that find no list. Others that affect numbers are about the data as a whole. */
const OF_CLICKS = ["AbgaugeUnmatchedClicks", "AbgaugePartitionersDiffer", "AbgaugeMisplacedKeys"];

/** Draws the checks of an experiment with an analysis. */
export function drawTrust(node, experiment) {
  const { looks, context } = experiment;
  node.hidden = looks?.as_of == null;
  if (node.hidden) return;
  const checks = [...ofComparison(experiment), ...ofStream(looks, context)];
  const [nBad, nUnknown] = [checks.filter(({ runbook }) => runbook).length, checks.filter(({ isUnknown }) => isUnknown).length];
  const of = some(checks.length, "check");
  const passed = nUnknown === 0 ? `All ${of} passed:` : `${checks.length - nUnknown} of ${of} passed, ${nUnknown} not possible yet:`;
  text($("b", node), nBad === 0 ? passed : `${nBad} of ${of} failed:`);
  attribute(node, "data-trusted", String(nBad === 0));
  // What is wrong comes first.
  checks.sort((a, b) => Boolean(b.runbook) - Boolean(a.runbook));
  keyed($("dl", node), checks, ({ name }) => name, named("check"));
}

/** Checks of the arms shown against their control. */
function ofComparison({ arms, looks: { no_users: noUsers } }) {
  const compared = arms.filter(({ comparison }) => comparison?.state !== undefined);
  if (compared.length === 0) return [];
  /** Result of the check that makes an arm invalid. */
  const result = (state, isKnown, good, bad) => {
    const failed = compared.find(({ comparison }) => comparison.state === state);
    if (failed !== undefined) return { value: bad(failed), runbook: STATES[state].runbook };
    return isKnown ? { value: `OK${good}` } : { value: "not checked", isUnknown: true };
  };
  const [{ comparison: { checks: { srm, multi_arm: multiArm } } }] = compared;
  const without = Math.max(...arms.map(({ analysis }) => (analysis?.lists > 0 ? (analysis.lists_without_user ?? 0) / analysis.lists : 0)));
  const hasUsers = compared.some(({ analysis }) => analysis?.users !== undefined);
  const refused = compared.map(({ comparison }) => comparison.checks.refused).filter((it) => it !== undefined);
  const worst = Math.max(0, ...refused.flatMap(({ arm, control }) => [arm, control]));
  const ratios = compared.map(({ comparison }) => comparison.checks.list_ratio).filter((it) => it !== undefined);
  const uncounted = noUsers === null ? "" : ` Not checked here: ${noUsers}.`;
  const split = result("invalid(srm)", srm !== undefined, ` (${equation("p", srm?.p)})`, () => `not as planned (${equation("p", srm?.p)})`);
  const users = result("invalid(users)", hasUsers, without === 0 ? "" : ` (unknown in ${percentage(without)} of an arm's lists)`, () => "missing, or one has too many lists");
  return [
    { name: "traffic split", ...split, tip: `Each arm should have its planned share of the users. A p of 0.001 or less means that assignment or logging is broken. It needs shares under [experiments.NAME], and users.${uncounted}` },
    { name: "each user in one arm", ...result("invalid(multi_arm)", multiArm !== undefined, ` (${percentage(multiArm?.share ?? 0, 2)} in two)`, () => `${percentage(multiArm?.share ?? 0)} in two`), tip: `Users who see two arms blur the difference. Above 1% of at least a thousand users, nothing can be trusted.${uncounted}` },
    { name: "users known", ...users, tip: "A list without a user counts as a user of its own, so intervals become too narrow. Above 20% of an arm's lists, no lift is shown." },
    { name: "equal losses", ...result("invalid(refused)", true, worst === 0 ? "" : ` (at most ${percentage(worst)} lost)`, ({ comparison: { checks } }) => `${percentage(checks.refused?.arm ?? 0)} against ${percentage(checks.refused?.control ?? 0)}`), tip: "Lists that were refused and clicks that were lost, as a share of each arm's lists. If an arm's share differs from its control's, their values cannot be compared." },
    { name: "equal lists per user", ...result("invalid(list_ratio)", ratios.length > 0, ratioOf(ratios), ({ name, comparison: { checks } }) => `${number(checks.list_ratio?.value ?? NaN, 3)} times the control's in ${name}`), tip: "Users of all arms should get equally many lists. If an arm changes that, a ratio per list is not an effect on users. It needs shares under [experiments.NAME]." },
  ];
}

/** Ratios of the arms shown to their control, and the lowest p of them. */
function ratioOf(ratios) {
  const values = ratios.map(({ value }) => value);
  const [least, most] = [Math.min(...values), Math.max(...values)].map((value) => number(value, 3));
  const p = equation("p", Math.min(...ratios.map(({ p }) => p)));
  return ` (${least === most ? least : `${least} to ${most}`} times the control's, ${ratios.length === 1 ? p : `lowest ${p}`})`;
}

/** Checks of the data behind all experiments. */
function ofStream(looks, { stream, nPartitions }) {
  const worries = [...(stream.warnings ?? []), ...losses(stream)].filter(({ severity }) => severity === "critical" || severity === "warning");
  const isOfClicks = ({ runbook }) => OF_CLICKS.includes(runbook);
  const [clicks, data] = [worries.find(isOfClicks), worries.find(({ runbook }) => WRONG[runbook] !== undefined)];
  const { unmatched, all } = clicksOf(stream);
  const { lost, read } = recordsOf(stream);
  const runbook = stream.exact === false ? "AbgaugeExactnessLost" : isHeld(looks, stream) ? "AbgaugeLooksHeldBack" : data?.runbook;
  const found = all === 0 ? { value: "no clicks yet", isUnknown: true } : { value: clicks ? `${share(unmatched, all)} find none` : `OK (${share(all - unmatched, all)})` };
  const missed = lost > 0 ? ` (${share(lost, read)} refused)` : "";
  return [
    { name: "clicks find their list", ...found, runbook: clicks?.runbook, tip: `Share of ${some(all, "click")} since the start whose list was read. The others count for no arm.` },
    { name: "data read", value: WRONG[runbook] ?? `OK${missed}`, runbook, tip: `All ${some(nPartitions, "partition")} of this instance have been read up to the analysis, and few records were refused as late, unreadable or in the future.` },
  ];
}

/** What is wrong with the data, by runbook. */
const WRONG = {
  AbgaugeLooksHeldBack: "the next analysis is held back",
  AbgaugeExactnessLost: "records were left out",
  AbgaugeInvalidRecords: "records cannot be read",
  AbgaugeLateRecords: "records came too late",
  AbgaugeFutureRecords: "records are in the future",
  AbgaugeRecordsShed: "records are being dropped",
  AbgaugePartitionHeld: "a record cannot be read yet",
  AbgaugeEventAhead: "events have times in the future",
};
