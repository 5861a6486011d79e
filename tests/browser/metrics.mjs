// Opens the live page of a daemon that measures everything by two profiles, and chooses among it.
//
//   metrics.mjs URL FURTHER_PROFILE N_ITEMS

import assert from "node:assert/strict";

import { withPage } from "./launch.mjs";

const [url, further, nItems] = process.argv.slice(2);
const METRICS = {
  hit_rate: "%", ctr: "%", mrr: "", ndcg: "", precision: "%", recall: "%", map: "", map_by_k: "", mar: "", hits: "",
  alpha_ndcg: "", coverage: "%", popularity: "%", surprisal: "bits",
};
const OF_FURTHER = ["hit_rate", "mrr", "ndcg", "precision", "recall", "map"];
const PATIENCE = { timeout: 60_000 };

const options = { viewport: { width: 1280, height: 800 } };
await withPage(url, options, async (page, objections) => {
  const locate = (testid, attributes = {}) =>
    page.locator(`[data-testid="${testid}"]` + Object.entries(attributes).map(([name, it]) => `[data-${name}="${it}"]`).join(""));
  const box = (name, value) => page.locator(`input[name="${name}"][value="${value}"]`);
  const pick = (name, value) => page.locator("label", { has: box(name, value) }).click();
  const offered = () => page.locator('input[name="metric"]').evaluateAll((nodes) => nodes.map((node) => node.value));
  const heads = () => page.locator('[data-experiment="ranker"] .columns .settled').allInnerTexts();
  let answer; // what the page has been told last
  page.on("response", async (response) => {
    if (response.url().includes("/api/v1/")) answer = await response.json().catch(() => answer);
  });
  const inWindow = (window, view) => answer?.experiments.ranker?.arms.neural?.windows[window]?.[view];

  await page.waitForSelector('#state[data-state="ready"]', PATIENCE);
  await page.waitForSelector("[data-testid=value][data-view=settled][data-value]", PATIENCE);

  // All metrics are offered, each explained, the first three shown.
  assert.deepEqual(await offered(), Object.keys(METRICS));
  assert.equal(await page.locator('input[name="metric"]:checked').count(), 3);
  await page.locator("#words summary").click();
  const words = await locate("metric-words").locator("dd").allInnerTexts();
  assert.equal(words.length, Object.keys(METRICS).length);
  assert.ok(words.every((text) => text.length > 20), words.join("\n"));

  // Each has its column, whose values are those of the API in a form of their own.
  await pick("k", "5");
  for (const id of Object.keys(METRICS).slice(3)) await pick("metric", id);
  for (const [id, unit] of Object.entries(METRICS)) {
    const cell = locate("value", { experiment: "ranker", arm: "neural", view: "settled", metric: `${id}@5` });
    const isTold = async () => ({ seen: await cell.getAttribute("data-value"), told: String(inWindow("5m", "settled")?.metrics[`${id}@5`]) });
    await pollUntil(isTold, ({ seen, told }) => seen === told);
    const [value, text] = await cell.evaluate((node) => [Number(node.dataset.value), node.textContent]);
    assert.ok(unit === "" ? /^\d+\.\d+$/.test(text) : text.endsWith(`\u00a0${unit}`), `${id}: ${text}`);
    assert.ok(Math.abs(parseFloat(text) - (unit === "%" ? 100 * value : value)) < 0.006, `${id}: ${text} shows ${value}`);
  }
  const surprisal = locate("value", { experiment: "ranker", arm: "neural", view: "settled", metric: "surprisal@5" });
  assert.ok(Number(await surprisal.getAttribute("data-value")) > 1);

  // Coverage has no time line, the others have.
  const titles = await page.locator('[data-arm="neural"] td.live svg title').evaluateAll((nodes) => nodes.map((node) => node.textContent));
  assert.equal(titles.filter((title) => title === "no time line").length, 1, titles.join("\n"));

  // The table moves by itself, the page does not, whether wide or narrow.
  for (const width of [1280, 1000, 360]) {
    await page.setViewportSize({ width, height: 800 });
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${wide} pixels wide on ${room}`);
  }
  await page.setViewportSize(options.viewport);

  // Another profile has other values, its own lines, and metrics of its own.
  await pick("profile", further);
  await pollUntil(offered, (ids) => ids.join() === OF_FURTHER.join());
  assert.match(await locate("undefined").innerText(), new RegExp(`^Profile ${further} has no MRR at k = 5`));
  const hits = locate("value", { experiment: "ranker", arm: "neural", view: "settled", metric: "hit_rate@5" });
  const ofProfile = async () => {
    const it = inWindow("5m", "settled");
    return { seen: await hits.getAttribute("data-value"), first: it?.metrics["hit_rate@5"], told: it?.profiles[further]["hit_rate@5"] };
  };
  await pollUntil(ofProfile, ({ seen, first, told }) => seen === String(told) && told > first);
  const line = () => page.locator('[data-arm="neural"] td.settled svg title').first().textContent();
  const highest = () => Math.max(...(inWindow("5m", "settled")?.timeline?.metrics["hit_rate@5"] ?? [NaN]));
  await pollUntil(line, (title) => title.endsWith(`highest ${(100 * highest()).toFixed(2)}\u00a0%`));
  const hash = new URLSearchParams(new URL(page.url()).hash.slice(1));
  assert.deepEqual([hash.get("profile"), hash.get("metrics").split(",").length], [further, 14]);
  await pick("profile", "default");
  await pollUntil(offered, (ids) => ids.length === 14);
  assert.equal(await locate("undefined").isVisible(), false);

  // One metric stays.
  for (const id of Object.keys(METRICS).slice(0, -1)) await pick("metric", id);
  assert.deepEqual(await heads(), ["surprisal@5", "bases"]);
  assert.ok(await box("metric", "surprisal").isDisabled());

  // The catalogue is told with what is kept in memory.
  const row = locate("gauges").locator('[data-name="catalogue"]');
  assert.equal((await row.locator("td").innerText()).replace(",", ""), nItems);

  assert.deepEqual(objections, []);
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
