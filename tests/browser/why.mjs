// Opens the live page of an experiment whose arms are compared, and clicks on values for their explanations.
//
//   why.mjs URL HOSTILE

import assert from "node:assert/strict";

import { PATIENCE, checkAccessibility, checkWidth, hands, pollUntil, withPage } from "./launch.mjs";

const [url, hostile] = process.argv.slice(2);

/** Runs in the page before its own scripts. Removes the parts of the values of the arm `shadow`, as after a change of shares. */
function spanEpochs() {
  const Native = globalThis.EventSource;
  globalThis.EventSource = class extends Native {
    addEventListener(type, listen) {
      const changed = ({ data }) => {
        const answer = JSON.parse(data);
        for (const { comparison } of answer.experiments.flatMap(({ arms }) => arms.filter(({ name }) => name === "shadow")))
          for (const metric of Object.values(comparison.metrics)) delete metric.parts;
        listen({ data: JSON.stringify(answer) });
      };
      super.addEventListener(type, type === "message" ? changed : listen);
    }
  };
}

// With both views, the table of counts has the settled values of the analysis next to the rows of the analysis.
const options = { viewport: { width: 1280, height: 900 }, timezoneId: "UTC", script: spanEpochs };
await withPage(`${url}#view=both`, options, async (page, objections) => {
  const { locate, state, pick } = hands(page);
  const box = page.locator("[data-testid=why]");
  const button = (arm, metric) => locate("value", { arm, metric, view: "settled" }).locator("button");
  const words = (selector) => box.locator(selector).innerText().then((text) => text.replaceAll("\u00a0", " "));
  await state("ready");
  await locate("comparison").first().waitFor(PATIENCE);
  await pollUntil(() => button("blend", "mrr").innerText(), (text) => text === "0.2800");

  // A click opens the box next to its value, and another value moves it.
  assert.equal(await box.isVisible(), false);
  await button("blend", "mrr").click();
  assert.equal(await words("#why-of"), "MRR@5 of blend");
  assert.equal(await words(".parts"), "2,800 (sum of reciprocal ranks in the top 5) ÷ 10,000 lists = 0.2800");
  assert.equal(await words(".meaning"), "Mean reciprocal rank: 1 ÷ the first clicked rank in the top k, 0 without one.");
  assert.deepEqual(await box.locator(".compared li").allInnerTexts(), [
    "Difference from the control: +0.0300 (−0.0100 to +0.0700).",
    "Lift since the start, latest analysis: +12.0% (−4.0% to +28.0%).",
    "Lift in the last 24h alone: +2.0% (−10.0% to +14.0%), valid if you read it once.",
  ]);
  const apart = await Promise.all([box, button("blend", "mrr")].map((it) => it.boundingBox()));
  assert.ok(Math.abs(apart[0].x - apart[1].x) < 200 && Math.abs(apart[0].y - apart[1].y) < 400, JSON.stringify(apart));
  await checkAccessibility(page, "a value explained");
  await button("base", "mrr").click();
  assert.equal(await words(".parts"), "2,500 (sum of reciprocal ranks in the top 5) ÷ 10,000 lists = 0.2500");
  assert.equal(await box.locator(".compared").isVisible(), false, "the control is not compared with itself");
  await button(hostile, "mrr").click();
  assert.equal(await words("#why-of"), `MRR@5 of ${hostile}`);
  await button(hostile, "mrr").click();
  assert.equal(await box.isVisible(), false, "a second click closes it");

  // The lines of the analysis explain the same values.
  await page.locator("[data-testid=comparison][data-arm=blend] [data-column=arm] button").click();
  assert.equal(await words("#why-of"), "MRR@5 of blend");
  assert.equal(await words(".parts"), "2,800 (sum of reciprocal ranks in the top 5) ÷ 10,000 lists = 0.2800");
  await box.locator("button").click();

  // Over several epochs there is no ratio of two sums.
  await button("shadow", "mrr").click();
  assert.match(await words(".parts"), /^Shares have changed, so this is a mean /);
  await box.locator("button").click();
  assert.equal(await box.isVisible(), false);

  // It opens and closes with the keyboard alone, and the focus stays at the value.
  await pick("k", "whole");
  await pollUntil(() => button("blend", "hit_rate").innerText(), (text) => text === "28.00%");
  await button("blend", "hit_rate").focus();
  await page.keyboard.press("Enter");
  assert.equal(await words(".parts"), "2,800 lists with a click ÷ 10,000 lists = 28.00%");
  await page.keyboard.press("Escape");
  assert.equal(await box.isVisible(), false);
  assert.ok(await button("blend", "hit_rate").evaluate((node) => node === document.activeElement));

  // Values of a window have the counts of the window.
  await pick("window", "1h");
  await pollUntil(() => button("blend", "hit_rate").innerText(), (text) => text === "100.00%");
  await button("blend", "hit_rate").click();
  assert.equal(await words(".parts"), "1 list with a click ÷ 1 list = 100.00%");
  assert.equal(await box.locator(".compared").isVisible(), false);
  await button("blend", "ctr").click();
  assert.equal(await words(".parts"), "1 click ÷ 5 items shown = 20.00%");

  // Arms without a control have the same.
  await page.keyboard.press("Escape");
  await locate("own-arm", { arm: "long" }).locator("button").first().click();
  assert.match(await words(".parts"), /^[\d,]+ .* ÷ 10,000 lists = /);
  await page.keyboard.press("Escape");

  // On a phone it fits, and a tap elsewhere closes it.
  await page.setViewportSize({ width: 390, height: 844 });
  await button("blend", "ctr").scrollIntoViewIfNeeded();
  await button("blend", "ctr").click();
  const { x, width } = await box.boundingBox();
  assert.ok(x >= 0 && x + width <= 390, `${x} ${width}`);
  await checkWidth(page);
  await checkAccessibility(page, "a value explained on a phone");
  await page.mouse.click(5, 5);
  assert.equal(await box.isVisible(), false);

  assert.deepEqual(objections, []);
});
console.log("all is well");
