// Opens the live page of a daemon with a doubtful setting, and looks again once its producers have gone wrong: the state says
// how bad it is, beside the sentence that matters most, and a link leads to the runbook.
//
//   warnings.mjs URL SENTENCE    says "go wrong" when it is time to; SENTENCE is what stands first then

import assert from "node:assert/strict";

import { PATIENCE, checkAccessibility, checkWidth, hands, pollUntil, withPage } from "./launch.mjs";

const [url, sentence] = process.argv.slice(2);

await withPage(url, { viewport: { width: 1280, height: 800 } }, async (page, objections) => {
  const { locate, state } = hands(page);
  const paint = () => page.locator("#state").evaluate((node) => getComputedStyle(node).backgroundColor);
  const both = async (name) => {
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await checkAccessibility(page, `${name}, ${colorScheme}`);
    }
    await page.emulateMedia({ colorScheme: "light" });
  };

  // Numbers are doubtful: no green.
  await state("warned");
  assert.equal(await locate("state").innerText(), "ready, with 1 warning");
  assert.equal(await page.title(), "abgauge: warnings");
  assert.match(await locate("reason").innerText(), /^export\.forget_after \(1h\) is shorter than the longest window/);
  assert.ok((await locate("reason").innerText()).length < 140, "one sentence, however long the message");
  assert.equal(await page.locator("#shows .count").isVisible(), false, "it is whole at the top, and need not be counted twice");
  const amber = await paint();
  await both("ready, with a warning");

  // Numbers are wrong: what matters most comes first, the rest stands among the operations.
  console.log("go wrong");
  await state("wrong");
  const red = await paint();
  assert.notEqual(red, amber);
  assert.equal(await locate("state").innerText(), "numbers missing or wrong");
  assert.equal(await page.title(), "abgauge: numbers missing or wrong");
  assert.match(await locate("reason").innerText(), /^Clicks are being lost: producers use different partitioners, since \d{4}-\d\d-\d\d \d\d:\d\d\. What to do$/);
  assert.equal(await page.locator("#shows .count").innerText(), "2");
  await both("numbers wrong");
  await page.locator("#shows a").nth(1).click();
  await pollUntil(() => locate("warnings").isVisible(), (isVisible) => isVisible);
  const all = await locate("warnings").locator("li").allInnerTexts();
  assert.ok(all.some((said) => said.includes(sentence)), all.join("\n"));
  assert.deepEqual([all.length, all.filter((said) => said.startsWith("export.forget_after")).length], [2, 1], all.join("\n"));
  await both("numbers wrong, operations");
  for (const width of [360, 768, 1440]) {
    await page.setViewportSize({ width, height: 800 });
    await checkWidth(page);
  }

  // The link leads to the runbook, by the daemon itself.
  const link = locate("reason").locator("a");
  assert.equal(await link.getAttribute("href"), "runbooks#abgaugepartitionersdiffer");
  await link.click();
  const heading = page.locator("#abgaugepartitionersdiffer");
  await heading.waitFor(PATIENCE);
  assert.equal(await heading.innerText(), "AbgaugePartitionersDiffer");
  const isInSight = (node) => node.matches(":target") && node.getBoundingClientRect().top >= 0 && node.getBoundingClientRect().top < innerHeight;
  await pollUntil(() => heading.evaluate(isInSight), (isIt) => isIt);
  await both("runbooks");
  await page.setViewportSize({ width: 360, height: 740 });
  await checkWidth(page);
  await checkAccessibility(page, "runbooks on a phone");
  await page.locator("header a").click();
  await state("wrong");
  assert.deepEqual(objections, []);
});
console.log("all is well");
