// Chart over time, drawn by uPlot: axes, lines with bands, and marks. Values are available by pointer, by keys, and as a table.

import { $, attribute, lines, note, text } from "./document.js";
import { extentOf, withLevels } from "./chart-data.js";
import { alone, faded, moments, paintLevels, paintMarks, shadeOpen, wide } from "./chart-paint.js";
import { drawKey, drawTable } from "./chart-reading.js";
import { near, visible } from "./words.js";

const { uPlot } = globalThis;
const HEIGHT = { wide: 240, narrow: 200 };
/** Width on paper, whatever the screen. In a column of A4, the text of a chart then has about the size of its caption. */
const PRINTED = 480;
/** Shorter brushes, in pixels, count as clicks. */
const LEAST_BRUSH = 8;
/** Text in place of the time while no place is selected. */
const UNREAD = "Point at the chart, tap it, or use arrow keys, to read values.";
const MARKS = {
  process: "abgauge started",
  start: "the experiment’s start",
  shares: "shares changed",
  asked: "settings changed",
};

let charts = 0;

const all = new Set();

/** A canvas does not follow the page's change between dark and light. */
function repaint() {
  for (const chart of all) {
    if (chart.isThere) chart.repaint();
    else all.delete(chart);
  }
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
new MutationObserver(repaint).observe(document.documentElement, { attributes: true, attributeFilter: ["data-colours"] });

let isPrinting = false;

/** Redraws all charts for paper or for the screen. A print does not lay out canvases again, and keeps the colors of the screen. */
function print(is) {
  isPrinting = is;
  document.documentElement.classList.toggle("printing", is);
  for (const chart of all) chart.fit();
  repaint();
}
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));

export class Chart {
  #node;
  #plot;
  #of = null; // data that is drawn
  #uplot = null;
  #key = "";
  #at = null; // selected place
  #isZoomed = false;

