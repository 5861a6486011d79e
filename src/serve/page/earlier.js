// Links to an earlier analysis: lifts as of that analysis, from the history, above those of the latest one.

import { fetchCharts } from "./charts.js";
import { looksOf } from "./chart-data.js";
import { choose, chosen } from "./choice.js";
import { $, text } from "./document.js";
import { primariesOf } from "./download.js";
import { moment, nameOf, percentage, signed, visible } from "./words.js";

/** Maximum number of arms with their lifts in the note. */
const MAX_ARMS = 4;

/** Returns a function that draws the note of a section, whose history is fetched once. */
export function earlierOf(section) {
  const place = $("[data-testid=earlier]", section);
  $("button", place).addEventListener("click", () => choose({ as_of: "" }));
  let asked = "";
  return async (experiment) => {
    const asOf = Date.parse(chosen().as_of ?? "");
    const latest = experiment.looks?.as_of ?? null;
    const [metric] = primariesOf(experiment.arms);
    place.hidden = !(asOf < latest) || metric === undefined;
    if (place.hidden || asked === asOf + metric) return;
    asked = asOf + metric;
    text($("span", place), `This link is from the analysis of ${moment(asOf)}. The page shows a later one.`);
    const { arms, name, context: { told } } = experiment;
    const names = arms.filter(({ comparison }) => comparison).map((arm) => arm.name).slice(0, MAX_ARMS);
    const { answer, fault } = await fetchCharts({ experiment: name, arms: JSON.stringify(names), metric, profile: told.profile, window: told.window });
    // The next view tries again.
    if (fault !== "") asked = "";
    else text($("span", place), sentence(asOf, metric, looksOf(answer, "lift")));
  };
}

function sentence(asOf, metric, history) {
  const at = history?.x.findLastIndex((time) => time <= asOf) ?? -1;
  const known = history?.arms.filter(({ values }) => values[at] != null) ?? [];
  const begin = `This link is from the analysis of ${moment(asOf)}. The page shows a later one.`;
  if (known.length === 0) return `${begin} Lifts as of then are not kept.`;
  const closest = history.x[at] === asOf ? "then" : `as of ${moment(history.x[at])}, the closest analysis that is kept`;
  const write = (lift) => signed(lift, percentage);
  const lifts = known.map(({ name, values, lower, upper }) => `${visible(name)} ${write(values[at])}${lower[at] == null ? "" : ` (${write(lower[at])} to ${write(upper[at])})`}`);
  return `${begin} ${nameOf(metric)} ${closest}: ${lifts.join(", ")}.`;
}
