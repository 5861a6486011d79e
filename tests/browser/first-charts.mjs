// Charts of an experiment before and after its first looks, one of whose arms has a name that looks like markup.
//
//   first-charts.mjs URL HOSTILE    says "look", "a later look" and "a day later" when it is time for looks

import assert from "node:assert/strict";

import { PATIENCE, checkAccessibility, checkWidth, hands, pollUntil, withPage } from "./launch.mjs";

const [url, hostile] = process.argv.slice(2);

await withPage(`${url}#unfolded=ranker`, { viewport: { width: 1280, height: 900 }, timezoneId: "UTC" }, async (page, objections) => {
  const { state } = hands(page);
  const charts = page.locator('[data-experiment="ranker"] [data-testid=charts]');
  await state("ready");
  await charts.scrollIntoViewIfNeeded();
  await charts.locator("[data-testid=split-line]").first().waitFor(PATIENCE);
  for (const part of ["lift", "time", "windows", "users"].map((kind) => `[data-chart="${kind}"]`)) assert.equal(await charts.locator(part).isVisible(), false, `${part} has nothing to show`);
  assert.equal(await charts.locator("[data-testid=split-line]").count(), 5);
  assert.equal(await charts.locator("[data-testid=split] thead th:nth-child(3)").isVisible(), false, "no plan is known before a look");
  await checkAccessibility(page, "charts before the first look");

  console.log("look");
  const lift = charts.locator('[data-chart="lift"]');
  // A check has failed at that look, so lifts are folded.
  await page.locator('[data-experiment="ranker"] [data-testid=distrust] button').click();
  await charts.scrollIntoViewIfNeeded();
  await lift.locator("canvas").waitFor(PATIENCE);
  const key = () => lift.locator(".key li").evaluateAll((nodes) => nodes.map((node) => [node.dataset.arm, node.querySelector("bdi").textContent, node.querySelector(".said").textContent]));
  const said = "+12.0% (−4.0% to +28.0%)";
  assert.deepEqual(await key(), [hostile, "blend", "neural", "shadow"].map((arm) => [arm, arm, said]));
  await pollUntil(() => lift.locator(".plot").getAttribute("aria-valuemax"), (last) => last === "3");
  const words = await lift.locator(".plot").getAttribute("aria-valuetext");
  assert.ok(words.startsWith("up to 2025-11-20 00:00: <img src=x"), words);
  assert.match(await lift.locator(".about").innerText(), /One point every 10.min, from 2025-11-19 23:30 on\.$/);
  assert.equal(await lift.locator("[data-testid=marks]").innerText(), "1: 2025-11-19 23:59, abgauge started");
  await lift.locator("summary").click();
  assert.equal(await lift.locator("thead th").nth(1).innerText(), hostile);
  assert.equal(await lift.locator("tbody tr").count(), 4);
  assert.equal(await page.locator("img").count(), 0, "names are text");

  // Users since the start, each analysis by itself.
  const users = charts.locator('[data-chart="users"]');
  assert.equal(await users.locator("h4").innerText(), "Users since the start");
  const enrolled = await users.locator(".key li").evaluateAll((nodes) => nodes.map((node) => [node.dataset.arm, node.querySelector(".said").textContent]));
  assert.deepEqual(enrolled, ["base", hostile, "blend", "neural", "shadow"].map((arm) => [arm, arm === hostile ? "2,700" : "2,000"]));
  const about = () => users.locator(".about").innerText();
  assert.match(await about(), /Dashed: the arm's planned share of all users\.$/);
  // A planned number is a line once an arm has half of it. A farther one would flatten the lines, and is only in the caption.
  const levels = () => users.locator(".plot").getAttribute("data-levels");
  console.log("plan 40000 users");
  await pollUntil(about, (words) => words.endsWith(" Planned users, drawn once half of them are there: 10,000 for each arm shown with a share."));
  assert.equal(await levels(), null);
  console.log("plan 20000 users");
  await pollUntil(about, (words) => words.endsWith(" Dotted: planned users, 5,000 for each arm shown with a share."));
  await pollUntil(levels, (values) => values === "5000");
  // With unequal shares each number has its arms. One may be near and another far.
  const planned = await page.evaluate(async () => {
    const { plannedOf, withLevels } = await import("/page/chart-data.js");
    const arm = (name, planned, users) => ({ name, planned, enrolled: [0, users] });
    const levels = plannedOf([arm("control", 0.5, 400), arm("a", 0.25, 300), arm("b", 0.25, 200), arm("shadow", undefined, 900)], 1_000);
    const near = levels.filter(({ isNear }) => isNear);
    return { levels, none: plannedOf([arm("a", 0.5, 1)], undefined), high: withLevels([0, 400], near)[1], whenZoomed: withLevels([0, 20], near)[1] };
  });
  const expected = [{ value: 500, names: ["control"], isNear: true }, { value: 250, names: ["a", "b"], isNear: true }];
  assert.deepEqual(planned.levels, expected);
  assert.deepEqual(planned.none, []);
  assert.ok(planned.high > 500 && planned.high < 600, `up to ${planned.high}`);
  assert.equal(planned.whenZoomed, 20, "a line beyond a zoomed part does not flatten it");
  // An arm without a share has no plan and no part of the split.
  const split = await charts.locator("[data-testid=split-line]").evaluateAll((nodes) => Object.fromEntries(nodes.map((node) => [node.dataset.arm, [...node.querySelectorAll(".planned, .seen")].map((it) => it.textContent)])));
  assert.deepEqual(split[hostile], ["25.0%", "31.0%"]);
  assert.deepEqual(split.shadow, ["–", "no share"]);

  await checkAccessibility(page, "charts with a hostile name");
  for (const width of [1920, 768, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await checkWidth(page);
  }

  // On paper charts are text and lines instead of the pixels of a phone, and as wide from every screen. Afterwards they fit the screen again.
  const widths = () => charts.evaluate((node) => [...node.querySelectorAll(".plot canvas")].map((canvas) => canvas.width));
  const beside = () => users.evaluate((figure) => figure.querySelector("canvas").clientWidth - figure.querySelector(".plot").clientWidth);
  await pollUntil(beside, (pixels) => pixels === 0);
  assert.ok((await widths()).every((width) => width < 390));
  await charts.evaluate((node) => addEventListener("beforeprint", () => queueMicrotask(() => (node.dataset.printed = [...node.querySelectorAll(".plot canvas")].map((canvas) => canvas.width)))));
  const file = (await page.pdf({ format: "A4" })).toString("latin1");
  assert.equal(await charts.getAttribute("data-printed"), (await widths()).map(() => 480).join());
  assert.doesNotMatch(file, /\/Subtype\s*\/Image\b/, "nothing is printed as pixels");
  await pollUntil(beside, (pixels) => pixels === 0);
  await page.emulateMedia({ colorScheme: "dark" });
  const axisInk = () => users.evaluate((figure) => {
    const canvas = figure.querySelector("canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, figure.querySelector(".u-over").offsetLeft - 8, canvas.height);
    const inks = [];
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) inks.push(data[i] + data[i + 1] + data[i + 2]);
    return inks.reduce((sum, it) => sum + it, 0) / inks.length;
  });
  await pollUntil(axisInk, (ink) => ink > 400);
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await pollUntil(axisInk, (ink) => ink < 400);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  await pollUntil(axisInk, (ink) => ink > 400);
  await page.emulateMedia({ colorScheme: "light" });

  // Charts show their age: out of sight they keep their numbers while the sentence advances.
  const age = charts.locator("[data-testid=charts-as-of]");
  assert.equal(await age.textContent(), "As of the analysis of 2025-11-20 00:00.");
  await page.setViewportSize({ width: 1280, height: 300 });
  await page.evaluate(() => scrollTo(0, 0));
  // Observers are called in the order of their creation, so the page's observer was called before this one.
  await charts.evaluate(
    (node) =>
      new Promise((done) => {
        const observer = new IntersectionObserver(([{ isIntersecting }]) => isIntersecting || done(observer.disconnect()), { rootMargin: "200px" });
        observer.observe(node);
      }),
  );
  console.log("a later look");
  await pollUntil(() => age.textContent(), (said) => said === "As of the analysis of 2025-11-20 00:00, older than the one above of 2025-11-20 00:10.");
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await pollUntil(() => age.textContent(), (said) => said === "As of the analysis of 2025-11-20 00:10.");

  // The lift in each day alone is drawn once two days have one. Looks within a day of the last one are left out.
  const days = charts.locator('[data-chart="windows"]');
  assert.equal(await days.isVisible(), false, "all looks lie within one day");
  console.log("a day later");
  await page.setViewportSize({ width: 1280, height: 900 });
  await charts.scrollIntoViewIfNeeded();
  await days.locator("canvas").waitFor(PATIENCE);
  assert.equal(await days.locator("h4").innerText(), "Lift of MRR@5 in each 24h alone");
  assert.equal(await days.locator(".plot").getAttribute("data-places"), "2");
  await days.locator(".plot").press("Home");
  assert.equal(await days.locator(".plot").getAttribute("aria-valuetext"), "up to 2025-11-20 00:00: blend +2.0% (−10.0% to +14.0%)");
  await checkAccessibility(page, "charts with lifts by day");

  // A link to an earlier analysis shows its lifts next to the latest ones.
  const earlier = page.locator('[data-experiment="ranker"] [data-testid=earlier]');
  assert.equal(await earlier.isVisible(), false, "the address names no analysis");
  const at = (time) => page.evaluate((it) => (location.hash = `unfolded=ranker&as_of=${it}`), time);
  const begin = (time) => `This link is from the analysis of ${time}. The page shows a later one. `;
  const lifts = `: ${hostile} ${said}, blend ${said}, neural ${said}, shadow ${said}.`;
  const links = {
    "2025-11-20T00:00Z": `${begin("2025-11-20 00:00")}MRR@5 then${lifts}`,
    "2025-11-20T12:00Z": `${begin("2025-11-20 12:00")}MRR@5 as of 2025-11-20 00:10, the closest analysis that is kept${lifts}`,
    "2025-11-01T00:00Z": `${begin("2025-11-01 00:00")}Lifts as of then are not kept.`,
  };
  for (const [time, expected] of Object.entries(links)) {
    await at(time);
    await pollUntil(() => earlier.locator("span").textContent(), (words) => words.replaceAll(/\s+/g, " ") === expected);
  }
  await checkAccessibility(page, "a link to an earlier analysis");
  await earlier.locator("button").click();
  await pollUntil(() => earlier.isVisible(), (is) => !is);
  assert.deepEqual(objections, []);
});
console.log("all is well");
