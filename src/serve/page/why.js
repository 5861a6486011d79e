// Explanation of a value: a button on each value opens a box with its numerator and denominator, the definition of its metric, and
// its difference from the control.

import { $, attribute, lines, note, placeAt, text } from "./document.js";
import { count, metricOf, nameOf, namesOfParts, percentage, signed, visible } from "./words.js";

/** If an experiment's shares have changed, its compared values are not the ratio of two sums. */
const OVER_EPOCHS = "Shares have changed, so this is a mean over the time spans between the changes. Each span has its own ratio of two sums, weighted by the lists of both arms.";

const box = $("#why");
const facts = new WeakMap(); // button → what it explains
let opened = null; // button of the open box

/**
 * Draws a value into `place`, as a button that explains it. `it` has the metric's `key`, the `arm` and the `value`; the `parts` of the
 * value if it has any; the `profile` if it is not that of analyses; and its arm's `comparison` and `analysis` if the value comes from them.
 */
export function drawValue(place, it) {
  if (it.value == null) return text(place, "–");
  const button = $("button", place) ?? buttonIn(place);
  text(button, metricOf(idOf(it.key)).text(it.value));
  facts.set(button, it);
  if (button === opened) draw(it);
}

function buttonIn(place) {
  const button = document.createElement("button");
  for (const [name, it] of Object.entries({ type: "button", class: "explain why", popovertarget: box.id })) attribute(button, name, it);
  button.addEventListener("click", (event) => {
    event.preventDefault(); // The browser would close the box of another value instead of moving it here.
    open(button);
  });
  place.replaceChildren(button);
  return button;
}

function open(button) {
  if (opened === button) return box.hidePopover();
  opened = button;
  draw(facts.get(button));
  if (!box.matches(":popover-open")) box.showPopover({ source: button });
  placeAt(button, box);
}

box.addEventListener("beforetoggle", ({ newState }) => {
  if (newState === "closed") opened = null;
});

function draw({ key, arm, value, parts, profile, of: { comparison, analysis } = {} }) {
  const metric = metricOf(idOf(key));
  text($(".of", box), nameOf(key));
  text($("bdi", box), visible(arm));
  const names = namesOfParts(key, profile);
  const ratio = parts && names && `${part(parts.numerator, names.numerator)} ÷ ${part(parts.denominator, names.denominator)} = ${metric.text(value)}`;
  text($(".parts", box), ratio || OVER_EPOCHS);
  note($(".meaning", box), metric.help);
  // Lifts of an invalid comparison are folded on the page.
  const isShown = comparison !== undefined && comparison.label !== "Invalid";
  lines($(".compared", box), isShown ? differences(comparison.metrics[key] ?? {}, analysis, key, metric) : []);
}

/** The difference from the control, the lift since the start, and the lift in the last window alone. */
function differences({ absolute, ...since }, analysis, key, metric) {
  const windows = Object.entries(analysis?.lifts ?? {}).filter(([, lifts]) => lifts[key] !== undefined);
  return [
    absolute && `Difference from the control: ${range(absolute.value, absolute, metric.difference)}.`,
    since.lift !== undefined && `Lift since the start, latest analysis: ${range(since.lift, since, percentage)}.`,
    ...windows.map(([name, { [key]: its }]) => `Lift in the last ${name} alone: ${range(its.lift, its, percentage)}, valid if you read it once.`),
  ].filter(Boolean);
}

const idOf = (key) => key.split("@")[0];

/** A sum with its name, which starts with a plural unless it is a sum of scores. */
function part(n, name) {
  if (name.startsWith("sum of ")) return `${n.toLocaleString("en", { maximumFractionDigits: 4 })} (${name})`;
  return `${count(n)} ${n === 1 ? name.replace(/^(\w+)s\b/, "$1") : name}`;
}

/** A difference with its interval, if that is known. */
function range(value, { lower, upper }, write) {
  const bounds = lower === undefined ? "" : ` (${signed(lower, write)} to ${signed(upper, write)})`;
  return signed(value, write) + bounds;
}