  /** Draws into `node`, a stamped figure. */
  constructor(node) {
    this.#node = node;
    this.#plot = $(".plot", node);
    const heading = $("h4", node);
    heading.id = `chart-${charts++}`;
    for (const it of [node, this.#plot, $("table", node)]) attribute(it, "aria-labelledby", heading.id);
    this.#plot.addEventListener("keydown", (event) => this.#pressed(event));
    this.#plot.addEventListener("blur", () => this.#point(null));
    $(".whole", node).addEventListener("click", () => {
      this.#whole();
      this.#plot.focus();
    });
    $("details", node).addEventListener("toggle", () => this.#drawTable());
    new ResizeObserver(() => this.fit()).observe(this.#plot);
    all.add(this);
  }

  get isThere() {
    return this.#node.isConnected;
  }

  repaint() {
    this.#uplot?.redraw(false);
  }

  /** Follows the width of the page, or of paper. */
  fit() {
    if (this.#uplot === null || this.#plot.clientWidth === 0) return;
    const size = this.#size();
    if (size.width !== this.#uplot.width) this.#uplot.setSize(size);
  }

  /**
   * { title, about, x, placeOf, write, tick, arms: [{ name, colour, values, open, lower, upper }], hasTotals, hasBands, marks, levels, openFrom, isWith0 }
   * `hasTotals`: each value covers everything up to its time, so the key shows the last one while no place is selected.
   * `levels`: values that are only drawn, as lines with a `label` across the chart.
   * `placeOf(i)` formats the time of a place, `write(value)` a value, and `tick(value, step)` a value on the axis, whose ticks are `step` apart.
   */
  draw(of) {
    const read = this.#of?.x[this.#at];
    this.#of = of;
    text($("h4", this.#node), of.title);
    note($(".about", this.#node), of.about);
    attribute(this.#plot, "data-open", of.openFrom);
    attribute(this.#plot, "data-places", of.x.length);
    const names = of.arms.map(({ name, colour, lower, open }) => [name, colour, lower !== undefined, open !== undefined]);
    const key = JSON.stringify([names, of.isWith0, of.hasBands]);
    if (key !== this.#key) {
      this.#key = key;
      const { min, max } = this.#isZoomed ? this.#uplot.scales.x : {};
      this.#begin();
      // The order of arms may change at any look. Keep the zoom if the visible range still has data.
      if (min !== undefined && min < of.x.at(-1) && max > of.x[0]) this.#uplot.setScale("x", { min, max });
    } else {
      this.#uplot.setData(this.#data(), !this.#isZoomed);
    }
    // A reader who uses keys keeps the selected time. A pointer keeps its position.
    if (read !== undefined && document.activeElement === this.#plot) this.#point(Math.max(0, of.x.findLastIndex((it) => it <= read)));
    this.#tell();
    this.#drawTable();
  }

  #begin() {
    this.#uplot?.destroy();
    [this.#isZoomed, this.#at] = [false, null];
    const { arms } = this.#of;
    // Lines take their colors from the swatches in the key.
    drawKey($(".key", this.#node), arms, () => "");
    const series = arms.flatMap((arm, i) => this.#seriesOf(arm, i));
    const bands = [];
    series.forEach(({ role }, i) => role === "upper" && bands.push({ series: [i + 1, i], fill: () => this.#paint(series[i].arm, 0.16) }));
    const soft = () => this.#colour("--soft");
    const rule = () => this.#colour("--rule");
    const axis = { stroke: soft, font: "12px system-ui, sans-serif", grid: { stroke: rule, width: 1 }, ticks: { stroke: rule, width: 1, size: 4 } };
    this.#uplot = new uPlot(
      {
        ...this.#size(),
        ms: 1,
        legend: { show: false },
        padding: [14, 24, 0, 0],
        scales: { x: { time: true, range: (_, low, high) => wide(low, high) }, y: { range: () => this.#range() } },
        axes: [
          { ...axis, space: 64, size: 38, values: (_, splits, __, ___, step) => moments(splits, step) },
          { ...axis, space: 34, size: (_, values) => 16 + 7.5 * Math.max(4, ...(values ?? []).map((it) => it.length)), values: (_, splits, __, ___, step) => splits.map((it) => this.#of.tick(it, step)) },
        ],
        series: [{}, ...series],
        bands,
        cursor: {
          y: false,
          drag: { x: true, y: false, dist: LEAST_BRUSH },
          points: { size: 7, width: 0, fill: (u, i) => u.series[i].stroke(u, i) },
          dataIdx: (u, i, place) => (u.series[i].role === "main" || u.series[i].role === "open" ? place : null),
        },
        hooks: {
          setCursor: [({ cursor: { idx, left } }) => this.#moved(left < 0 ? null : idx)],
          setScale: [(u, name) => name === "x" && this.#scaled(u)],
          drawClear: [(u) => shadeOpen(u, this.#of, this.#colour("--soft"))],
          draw: [(u) => this.#drawMarks(u)],
        },
      },
      this.#data(),
      this.#plot,
    );
    // The slider's text already contains the chart's values for screen readers.
    this.#plot.firstElementChild.setAttribute("aria-hidden", "true");
  }

  /** Series of an arm: its line, the open part, and the bounds of its band. */
  #seriesOf({ lower, open }, arm) {
    const stroke = () => this.#paint(arm, 1);
    const dash = this.#of.arms[arm].colour > 5 ? [8, 3] : undefined;
    const common = { arm, spanGaps: false, points: { show: false, size: 5, filter: alone } };
    const all = [{ ...common, role: "main", stroke, width: 2, dash, points: { ...common.points, stroke, fill: stroke } }];
    if (open !== undefined) {
      const faded = () => this.#paint(arm, 0.45);
      all.push({ ...common, role: "open", stroke: faded, width: 2, dash: [3, 4], points: { ...common.points, stroke: faded, fill: faded } });
    }
    if (lower !== undefined && this.#of.hasBands) for (const role of ["lower", "upper"]) all.push({ arm, role, stroke: () => this.#paint(arm, 0.35), width: 1, points: { show: false } });
    return all;
  }

  #data() {
    const { x, arms, hasBands } = this.#of;
    const bounds = ({ lower, upper }) => (hasBands ? [lower, upper] : []);
    return [x, ...arms.flatMap((arm) => [arm.values, arm.open, ...bounds(arm)].filter((it) => it !== undefined))];
  }

  // ---- Sizes and scales --------------------------------------------------------------------------

  #size() {
    const width = isPrinting ? PRINTED : Math.max(200, this.#plot.clientWidth);
    return { width, height: width < 480 ? HEIGHT.narrow : HEIGHT.wide };
  }

  #range() {
    const { x, arms, levels = [], hasBands, isWith0 } = this.#of;
    const { min, max } = this.#uplot?.scales.x ?? {};
    const from = Math.max(0, x.findIndex((it) => it >= (min ?? -Infinity)));
    const to = Math.max(from, x.findLastIndex((it) => it <= (max ?? Infinity)));
    const extent = extentOf(hasBands ? arms : arms.map(({ values, open }) => ({ values, open })), from, to, isWith0) ?? [0, 1];
    return withLevels(extent, levels);
  }

  #scaled({ scales: { x: { min, max } } }) {
    if (this.#of === null || min == null) return;
    const [low, high] = wide(this.#of.x[0], this.#of.x.at(-1));
    this.#isZoomed = min > low || max < high;
    $(".whole", this.#node).hidden = !this.#isZoomed;
    attribute(this.#plot, "data-from", min);
    attribute(this.#plot, "data-to", max);
  }

  #whole() {
    const { x } = this.#of;
    this.#uplot.setScale("x", { min: x[0], max: x.at(-1) });
  }

  /** Scales the visible time range by `factor`, around the selected place. */
  #zoom(factor) {
    const { x } = this.#of;
    const { min, max } = this.#uplot.scales.x;
    const middle = x[this.#at] ?? (min + max) / 2;
    const half = ((max - min) * factor) / 2;
    this.#uplot.setScale("x", { min: Math.max(x[0], middle - half), max: Math.min(x.at(-1), middle + half) });
  }

  // ---- What is read ------------------------------------------------------------------------------

  #pressed(event) {
    const { x } = this.#of;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
    const at = this.#place();
    const goals = { Home: 0, End: x.length - 1 };
    const goal = event.key in steps ? at + steps[event.key] : goals[event.key];
    if (goal !== undefined) this.#point(Math.max(0, Math.min(x.length - 1, goal)));
    else if (event.key === "Escape") this.#whole();
    else if (event.key === "+") this.#zoom(0.5);
    else if (event.key === "-") this.#zoom(2);
    else return;
    event.preventDefault();
  }

  #point(place) {
    this.#at = place;
    if (this.#uplot === null) return;
    const left = place === null ? -10 : this.#uplot.valToPos(this.#of.x[place], "x");
    this.#uplot.setCursor({ left, top: place === null ? -10 : 0 }, false);
    this.#tell();
  }

  #moved(place) {
    this.#at = place ?? null;
    this.#tell();
  }

  /** The selected place, else the last place with a settled value. */
  #place() {
    const { arms, x } = this.#of;
    if (this.#at !== null) return this.#at;
    const last = x.findLastIndex((_, i) => arms.some(({ values }) => values[i] != null));
    return last < 0 ? x.length - 1 : last;
  }

  #tell() {
    if (this.#of === null) return;
    const { arms, x, placeOf, hasTotals } = this.#of;
    const place = this.#place();
    // The last value of a single cell could be mistaken for the result.
    const isTold = this.#at !== null || hasTotals;
    text($(".at", this.#node), isTold ? placeOf(place) : UNREAD);
    this.#node.classList.toggle("unread", !isTold);
    drawKey($(".key", this.#node), arms, (arm) => (isTold ? this.#said(arm, place) : ""));
    for (const [name, it] of Object.entries({ valuemin: 0, valuemax: x.length - 1, valuenow: place })) attribute(this.#plot, `aria-${name}`, it);
    attribute(this.#plot, "data-at", x[place]);
    attribute(this.#plot, "aria-valuetext", `${placeOf(place)}: ${arms.map((arm) => `${visible(arm.name)} ${this.#said(arm, place)}`).join(", ")}`);
  }

  #said({ values, open, lower, upper }, place) {
    const { write, openFrom } = this.#of;
    const value = values[place] ?? (openFrom == null ? null : open?.[place]);
    if (value == null) return "–";
    const isOpen = values[place] == null;
    const bounds = lower?.[place] == null ? "" : ` (${write(lower[place])} to ${write(upper[place])})`;
    return write(value) + bounds + (isOpen ? ", still open" : "");
  }

  #drawTable() {
    const details = $("details", this.#node);
    if (details.open && this.#of !== null) drawTable($("table", details), this.#of, (arm, place) => this.#said(arm, place));
  }

  // ---- What is painted beside the lines ----------------------------------------------------------

  #paint(arm, alpha) {
    const swatch = this.#node.querySelectorAll(".key .swatch")[arm];
    return swatch === undefined ? "gray" : faded(getComputedStyle(swatch).backgroundColor, alpha);
  }

  #drawMarks(u) {
    const ink = this.#colour("--soft");
    attribute(this.#plot, "data-levels", paintLevels(u, this.#of, ink).map(({ value }) => value).join(" ") || null);
    const shown = paintMarks(u, this.#of, ink);
    lines($(".marks", this.#node), shown.map(({ at, what }, i) => `${i + 1}: ${near(at, this.#of.x.at(-1))}, ${MARKS[what] ?? what}`));
  }

  #colour(name) {
    return getComputedStyle($(`.colour-of${name}`, this.#node)).color;
  }
}
