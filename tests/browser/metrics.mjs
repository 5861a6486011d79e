// Opens the live page of a daemon that measures everything by two profiles, and chooses among it.
//
//   metrics.mjs URL FURTHER_PROFILE N_ITEMS

import assert from "node:assert/strict";

import { PATIENCE, checkAccessibility, checkWidth, hands, pollUntil, withPage } from "./launch.mjs";

const [url, further, nItems] = process.argv.slice(2);
const SUFFIXES = { share: "%", score: "", items: "", bits: "\u00a0bits" };
const OF_FURTHER = ["hit_rate", "mrr", "ndcg", "precision", "recall", "map"];

/** Keeps what the page is told, before the page hears it. */
function listen() {
  const Native = globalThis.EventSource;
  globalThis.EventSource = class extends Native {
    constructor(path) {
      super(path);
      this.addEventListener("message", ({ data }) => (globalThis.told = JSON.parse(data)));
    }
  };
}

const options = { viewport: { width: 1280, height: 800 }, script: listen };
await withPage(url, options, async (page, objections) => {
  const { locate, state, box, pick, settled, hash } = hands(page);
  const offered = () => page.locator('input[name="metric"]').evaluateAll((nodes) => nodes.map((node) => node.value));
  const heads = () => page.locator('[data-experiment="ranker"] .columns .settled').allInnerTexts();
  /** Of the arm `neural`, settled: what is shown of a metric beside what the page was told, at one moment. */
  const ofMetric = (id) => page.evaluate((id) => {
    const { chosen, experiments } = globalThis.told;
    const index = chosen.metrics.indexOf(id);
    const place = experiments.find(({ name }) => name === "ranker").arms.find(({ name }) => name === "neural").settled;
    const part = (testid) => document.querySelector(`[data-testid=${testid}][data-experiment=ranker][data-arm=neural][data-view=settled][data-metric=${id}]`);
    const value = part("value");
    const line = (place.line?.values[index] ?? []).filter((it) => it !== null);
    return {
      key: value?.dataset.key, seen: value?.dataset.value, text: value?.textContent,
      told: place.values[index], line: part("line")?.getAttribute("aria-label"), highest: line.length > 0 ? Math.max(...line) : null,
    };
  }, id);

  await state("ready");
  await pick("view", "both");
  await pick("window", "1h");
  await page.waitForSelector("[data-testid=value][data-view=settled][data-value]", PATIENCE);

  // All metrics are offered, each explained, the first three shown.
  const definitions = await page.evaluate(() => globalThis.told.definitions.filter((it) => !it.per_user));
  const ids = definitions.map(({ id }) => id);
  assert.deepEqual(await offered(), ids);
  assert.equal(await page.locator('input[name="metric"]:checked').count(), 3);
  await page.locator("#words summary").click();
  const words = await locate("metric-words").locator("dd").allInnerTexts();
  assert.deepEqual(words, definitions.map(({ meaning }) => meaning));
  assert.ok(words.every((text) => text.length > 20), words.join("\n"));

  // Each has its column, whose values are those that the page was told, in a form of their own.
  await pick("k", "5");
  for (const id of ids.slice(3)) {
    await pick("metric", id);
    await settled();
  }
  const isThere = (it) => it.key?.endsWith("@5") && it.seen !== undefined;
  for (const { id, name, unit } of definitions) {
    const suffix = SUFFIXES[unit];
    const { key, seen, told, text } = await pollUntil(() => ofMetric(id), isThere);
    assert.deepEqual([key, Number(seen)], [`${id}@5`, told]);
    assert.match(text, new RegExp(`^\\d+\\.\\d+${suffix}$`), id);
    assert.ok(Math.abs(parseFloat(text) - (suffix === "%" ? 100 * told : told)) < 0.006, `${id}: ${text} shows ${told}`);
    assert.ok((await heads()).includes(`${name}@5`), name);
  }
  assert.ok((await ofMetric("surprisal")).told > 1);

  // Coverage has no time line, the others have.
  const titles = await page.locator('[data-arm="neural"] td.live svg').evaluateAll((nodes) => nodes.map((node) => node.getAttribute("aria-label")));
  assert.equal(titles.filter((title) => title === "no time line").length, 1, titles.join("\n"));
  assert.match((await ofMetric("coverage")).line, /^no time line$/);
  await checkAccessibility(page, "all metrics");

  // The table moves by itself, the page does not, whether wide or narrow.
  for (const width of [1280, 1000, 360]) {
    await page.setViewportSize({ width, height: 800 });
    await checkWidth(page);
  }
  await page.setViewportSize(options.viewport);

  // Another profile has other values, its own lines, and metrics of its own.
  const ofDefault = (await ofMetric("hit_rate")).told;
  await pick("profile", further);
  await pollUntil(offered, (ids) => ids.join() === OF_FURTHER.join());
  assert.match(await locate("undefined").innerText(), /^Profile a\+b\(c\) has no MRR at k = 5/);
  const ofProfile = await pollUntil(() => ofMetric("hit_rate"), isThere);
  assert.equal(Number(ofProfile.seen), ofProfile.told);
  assert.ok(ofProfile.told > ofDefault, "lists without a click do not count in it");
  assert.ok(ofProfile.line.endsWith(`highest ${(100 * ofProfile.highest).toFixed(2)}%`), ofProfile.line);
  assert.deepEqual([hash().profile, hash().metrics.split(",").length], [further, ids.length]);
  await pick("profile", "default");
  await pollUntil(offered, (offers) => offers.join() === ids.join());
  assert.equal(await locate("undefined").isVisible(), false);

  // One metric stays.
  for (const id of ids.slice(0, -1)) {
    await pick("metric", id);
    await settled();
  }
  assert.deepEqual(await heads(), [`${definitions.at(-1).name}@5`, "lists clicks"]);
  assert.ok(await box("metric", ids.at(-1)).isDisabled());

  // The catalogue is told with what is kept in memory.
  const row = locate("gauges").locator('[data-name="catalogue"]');
  assert.equal((await row.locator("td").innerText()).replace(",", ""), nItems);

  assert.deepEqual(objections, []);
});
console.log("all is well");
