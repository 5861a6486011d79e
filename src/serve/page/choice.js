// The reader's choice, kept in the hash of the URL: a link shows the same, and the browser's back button works.

/** Parameters in URL order. All are sent to the server except those that only change how its answer is drawn. */
const NAMES = ["show", "scope", "window", "k", "profile", "metrics", "view", "difference", "sort", "filter", "experiment", "page", "chart", "band", "unfolded", "as_of"];
const DRAWN_HERE = {
  show: ["experiments", "operations"],
  view: ["settled", "both", "live"],
  difference: ["relative", "absolute"],
};
/** Parameters with any value that are not sent to the server. */
const FREE_HERE = ["chart", "band", "unfolded", "as_of"];
/** Parameters that change the rows, and so return to the first page of them. */
const OF_ROWS = ["sort", "filter", "experiment"];
/** Maximum number of unknown parameters that are sent to the server. */
const MOST_STRANGE = 5;

const listeners = [];

export function chosen() {
  const hash = new URLSearchParams(location.hash.slice(1));
  const entries = NAMES.map((name) => [name, hash.get(name)]).filter(([, value]) => value);
  return Object.fromEntries(entries);
}

/** Resets everything to its default. */
export function chooseNothing() {
  choose(Object.fromEntries(NAMES.map((name) => [name, ""])));
}

/** Returns the parameters that only affect drawing. */
export function drawnAs() {
  const wanted = chosen();
  const one = (name) => (DRAWN_HERE[name].includes(wanted[name]) ? wanted[name] : DRAWN_HERE[name][0]);
  return { show: one("show"), view: one("view"), difference: one("difference") };
}

/** Returns the query for the server. It includes unknown parameters, so that the server's notes list them with everything else that does not exist. */
export function query() {
  const wanted = chosen();
  const asked = parameters(wanted, (name) => !FREE_HERE.includes(name) && !DRAWN_HERE[name]?.includes(wanted[name]));
  const hash = new URLSearchParams(location.hash.slice(1));
  const strange = new URLSearchParams([...hash].filter(([name]) => !NAMES.includes(name)).slice(0, MOST_STRANGE));
  return [asked, String(strange)].filter(Boolean).join("&");
}

/** Returns the URL of another part of the page, with the same choice otherwise. */
export function addressOf(show) {
  const next = { ...chosen(), show: show === DRAWN_HERE.show[0] ? "" : show };
  return `#${parameters(next, () => true)}`;
}

/** Returns the whole URL of an experiment alone at an analysis, with the same choice otherwise. */
export function sharedAddress(experiment, asOf) {
  const next = { ...chosen(), experiment, as_of: asOf === undefined ? "" : `${new Date(asOf).toISOString().slice(0, 16)}Z` };
  return new URL(`#${parameters(next, () => true)}`, location.href).href;
}

/** Changes the choice. An empty value resets a parameter. Adds a history entry, unless the change only refines the current one. */
export function choose(changes, { refines = false } = {}) {
  const next = { ...chosen(), ...changes };
  if (OF_ROWS.some((name) => name in changes)) next.page = changes.page;
  const hash = `#${parameters(next, () => true)}`;
  if (hash === (location.hash || "#")) return;
  if (refines) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  listeners.forEach((listen) => listen());
}

// ---- Parts that can be folded: all charts of an experiment, and each of its arms -----------------

const escaped = (name) => name.replaceAll(/[%,/]/g, encodeURIComponent);

/** Returns the name of a part in the URL. */
export function partOf(experiment, arm) {
  return arm === undefined ? escaped(experiment) : `${escaped(experiment)}/${escaped(arm)}`;
}

/** Parts that the reader has opened or closed. A closed one starts with "!". */
function unfolded() {
  return (chosen().unfolded ?? "").split(",").filter(Boolean);
}

/** Returns whether a part is open: as the reader has left it, or else by default. */
export function isUnfolded(part, byDefault) {
  const parts = unfolded();
  return parts.includes(part) || (byDefault && !parts.includes(`!${part}`));
}

export function unfold(part, isOpen) {
  const others = unfolded().filter((it) => it !== part && it !== `!${part}`);
  choose({ unfolded: [...others, isOpen ? part : `!${part}`].join(",") }, { refines: true });
}

/** Calls `listen` whenever the choice changes, on the page or in the URL. */
export function onChoice(listen) {
  listeners.push(listen);
  addEventListener("hashchange", listen);
}

function parameters(values, isWanted) {
  const wanted = NAMES.filter((name) => values[name] && isWanted(name));
  return new URLSearchParams(wanted.map((name) => [name, values[name]])).toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
}
