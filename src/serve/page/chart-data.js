// Conversion of the daemon's answer about one metric of some arms into drawable numbers by arm over common times.

/**
 * Cells of a window, oldest first: the settled ones, then those still open to clicks.
 * Returns { x: their middles, begins, cell, openFrom, arms: [{ name, values, open }] }, or null if there is no list.
 */
export function cellsOf({ arms }, settledEnd) {
  const lines = arms.flatMap(({ live, settled }) => [live, settled]).filter(Boolean);
  const filled = lines.flatMap(({ start_ms: start, cell_ms: cell, lists }) => lists.flatMap((n, i) => (n > 0 ? [start + i * cell] : [])));
  if (filled.length === 0) return null;
  const cell = lines[0].cell_ms;
  const [first, last] = filled.reduce(([low, high], ms) => [Math.min(low, ms), Math.max(high, ms)], [Infinity, -Infinity]);
  const begins = Array.from({ length: Math.round((last - first) / cell) + 1 }, (_, i) => first + i * cell);
  const isOpen = (begin) => settledEnd == null || begin + cell > settledEnd + 1;
  const nSettled = begins.filter((begin) => !isOpen(begin)).length;
  const ofArm = ({ name, live, settled }) => {
    const values = begins.map((begin, i) => (i < nSettled ? valueAt(settled, begin) : null));
    // The open part continues from the end of the settled line.
    const enough = Math.max(0, ...(live?.lists ?? [])) / 2;
    const open = begins.map((begin, i) => (i >= nSettled ? valueAt(live, begin, enough) : i === nSettled - 1 ? values[i] : null));
    return { name, values, open };
  };
  return { x: begins.map((begin) => begin + cell / 2), begins, cell, nSettled, openFrom: begins[nSettled] ?? null, arms: arms.map(ofArm) };
}

/** Null for a cell with fewer lists than `enough`, whose value would be mostly noise. */
function valueAt(line, begin, enough = 0) {
  if (line === undefined) return null;
  const place = Math.round((begin - line.start_ms) / line.cell_ms);
  return line.lists[place] >= enough ? (line.values[0][place] ?? null) : null;
}

/** Number of settled cells in a line. The others may still get clicks. */
export function nSettledOf({ start_ms: start, cell_ms: cell, lists }, settledEnd) {
  if (settledEnd == null) return 0;
  return Math.max(0, Math.min(lists.length, Math.floor((settledEnd + 1 - start) / cell)));
}

/** History of `what` ("value" or "lift") at looks: { x: their times, arms: [{ name, values, lower, upper }] }, or null without any. */
export function looksOf({ looks, arms }, what) {
  if (looks === undefined) return null;
  const shown = arms.filter((arm) => arm.looks?.[what].middle.some((it) => it !== null));
  if (shown.length === 0) return null;
  const ofArm = ({ name, looks: { [what]: it } }) => ({ name, values: it.middle, lower: it.lower, upper: it.upper });
  return { x: looks.times, arms: shown.map(ofArm) };
}

/**
 * Lifts in windows that follow each other without overlap, the last of which ends with the latest look:
 * { x: their ends, window: its name, arms: [{ name, values, lower, upper }] }, or null with fewer than two.
 */
export function windowsOf({ looks, lift_window: window, arms }) {
  const shown = arms.filter((arm) => arm.looks?.in_window !== undefined);
  if (looks === undefined || window === undefined || shown.length === 0) return null;
  const places = [];
  for (let i = looks.times.length - 1; i >= 0; i--) {
    const isKnown = shown.some((arm) => arm.looks.in_window.middle[i] !== null);
    if (isKnown && (places.length === 0 || looks.times[places[0]] - looks.times[i] >= window.span_ms)) places.unshift(i);
  }
  if (places.length < 2) return null;
  const at = (values) => places.map((i) => values[i]);
  const ofArm = ({ name, looks: { in_window: it } }) => ({ name, values: at(it.middle), lower: at(it.lower), upper: at(it.upper) });
  return { x: at(looks.times), window: window.name, arms: shown.map(ofArm) };
}

/** An arm with at least this share of its planned users has the plan on the scale of its chart. A farther plan would flatten the lines. */
const NEAR = 0.5;

/** Planned numbers of users, each with its arms: [{ value, names, isNear }], highest first. Arms without a planned share have none. */
export function plannedOf(arms, plannedUsers) {
  const levels = new Map();
  if (plannedUsers === undefined) return [];
  for (const { name, planned, enrolled } of arms.filter(({ planned }) => planned !== undefined)) {
    const value = Math.round(plannedUsers * planned);
    const { names, isNear } = levels.get(value) ?? { names: [], isNear: false };
    levels.set(value, { value, names: [...names, name], isNear: isNear || (enrolled.at(-1) ?? 0) >= NEAR * value });
  }
  return [...levels.values()].sort((a, b) => b.value - a.value);
}

/** Range of a scale with the levels that are near enough to leave the lines half of the height, with room for their labels. */
export function withLevels([low, high], levels) {
  const near = levels.map(({ value }) => value).filter((value) => NEAR * value <= high);
  return [low, Math.max(high, ...near.map((value) => value * 1.12))];
}

/**
 * Lowest and highest drawn value between two places, with a margin, or null if nothing is drawn. Ignored are bounds in the first
 * quarter of these places, and open values next to settled ones: they would flatten everything else.
 */
export function extentOf(arms, from, to, isWith0) {
  const narrowFrom = from + Math.ceil((to - from) / 4);
  const isSettled = arms.some(({ values }) => values.slice(from, to + 1).some((it) => it != null));
  let [low, high] = isWith0 ? [0, 0] : [Infinity, -Infinity];
  const take = (values, begin) => {
    for (let i = begin; i <= to; i++) {
      const value = values?.[i];
      if (value == null) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  };
  for (const { values, open, lower, upper } of arms) {
    take(isSettled ? values : open, lower === undefined ? from : narrowFrom);
    [lower, upper].forEach((it) => take(it, narrowFrom));
  }
  if (low > high) return null;
  const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 0.01;
  return [low - room, high + room];
}
