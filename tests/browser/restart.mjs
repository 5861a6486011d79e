// Follows the live page while the daemon goes away and comes back: it says so, keeps its numbers, and goes on by itself.
//
//   restart.mjs URL    says "stop it" and "start it" when it is time to

import assert from "node:assert/strict";

import { PATIENCE, checkAccessibility, hands, pollUntil, withPage } from "./launch.mjs";

const [url] = process.argv.slice(2);

await withPage(url, { viewport: { width: 1280, height: 800 } }, async (page, objections) => {
  const { locate, state, pick, all } = hands(page);
  await state("ready");
  await pick("window", "1h");
  await page.waitForSelector("[data-testid=value][data-view=settled][data-value]", PATIENCE);
  await page.waitForFunction(() => document.body.getAttribute("aria-busy") === "false");
  assert.deepEqual(objections, []);

  console.log("stop it");
  await state("silent");
  assert.match(await page.locator("#state").innerText(), /has not answered since \d\d:\d\d:\d\d .*The numbers below are from \d\d:\d\d:\d\d/);
  assert.equal(await page.title(), "abgauge: no answer");
  assert.ok(await locate("value", { view: "settled" }).first().isVisible(), "the last numbers stay");
  assert.ok(await page.evaluate(() => getComputedStyle(document.querySelector(".experiment")).filter.includes("grayscale")));
  await checkAccessibility(page, "silent");
  await page.emulateMedia({ colorScheme: "dark" });
  await checkAccessibility(page, "silent, dark");

  console.log("start it");
  await page.waitForSelector('#state:not([data-state="silent"])', PATIENCE);
  await state("ready");
  assert.equal(await page.title(), "abgauge");
  assert.ok(await hands(page).box("window", "1h").isChecked(), "what was chosen stays chosen");
  const ends = () => all("live-end", "data-value");
  const [before] = await ends();
  await pollUntil(ends, ([end]) => Number(end) > Number(before));
});
console.log("all is well");
