// Opens the live page of a daemon that finds no brokers: it says what it waits for, and shows no number.
//
//   waiting.mjs URL

import assert from "node:assert/strict";

import { checkAccessibility, checkWidth, hands, withPage } from "./launch.mjs";

const [url] = process.argv.slice(2);

await withPage(url, { viewport: { width: 360, height: 740 } }, async (page, objections) => {
  const { locate, state } = hands(page);
  await state("waiting");
  assert.equal(await page.title(), "abgauge: not ready");
  assert.equal(await locate("state").innerText(), "not ready");
  assert.match(await locate("reason").innerText(), /broker.* What to do$/);
  assert.equal(await locate("reason").locator("a").getAttribute("href"), "runbooks#abgaugenotready");
  assert.match(await locate("empty").innerText(), /^Not ready yet/);
  assert.equal(await locate("experiment").count(), 0);
  await checkWidth(page);
  await checkAccessibility(page, "waiting");
  await page.emulateMedia({ colorScheme: "dark" });
  await checkAccessibility(page, "waiting, dark");
  assert.deepEqual(objections, []);
});
console.log("all is well");
