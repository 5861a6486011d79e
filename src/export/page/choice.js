// What is chosen: kept in the hash of the address, so that a link shows the same and the way back leads through it.

/** In the order of the address. The server is told all of them but those that only change how its answer is drawn. */
const NAMES = ["show", "scope", "window", "k", "profile", "metrics", "view", "difference", "sort", "filter", "experiment", "page"];
const DRAWN_HERE = {
  show: ["experiments", "operations"],
  view: ["settled", "both", "live"],
  difference: ["relative", "absolute"],
};
/** What changes the rows, and so leads back to the first page of them. */
const OF_ROWS = ["sort", "filter", "experiment"];
/** Names in the address that are none of ours, and still worth a word. */
const MOST_STRANGE = 5;

const listeners = [];

export function chosen() {
  const hash = new URLSearchParams(location.hash.slice(1));
  const entries = NAMES.map((name) => [name, hash.get(name)]).filter(([, value]) => value);
  return Object.fromEntries(entries);
}

/** Everything by its default again. */
export function chooseNothing() {
  choose(Object.fromEntries(NAMES.map((name) => [name, ""])));
}

/** How the answer is drawn, whatever it is. */
export function drawnAs() {
  const wanted = chosen();
  const one = (name) => (DRAWN_HERE[name].includes(wanted[name]) ? wanted[name] : DRAWN_HERE[name][0]);
  return { show: one("show"), view: one("view"), difference: one("difference") };
}

/** What the server is asked; and what we do not know, so that it says so among all else that is not there. */
export function query() {
  const wanted = chosen();
  const asked = parameters(wanted, (name) => !DRAWN_HERE[name]?.includes(wanted[name]));
  const hash = new URLSearchParams(location.hash.slice(1));
  const strange = new URLSearchParams([...hash].filter(([name]) => !NAMES.includes(name)).slice(0, MOST_STRANGE));
  return [asked, String(strange)].filter(Boolean).join("&");
}

/** The address at which another part of the page is shown, and all else is as it is chosen. */
export function addressOf(show) {
  const next = { ...chosen(), show: show === DRAWN_HERE.show[0] ? "" : show };
  return `#${parameters(next, () => true)}`;
}

/** Changes the choice; an empty value is none. A way back leads to the one before, unless this only refines it. */
export function choose(changes, { refines = false } = {}) {
  const next = { ...chosen(), ...changes };
  if (OF_ROWS.some((name) => name in changes)) next.page = changes.page;
  const hash = `#${parameters(next, () => true)}`;
  if (hash === (location.hash || "#")) return;
  if (refines) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  listeners.forEach((listen) => listen());
}

/** Calls `listen` whenever the choice has changed, on the page or in the address. */
export function onChoice(listen) {
  listeners.push(listen);
  addEventListener("hashchange", listen);
}

function parameters(values, isWanted) {
  const wanted = NAMES.filter((name) => values[name] && isWanted(name));
  return new URLSearchParams(wanted.map((name) => [name, values[name]])).toString().replaceAll("%2C", ",");
}
