// Opens the live page at one look, and checks that it says no more than the look shows.
//
//   wording.mjs URL WHAT    with one of the checks below

import assert from "node:assert/strict";

import { PATIENCE, checkAccessibility, checkWidth, hands, withPage } from "./launch.mjs";

const [url, what] = process.argv.slice(2);

const CHECKS = {
  /** The goal is not to be worse, and the lift is below 0. */
  async "not worse"({ page, words, of, colors }) {
    assert.match(await words(of("verdict")), /^Not worse neural is not worse than base by more than 5\.0%: MRR@5 −0\.6% \(−3\.0% to \+1\.8%\), decided /);
    for (const testid of ["arm-state", "decision"]) assert.equal(await words(of(testid, { arm: "neural" })), "Not worse");
    const { good, bad } = await colors();
    const painted = [of("badge"), of("arm-state", { arm: "neural" }), of("decision", { arm: "neural" }), of("difference", { arm: "neural", metric: "mrr" }).locator("span").first()];
    for (const it of painted) {
      const color = await it.evaluate((node) => getComputedStyle(node).color);
      assert.ok(color !== good && color !== bad, `${await it.innerText()} is ${color}`);
    }
    assert.doesNotMatch(await page.locator("body").innerText(), /winner/i);
  },
};

await withPage(url, { viewport: { width: 1440, height: 900 }, timezoneId: "UTC" }, async (page, objections) => {
  const { locate, state } = hands(page);
  await state("ready");
  const ranker = locate("experiment", { experiment: "ranker" });
  await ranker.locator("[data-testid=comparison]").first().waitFor(PATIENCE);
  const of = (testid, attributes = {}) => ranker.locator(`[data-testid="${testid}"]` + Object.entries(attributes).map(([name, it]) => `[data-${name}=${JSON.stringify(it)}]`).join(""));
  const words = (locator) => locator.innerText().then((text) => text.replaceAll(/\s+/g, " ").trim());
  /** The colors of good and bad news, as computed. */
  const colors = () =>
    page.evaluate(() => {
      const probe = document.body.appendChild(document.createElement("i"));
      const of = (name) => ((probe.style.color = `var(--${name})`), getComputedStyle(probe).color);
      const both = { good: of("good"), bad: of("bad") };
      probe.remove();
      return both;
    });
  await CHECKS[what]({ page, locate, words, of, colors });
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 844 });
    await checkWidth(page);
    await checkAccessibility(page, `${what}, ${width} wide`);
  }
  assert.deepEqual(objections, []);
});
console.log("all is well");
