// Opens the live page while the demo runs, and holds it to its claims.
//
//   page.mjs URL [FOLDER]    with a folder, leaves page.png and page-dark.png there

import assert from "node:assert/strict";
import { join } from "node:path";

import { withPage } from "./launch.mjs";

const [url, folder] = process.argv.slice(2);
const EXPERIMENTS = { layout: ["carousel", "grid"], ranker: ["control", "blend", "neural"] };
const VIEWS = ["live", "settled"];
const PATIENCE = { timeout: 60_000 };

const options = { viewport: { width: 1280, height: 800 }, deviceScaleFactor: 1.5 };
await withPage(url, options, async (page, objections) => {
  const locate = (testid, attributes = {}) =>
    page.locator(`[data-testid="${testid}"]` + Object.entries(attributes).map(([name, it]) => `[data-${name}="${it}"]`).join(""));
  const all = (testid, attribute) => locate(testid).evaluateAll((nodes, name) => nodes.map((node) => node.getAttribute(name)), attribute);
  const state = (name) => page.waitForSelector(`#state[data-state="${name}"]`, PATIENCE);
  const pick = (name, value) => page.locator("label", { has: page.locator(`input[name="${name}"][value="${value}"]`) }).click();

  // Every arm stands there, control first, with its numbers in both views.
  await state("ready");
  await page.waitForFunction((n) => document.querySelectorAll("[data-testid=value][data-view=settled][data-value]").length === n, 5 * 3, PATIENCE);
  assert.deepEqual(await all("arm", "data-arm"), Object.values(EXPERIMENTS).flat());
  for (const [experiment, arms] of Object.entries(EXPERIMENTS))
    for (const arm of arms)
      for (const view of VIEWS)
        for (const metric of ["hit_rate", "ctr", "mrr"]) {
          const cell = locate("value", { experiment, arm, view, metric });
          const [value, text] = await cell.evaluate((node) => [Number(node.dataset.value), node.textContent]);
          assert.ok(value > 0 && value < 1, `${experiment}/${arm} ${view} ${metric}: ${value}`);
          const shown = text.endsWith("%") ? parseFloat(text) / 100 : parseFloat(text);
          assert.ok(Math.abs(shown - value) < 1e-4, `${text} shows ${value}`);
        }

  // They change without anyone touching the page; so do the ends and the counts of the stream.
  const numbers = async () => ({
    values: await all("value", "data-value"),
    lists: await all("bases", "data-lists"),
    ends: [await all("live-end", "data-value"), await all("settled-end", "data-value")],
    records: await locate("records").innerText(),
  });
  const before = await numbers();
  const later = await pollUntil(numbers, (now) => Object.keys(now).every((key) => different(now[key], before[key])));
  for (const [i, end] of later.ends.entries()) assert.ok(Number(end[0]) > Number(before.ends[i][0]), "time goes forward");

  // Another window and another k, kept in the address.
  await pick("window", "1h");
  await pick("k", "5");
  assert.equal(new URL(page.url()).hash, "#window=1h&k=5");
  await page.waitForSelector('[data-testid=value][data-metric="hit_rate@5"][data-value]');
  assert.match(await locate("experiment", { experiment: "ranker" }).locator("thead").innerText(), /hit ratio@5/);

  // Lines run through all cells but for one that has just begun, in both views.
  const lines = () => locate("line").locator("path").evaluateAll((paths) => paths.map((path) => path.getAttribute("d")));
  const isWhole = (d) => (d.match(/[ML]/g) ?? []).length >= 59;
  await pollUntil(lines, (all) => all.length === 5 * 3 * 2 && all.every(isWhole));

  if (folder) await portray("page.png");

  // A phone, upright: nothing sticks out to the side, everything is there.
  await page.setViewportSize({ width: 360, height: 740 });
  await page.locator("#words summary").click();
  for (const window of ["5m", "1h", "total"]) {
    await pick("window", window);
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${wide} pixels wide on ${room}`);
  }
  const out = await page.evaluate(() =>
    [...document.querySelectorAll("body *")].filter((node) => node.getBoundingClientRect().right > innerWidth + 0.5).map((node) => node.outerHTML.slice(0, 80)),
  );
  assert.deepEqual(out, []);
  assert.ok(await locate("value", { experiment: "ranker", arm: "neural", view: "settled" }).first().isVisible());

  // In the dark, ink is light and paper dark.
  await page.setViewportSize(options.viewport);
  await pick("window", "1h");
  await page.emulateMedia({ colorScheme: "dark" });
  const [ink, paper] = await page.evaluate(() => {
    const style = getComputedStyle(document.body);
    return [style.color, style.backgroundColor].map((color) => color.match(/\d+/g).reduce((sum, part) => sum + Number(part), 0));
  });
  assert.ok(ink > 600 && paper < 120, `ink ${ink}, paper ${paper}`);
  if (folder) await portray("page-dark.png");

  assert.deepEqual(objections, []);

  // When abgauge does not answer the page says so, keeps its numbers, and comes back by itself.
  await page.context().setOffline(true);
  await state("silent");
  assert.match(await page.locator("#state").innerText(), /does not answer since \d\d:\d\d:\d\d/);
  assert.ok(await locate("value", { view: "settled" }).first().isVisible());
  await page.context().setOffline(false);
  await state("ready");

  async function portray(name) {
    await page.evaluate(() => {
      document.querySelector("#words").removeAttribute("open");
      document.activeElement?.blur();
      scrollTo(0, 0);
    });
    await page.mouse.move(0, 0);
    await page.screenshot({ path: join(folder, name), fullPage: true });
  }
});
console.log("all is well");

/** What `ask` says once it is as wished. */
async function pollUntil(ask, isIt) {
  const end = Date.now() + PATIENCE.timeout;
  for (;;) {
    const said = await ask();
    if (isIt(said)) return said;
    assert.ok(Date.now() < end, `not within ${PATIENCE.timeout} ms: ${isIt}\n${JSON.stringify(said)}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

function different(a, b) {
  return JSON.stringify(a) !== JSON.stringify(b);
}
