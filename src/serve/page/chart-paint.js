// Parts of a chart besides its lines: the shaded area that is still open to clicks, marks, and the labels of the time axis.

import { clock, date } from "./words.js";

const DAY_MS = 86_400_000;
/** Height of a line of text. */
const LINE = 14;
const FONT = (size) => `${size * devicePixelRatio}px system-ui, sans-serif`;

/** Shades the area that is still open to clicks. */
export function shadeOpen(u, { openFrom }, ink) {
  if (openFrom == null) return;
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  const from = Math.max(left, u.valToPos(openFrom, "x", true));
  ctx.save();
  ctx.fillStyle = faded(ink, 0.12);
  if (from < left + width) ctx.fillRect(from, top, left + width - from, height);
  ctx.restore();
}

/** Draws the levels as thin dotted lines, each with its label above its left end. Returns those on the scale. */
export function paintLevels(u, { levels = [] }, ink) {
  const { ctx } = u;
  const { left, width } = u.bbox;
  const shown = levels.filter(({ value }) => value <= u.scales.y.max);
  let above = -Infinity; // place of the last label
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = ink;
  ctx.lineWidth = devicePixelRatio;
  ctx.font = FONT(11);
  ctx.textAlign = "left";
  ctx.setLineDash([devicePixelRatio, 3 * devicePixelRatio]);
  for (const { value, label } of shown) {
    const y = Math.round(u.valToPos(value, "y", true)) + 0.5;
    line(ctx, left, y, left + width, y);
    // The caption has the numbers of all levels, also of those whose labels would overlap.
    if (y - above < LINE * devicePixelRatio) continue;
    ctx.fillText(label, left + 4 * devicePixelRatio, y - 4 * devicePixelRatio);
    above = y;
  }
  ctx.restore();
  return shown;
}

/** Draws the zero line and the marks for events that affect the numbers. Returns the visible marks. */
export function paintMarks(u, { marks = [], openFrom, isWith0 }, ink) {
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  const { min, max } = u.scales.x;
  const shown = marks.filter(({ at }) => at >= min && at <= max);
  const above = top - 3 * devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = ink;
  ctx.lineWidth = devicePixelRatio;
  ctx.font = FONT(11);
  if (isWith0) {
    ctx.setLineDash([]); // The last series may have been dashed.
    const y = Math.round(u.valToPos(0, "y", true)) + 0.5;
    line(ctx, left, y, left + width, y);
  }
  ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.textAlign = "center";
  shown.forEach(({ at }, i) => {
    const x = Math.round(u.valToPos(at, "x", true)) + 0.5;
    line(ctx, x, top, x, top + height);
    ctx.fillText(String(i + 1), x, above);
  });
  ctx.textAlign = "right";
  if (openFrom != null && openFrom < max) ctx.fillText("still open to clicks", left + width, above);
  ctx.restore();
  return shown;
}

function line(ctx, fromX, fromY, toX, toY) {
  ctx.beginPath();
  ctx.moveTo(fromX, fromY);
  ctx.lineTo(toX, toY);
  ctx.stroke();
}

/** Widens an empty range, because a scale needs some length. */
export function wide(low, high) {
  return low == null || low < high ? [low, high] : [low - 60_000, high + 60_000];
}

/** Returns places without neighbors, which a line would not show. */
export function alone(u, series) {
  const values = u.data[series];
  const places = [];
  values.forEach((value, i) => value != null && values[i - 1] == null && values[i + 1] == null && places.push(i));
  return places.length > 0 ? places : null;
}

/** Makes a computed `rgb(r, g, b)` color translucent. */
export function faded(colour, alpha) {
  const [red, green, blue] = colour.match(/[\d.]+/g) ?? [128, 128, 128];
  return `rgb(${red} ${green} ${blue} / ${alpha})`;
}

/** Axis labels in the reader's time zone, with the date at the first label of a day. */
export function moments(splits, step) {
  let day = "";
  return splits.map((ms) => {
    const today = date(ms).slice(5);
    const isNew = today !== day;
    day = today;
    if (step >= DAY_MS) return today;
    const time = step < 60_000 ? clock(ms) : clock(ms).slice(0, 5);
    return isNew ? `${time}\n${today}` : time;
  });
}
