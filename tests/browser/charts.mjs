// Holds the charts of the demo's experiment `ranker` to what the API says, by pointer and by keys.
//
//   charts.mjs URL [FOLDER]    with a folder, leaves pictures of the charts there

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { PATIENCE, checkAccessibility, checkWidth, hands, pollUntil, withPage } from "./launch.mjs";

const [url, folder] = process.argv.slice(2);
const ARMS = ["control", "blend", "neural"];
const PRIMARY = "ctr@10";
const ZONE = "Asia/Kolkata";

const options = { viewport: { width: 1440, height: 900 }, timezoneId: ZONE };
await withPage(`${url}#window=1h&k=10&sort=name&unfolded=layout,ranker,ranker/blend,ranker/neural`, options, async (page, objections) => {
  const { state } = hands(page);
  const charts = page.locator('[data-experiment="ranker"] [data-testid=charts]');
  const chart = (kind) => charts.locator(`[data-chart="${kind}"]`);
  const plot = (kind) => chart(kind).locator(".plot");
  const get = (path) => page.evaluate((path) => fetch(path).then((response) => response.json()), path);
  const attributes = (kind, ...names) => plot(kind).evaluate((node, names) => names.map((name) => node.getAttribute(name)), names);

  // What draws is the package that the lock names, byte for byte.
  const served = await page.evaluate(() => Promise.all(["uplot.js", "uplot.css"].map((name) => fetch(`page/${name}`).then((response) => response.text()))));
  const packaged = ["uPlot.iife.min.js", "uPlot.min.css"].map((name) => readFileSync(join(process.env.ABGAUGE_BROWSER_MODULES, "uplot/dist", name), "utf8"));
  assert.ok(served.every((text, i) => text === packaged[i]), "uPlot is that of tests/browser/package-lock.json");

  // Nothing is asked for charts until they are in sight, and then by one question at a time.
  const asked = [];
  let atOnce = 0;
  page.on("request", (request) => request.url().includes("/charts?") && (asked.push(new URL(request.url()).searchParams), (atOnce += 1)));
  for (const event of ["requestfinished", "requestfailed"]) page.on(event, (request) => request.url().includes("/charts?") && (atOnce -= 1));
  await state("ready");
  await page.setViewportSize({ width: 1440, height: 120 });
  // The page before may have had charts in sight.
  await page.reload({ waitUntil: "commit" });
  asked.length = 0;
  await state("ready");
  await hands(page).settled();
  assert.equal(asked.filter((it) => it.get("experiment") === "ranker").length, 0);
  // Until then, a full-page picture or a print shows a sentence and a choice instead of an empty box.
  assert.equal(await charts.locator("[data-testid=charts-as-of]").innerText(), "Charts are drawn once they are in view.");
  assert.notEqual(await charts.locator("select").inputValue(), "");
  await page.setViewportSize(options.viewport);
  // What stands above grows meanwhile, and charts out of sight are not drawn.
  const isDrawn = async () => {
    await charts.scrollIntoViewIfNeeded();
    return (await charts.getAttribute("data-drawn")) === PRIMARY && (await chart("lift").locator("canvas").isVisible());
  };
  await pollUntil(isDrawn, (is) => is, PATIENCE.timeout);
  assert.ok(atOnce <= 2, `${atOnce} at once for two experiments`);
  assert.deepEqual(JSON.parse(asked.at(-1).get("arms")).length <= 11, true);

  // Axes are painted on both sides, in an ink that is seen.
  const painted = (kind) => chart(kind).evaluate((figure) => {
    const [canvas, over] = [figure.querySelector("canvas"), figure.querySelector(".u-over")];
    const ratio = devicePixelRatio;
    const [left, bottom] = [over.offsetLeft * ratio, (over.offsetTop + over.offsetHeight) * ratio];
    const strip = (x, y, width, height) => {
      const { data } = canvas.getContext("2d").getImageData(x, y, width, height);
      const inks = [];
      for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) inks.push(data[i] + data[i + 1] + data[i + 2]);
      return { n: inks.length, ink: inks.reduce((sum, it) => sum + it, 0) / inks.length };
    };
    return [strip(0, 0, left - 8, bottom), strip(left, bottom + 6, canvas.width - left, canvas.height - bottom - 6)];
  });
  for (const kind of ["time", "lift"]) for (const { n, ink } of await painted(kind)) assert.ok(n > 40 && ink < 500, `${kind}: ${n} pixels, ${ink}`);

  // The control comes first. What the pointer reads is what the API says of that cell.
  assert.deepEqual(await chart("time").locator(".key li").evaluateAll((nodes) => nodes.map((node) => node.dataset.arm)), ARMS);
  const reading = (kind) => chart(kind).evaluate((figure) => ({
    at: Number(figure.querySelector(".plot").dataset.at),
    open: Number(figure.querySelector(".plot").dataset.open),
    when: figure.querySelector(".at").textContent,
    said: Object.fromEntries([...figure.querySelectorAll(".key li")].map((node) => [node.dataset.arm, node.querySelector(".said").textContent])),
  }));
  // The last cell alone is no result: nothing stands in the key until a time is read. What a look says is one.
  const { said: unread } = await reading("time");
  assert.ok(Object.values(unread).every((said) => said === ""), JSON.stringify(unread));
  // Paper has no pointer: the advice to use one is left out, and the time of a result is not.
  await page.emulateMedia({ media: "print" });
  assert.deepEqual(await Promise.all(["time", "lift"].map((kind) => chart(kind).locator(".reading").isVisible())), [false, true]);
  await page.emulateMedia({ media: null });
  const settledSpan = async () => {
    const [from, open] = (await attributes("time", "data-from", "data-open")).map(Number);
    return open - from;
  };
  await pollUntil(settledSpan, (ms) => ms > 20 * 60_000);
  // Of one place: what is read and what the API says, and what both say of its time. At 300 times the clock some partitions are minutes of
  // event time behind the others, and their lists come into a cell that has settled elsewhere: it is asked until both say the same.
  const told = async (share) => {
    await chart("time").scrollIntoViewIfNeeded();
    const box = await chart("time").locator(".u-over").boundingBox();
    await page.mouse.move(box.x + box.width * share, box.y + box.height / 2);
    const { at, open, when, said } = await reading("time");
    const { experiments } = await get("api/v1/experiments?timelines=1h");
    const values = ARMS.map((arm) => {
      const { start_ms: start, cell_ms: cell, metrics } = experiments.ranker.arms[arm].windows["1h"].settled.timeline;
      return { cell, said: parseFloat(said[arm]), value: metrics[PRIMARY][Math.floor((at - start) / cell)] };
    });
    return { when, begins: clockIn(ZONE, at - values[0].cell / 2), isSettled: at < open, values };
  };
  for (const share of [0.12, 0.2, 0.3]) {
    const isTold = ({ isSettled, values }) => isSettled && values.every(({ said, value }) => value != null && Math.abs(said - value * 100) < 0.0051);
    const { when, begins } = await pollUntil(() => told(share), isTold, 3 * PATIENCE.timeout);
    // The day stands before it, if that is not the day of the last cell.
    assert.ok(when.replace(/^\d{4}-\d\d-\d\d /, "").startsWith(begins), `${when} begins at ${begins}`);
  }

  // Beyond what has settled a line is faded, and said to be open, there and in the table.
  const drawnTail = () => page.evaluate(() => {
    const section = document.querySelector('#tables [data-experiment="ranker"]');
    const line = section.querySelector("[data-testid=line][data-view=live]");
    return { chart: Number(section.querySelector("[data-chart=time] .plot").dataset.open), line: line && Number(line.dataset.open), d: line?.querySelector(".open").getAttribute("d"), label: line?.getAttribute("aria-label") };
  });
  const tail = async () => ({ ...(await drawnTail()), end: (await get("api/v1/experiments")).stream.settled_end_ms });
  // Two seconds pass between two rounds, ten minutes of event time here.
  const isAtEnd = (open, end) => open <= end + 1 && end + 1 - open < 20 * 60_000;
  const { d, label } = await pollUntil(tail, (it) => isAtEnd(it.chart, it.end) && (it.line === null || isAtEnd(it.line, it.end)));
  assert.ok(d === undefined || (d.length > 20 && label.includes("still open to clicks from")), `${d}: ${label}`);
  assert.match(await chart("time").locator(".about").innerText(), /Faded from (\d{4}-\d\d-\d\d )?\d\d:\d\d on: clicks may still arrive/);

  // Keys go from place to place, and what they read stands in the table as well.
  const byKeys = await chart("time").evaluate((figure) => {
    figure.querySelector("details").open = true;
    figure.querySelector("details").dispatchEvent(new Event("toggle"));
    const plot = figure.querySelector(".plot");
    plot.focus();
    const press = (key) => plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    const rows = [...figure.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent));
    const heads = [...figure.querySelectorAll("thead th")].map((head) => head.textContent);
    const read = [];
    press("Home");
    for (let i = 0; i < rows.length; i++) {
      read.push({ now: Number(plot.getAttribute("aria-valuenow")), words: plot.getAttribute("aria-valuetext") });
      press("ArrowRight");
    }
    press("End");
    press("PageDown");
    return { rows, heads, read, max: Number(plot.getAttribute("aria-valuemax")), now: Number(plot.getAttribute("aria-valuenow")) };
  });
  assert.deepEqual(byKeys.heads, ["time", ...ARMS]);
  assert.ok(byKeys.rows.length > 30 && byKeys.rows.length === byKeys.max + 1, `${byKeys.rows.length} rows`);
  assert.equal(byKeys.now, byKeys.max - 10);
  for (const [i, [time, ...cells]] of byKeys.rows.entries())
    assert.deepEqual(byKeys.read[i], { now: i, words: `${time}: ${ARMS.map((arm, j) => `${arm} ${cells[j]}`).join(", ")}` });
  assert.ok(byKeys.rows.at(-1).slice(1).every((said) => said.endsWith(", still open") || said === "–"), byKeys.rows.at(-1).join());
  assert.ok(byKeys.rows[2].slice(1).every((said) => /^[\d.]+%$/.test(said)), byKeys.rows[2].join());
  await checkAccessibility(page, "charts, a table open");
  await chart("time").locator("summary").click();

  // A brush shows a part, which stays while numbers come and the part is in the window; show all, Escape and a double click end that.
  const shown = async () => (await attributes("time", "data-from", "data-to")).map(Number);
  const whole = await shown();
  const all = chart("time").locator(".whole");
  const brush = async () => {
    const { x, y, width, height } = await chart("time").locator(".u-over").boundingBox();
    await page.mouse.move(x + width * 0.65, y + height / 2);
    await page.mouse.down();
    await page.mouse.move(x + width * 0.95, y + height / 2, { steps: 5 });
    await page.mouse.up();
    const [from, to] = await shown();
    const share = (to - from) / (whole[1] - whole[0]);
    assert.ok(share > 0.25 && share < 0.35, `${share} of the time`);
    return [from, to];
  };
  assert.equal(await all.isVisible(), false);
  const part = await brush();
  const ofRanker = () => asked.filter((it) => it.get("experiment") === "ranker").length;
  const n = ofRanker();
  await pollUntil(ofRanker, (now) => now > n + 1);
  assert.deepEqual(await shown(), part, "numbers that come leave it as it is");
  await all.click();
  assert.ok((await shown())[1] - (await shown())[0] > (whole[1] - whole[0]) * 0.9);
  assert.equal(await all.isVisible(), false);
  await brush();
  await plot("time").press("Escape");
  assert.equal(await all.isVisible(), false);
  await brush();
  await chart("time").locator(".u-over").dblclick();
  await pollUntil(() => all.isVisible(), (is) => !is);
  await plot("time").press("+");
  assert.equal(await all.isVisible(), true);
  for (let i = 0; i < 4; i++) await plot("time").press("-");
  await pollUntil(() => all.isVisible(), (is) => !is);

  // Lifts: the last point of each arm is what the comparison says, and its interval is narrower than the first.
  const lifts = () => page.evaluate(() => {
    const section = document.querySelector('#tables [data-experiment="ranker"]');
    const plot = section.querySelector("[data-chart=lift] .plot");
    plot.dispatchEvent(new KeyboardEvent("keydown", { key: "End", bubbles: true }));
    const said = Object.fromEntries([...section.querySelectorAll("[data-chart=lift] .key li")].map((node) => [node.dataset.arm, node.querySelector(".said").textContent]));
    const cell = (arm, column) => section.querySelector(`[data-testid=comparison][data-arm=${arm}] tr[data-metric="ctr@10"] td[data-column=${column}]`).textContent;
    return ["blend", "neural"].map((arm) => [said[arm], `${cell(arm, "lift")} (${cell(arm, "interval")})`]);
  });
  await pollUntil(lifts, (both) => both.every(([chart, table]) => chart === table));
  const narrowed = async () => {
    const history = await get(`api/v1/view/charts?${asked.findLast((it) => it.get("experiment") === "ranker")}`);
    const { lift } = history.arms.find(({ name }) => name === "neural").looks;
    return { history, lift, widths: lift.upper.map((upper, i) => upper - lift.lower[i]).filter((it) => it > 0) };
  };
  const { history, lift } = await pollUntil(narrowed, ({ widths }) => widths.length > 5 && widths.at(-1) < widths[0] / 2);
  assert.equal(history.looks.times.length, lift.middle.length);

  // Bars have one scale: each number has one place, and more lies further to the right.
  const bars = await page.evaluate(() => {
    const rows = [...document.querySelectorAll('[data-experiment="ranker"] [data-testid=compared-metric]')].filter((row) => !row.querySelector("svg[hidden]"));
    const written = (text) => Number(text.replace("−", "-").replace(/[^\d.-]/g, ""));
    return rows.flatMap((row) => {
      const cell = (column) => row.querySelector(`[data-column=${column}]`).textContent;
      const place = (selector, name) => parseFloat(row.querySelector(selector).getAttribute(name));
      const [low, high] = cell("interval").split(" to ").map(written);
      return [[low, place(".bar", "x1")], [written(cell("lift")), place("circle", "cx")], [high, place(".bar", "x2")]];
    });
  });
  assert.ok(bars.length >= 2 * 3 * 3, `${bars.length / 3} bars`);
  const drawn = bars.filter(([, at]) => at > 0 && at < 100).sort(([a], [b]) => a - b);
  const most = Math.max(...drawn.map(([lift]) => Math.abs(lift)));
  const [far, at] = drawn.find(([lift]) => Math.abs(lift) === most);
  for (const [lift, place] of drawn) assert.ok(Math.abs(place - 50 - ((at - 50) * lift) / far) < 0.5, `${lift}% at ${place}`);

  // The split: what was planned, and the users that were seen.
  const split = async () => {
    const { arms, split } = await get(`api/v1/view/charts?${asked.findLast((it) => it.get("experiment") === "ranker")}`);
    const seen = await charts.locator("[data-testid=split-line]").evaluateAll((nodes) => nodes.map((node) => [node.dataset.arm, node.querySelector(".planned").textContent, node.querySelector(".seen").textContent]));
    const percent = (share) => `${(share * 100).toFixed(1)}%`;
    return { seen, told: arms.map(({ name, planned, users }) => [name, percent(planned), percent(users / split.users)]) };
  };
  await pollUntil(split, ({ seen, told }) => seen.length === ARMS.length && JSON.stringify(seen) === JSON.stringify(told));

  // CTR by rank: together with what was shown there it gives the CTR of the whole; a dot for each arm.
  const ranks = charts.locator("[data-testid=ranks] tbody tr");
  const heads = await ranks.locator("th").allInnerTexts();
  assert.deepEqual(heads.slice(0, 2), ["1", "2 to 5"]);
  assert.deepEqual(await ranks.evaluateAll((nodes) => nodes.map((node) => node.querySelectorAll("circle").length)), heads.map(() => ARMS.length));
  const byRank = async () => {
    const { arms } = await get(`api/v1/view/charts?${asked.findLast((it) => it.get("experiment") === "ranker")}`);
    const seen = await ranks.evaluateAll((nodes) => nodes.map((node) => [...node.querySelectorAll("td[data-arm]")].map((cell) => parseFloat(cell.textContent))));
    return heads.map((_, i) => arms.map(({ by_rank: values }, j) => Math.abs(seen[i][j] - values[i] * 100)));
  };
  await pollUntil(byRank, (all) => all.flat().every((off) => off < 0.0051));

  // Since the start: the values of looks with a band. Of another metric there is no history, and it says so.
  await charts.locator(".by").click();
  assert.equal(await chart("time").locator("h4").innerText(), "CTR@10 since the start");
  assert.match((await reading("time")).said.neural, /^[\d.]+% \([\d.]+% to [\d.]+%\)$/);
  await charts.locator(".by").click();
  await charts.locator("select").selectOption({ index: 1 });
  await page.waitForSelector(`[data-experiment="ranker"] [data-testid=charts]:not([data-drawn="${PRIMARY}"])`, PATIENCE);
  assert.equal(await chart("lift").isVisible(), false);
  assert.equal(await charts.locator("[data-testid=no-lift]").innerText(), "Lifts over time are kept for primary metrics only: CTR@10.");
  await charts.locator("select").selectOption(PRIMARY);
  await chart("lift").waitFor(PATIENCE);

  // In the dark the ink is light. From a phone to a wide screen nothing sticks out.
  if (folder) await portray("charts-light.png");
  await checkAccessibility(page, "charts, light");
  await page.emulateMedia({ colorScheme: "dark" });
  await pollUntil(async () => (await painted("time"))[0].ink, (ink) => ink > 450);
  await checkAccessibility(page, "charts, dark");
  if (folder) await portray("charts-dark.png");
  for (const width of [2560, 1024, 768, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await charts.scrollIntoViewIfNeeded();
    await pollUntil(() => charts.evaluate((node) => Math.max(...[...node.querySelectorAll(".plot canvas")].map((it) => it.getBoundingClientRect().right)) - innerWidth), (over) => over <= 0);
    await checkWidth(page);
  }
  await checkAccessibility(page, "charts on a phone, dark");
  await page.emulateMedia({ colorScheme: "light" });
  await checkAccessibility(page, "charts on a phone");
  if (folder) await portray("charts-phone.png");
  assert.deepEqual(objections, [], "nothing that the policy of the page forbids, either");

  async function portray(name) {
    await page.mouse.move(0, 0);
    await charts.screenshot({ path: join(folder, name) });
  }
});

/** hh:mm of a moment in a time zone. */
function clockIn(timeZone, ms) {
  return new Intl.DateTimeFormat("en-GB", { timeZone, hour: "2-digit", minute: "2-digit" }).format(ms);
}

console.log("all is well");
