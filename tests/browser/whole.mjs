// Opens the live page of a daemon that stores its state: whose partitions are shown can be chosen.
//
//   whole.mjs URL N_LISTS    with so many lists settled and stored

import assert from "node:assert/strict";

import { checkAccessibility, checkWidth, hands, pollUntil, withPage } from "./launch.mjs";

const [url, nLists] = process.argv.slice(2);

await withPage(url, { viewport: { width: 1280, height: 800 } }, async (page, objections) => {
  const { locate, box, pick, hash, settled } = hands(page);
  const lists = async (view) => (await locate("bases", { view }).evaluateAll((nodes) => nodes.map((node) => node.dataset.lists ?? null)))[0];

  await pick("view", "both");

  // It holds all of them, so that its own come first, live ones included.
  await pollUntil(() => lists("settled"), (n) => n === nLists);
  assert.equal(await box("scope", "own").isChecked(), true);
  assert.equal(await lists("live"), nLists);
  assert.equal(await locate("whole").isVisible(), false);

  // Of all there is what has settled; the address says so, and the way back leads there.
  await pick("scope", "global");
  await settled();
  await pollUntil(() => lists("live"), (n) => n !== nLists);
  assert.equal(hash().scope, "global");
  assert.equal(await lists("settled"), nLists);
  assert.match(await locate("whole").innerText(), /^The view of all partitions has final numbers only, as stored .+ ago\. Each instance shows its own live numbers\.$/);
  await checkWidth(page);
  await checkAccessibility(page, "all partitions");
  await page.goBack();
  await pollUntil(() => lists("live"), (n) => n === nLists);
  await page.goto(`${url}#scope=global&view=both`);
  await pollUntil(() => locate("whole").isVisible(), (isVisible) => isVisible);
  assert.equal(await box("scope", "global").isChecked(), true);
  assert.deepEqual(objections, []);
});
console.log("all is well");
