// Opens the live page of an experiment whose arms are compared, and holds it to what the looks say.
//
//   looks.mjs URL HOSTILE    says "look", "look again", "look without shares", "look undecided" and "look as planned" when it is time for one

import assert from "node:assert/strict";

import { PATIENCE, checkAccessibility, checkTargets, checkWidth, hands, pollUntil, withPage } from "./launch.mjs";

const [url, hostile] = process.argv.slice(2);

const options = { viewport: { width: 1280, height: 900 }, timezoneId: "UTC" };
await withPage(url, options, async (page, objections) => {
  const { locate, all, state: reaches, pick, hash } = hands(page);
  const words = (locator) => locator.innerText().then((text) => text.replaceAll(/\s+/g, " ").trim());
  const of = (testid, arm) => locate(testid, { arm });
  const row = (arm, metric) => of("comparison", arm).locator(`tr[data-metric="${metric}"]`);
  const cells = (arm, metric) => row(arm, metric).locator("td").evaluateAll((nodes) => nodes.map((node) => node.textContent.replaceAll("\u00a0", " ")));
  const line = (arm) => of("comparison", arm).locator(".line td").evaluateAll((nodes) => nodes.map((node) => node.textContent));
  const metrics = (arm) => of("comparison", arm).locator("[data-testid=compared-metric]").evaluateAll((nodes) => nodes.map((node) => node.dataset.metric));
  const isOpen = async (arm) => (await of("fold", arm).getAttribute("aria-expanded")) === "true";

  // Before the first look it says what that waits for.
  await reaches("ready");
  const heldIn = (experiment) => words(locate("experiment", { experiment }).locator("[data-testid=held]"));
  for (const experiment of ["ranker", "wording"])
    await pollUntil(() => heldIn(experiment), (said) => said === "No analysis has been made yet: the first one follows once the first lists are final. Partition 3 is furthest behind.");
  assert.equal(await locate("as-of").first().isVisible(), false);
  assert.equal(await locate("own").count(), 0);
  // The description is text, whatever it contains, and only a demo is marked as one.
  assert.equal(await words(locate("experiment", { experiment: "ranker" }).locator("[data-testid=about]")), "<img src=x onerror=alert(1)> \\u{202e}New · Owner: <b>ann</b>");
  assert.equal(await locate("experiment", { experiment: "wording" }).locator("[data-testid=about]").isVisible(), false);
  assert.equal(await locate("demo").isVisible(), false);
  assert.equal(await locate("comparison").count(), 0);
  const said = (experiment) => words(locate("experiment", { experiment }).locator("[data-testid=verdict]"));
  assert.match(await said("ranker"), /^Collecting too early: the first lists are final, and the first analysis comes/);
  // The primary metric is at 5, and so is what is shown first; the guardrail is over the whole list.
  assert.deepEqual([...new Set(await all("value", "data-key"))], ["mrr@5", "hit_rate@5", "ctr@5"]);
  await pick("k", "whole");
  await checkAccessibility(page, "before the first look");

  // Each arm beside the control has its state, and why; the one without a share is not tested.
  console.log("look");
  await locate("comparison").first().waitFor(PATIENCE);
  assert.deepEqual(await all("comparison", "data-arm"), ["base", hostile, "blend", "neural", "shadow"]);
  assert.equal(await words(locate("compared").first().locator("caption")), "Compared with base");
  assert.equal(await words(locate("as-of").first()), "All lists from 2025-11-11 19:20 to 2025-11-19 23:30 that no click can change any more (final). The sentence, the lifts (95% intervals) and the final values are as of then.");
  const mismatch = `Invalid do not trust this: users are split 23:31:23:23, but 25:25:25:25 was planned (base : ${hostile} : blend : neural)`;
  assert.equal(await said("ranker"), mismatch);
  assert.deepEqual(await locate("experiment", { experiment: "ranker" }).locator("[data-testid=sentence] bdi").allInnerTexts(), ["base", hostile, "blend", "neural"]);
  assert.match(await said("wording"), /^Not compared nothing is tested: the configuration names no control/);
  // A check has failed, so lifts are folded.
  await locate("experiment", { experiment: "ranker" }).locator("[data-testid=distrust] button").click();
  // One arm is open. A closed one is one line: its badge, its primary metric, and its sample.
  assert.deepEqual(await Promise.all([hostile, "blend", "neural", "shadow"].map(isOpen)), [true, false, false, false]);
  assert.equal(await words(of("comparison", "blend").locator(".line th")), "blend Undecided");
  assert.deepEqual(await line("blend"), ["0.2500", "0.2800", "+12.0%", "−4.0% to +28.0%", "0.040", "", "2,000", "12,345"]);
  assert.deepEqual(await line("neural"), ["0.2500", "0.2800", "–", "–", "–", "", "2,000", "12,345"], "too little is known for a lift");
  assert.deepEqual(await line("base"), ["", "2,000", "12,345"]);
  assert.equal(await of("comparison", "neural").locator(".line svg").isVisible(), false);
  for (const arm of ["blend", "neural", "shadow"]) await of("fold", arm).click();
  // The address has the open arms.
  assert.equal(hash().unfolded, "ranker/blend,ranker/neural,ranker/shadow");
  // In another window a table of counts is above, with a plain difference.
  const difference = (arm, metric) => words(locate("difference", { arm, metric }));
  assert.equal(await locate("arm", { experiment: "ranker" }).count(), 0, "lifts replace differences");
  await pick("window", "1h");
  await pollUntil(() => locate("arm", { experiment: "ranker" }).count(), (n) => n === 5);
  assert.equal(await difference("blend", "hit_rate"), "±0.0%");
  await pick("window", "total");
  await pollUntil(() => locate("arm", { experiment: "ranker" }).count(), (n) => n === 0);
  assert.equal(await heldIn("ranker"), "The next analysis is held back. Partition 3 is furthest behind. What is shown stays valid for the lists named above.");
  const decisions = {
    [hostile]: ["Invalid: traffic split", "hold: users are not split as planned, p < 0.001"],
    blend: ["Undecided", "hold: no primary metric differs significantly on day 7"],
    neural: ["Collecting", "hold: 64 of 100 expected hits"],
    shadow: ["not tested", "It has no share of the users."],
  };
  for (const [arm, expected] of Object.entries(decisions))
    assert.deepEqual([await words(of("decision", arm)), (await line(arm))[0]], expected, arm);
  assert.equal(await words(of("state-words", hostile)), "Users are not split as planned in shares: assignment or logging is broken. Ignore the lifts.");
  assert.equal(await of("state-words", "shadow").isVisible(), false);
  assert.equal(await page.locator("img").count(), 0, "names are text");

  // Metrics that decide come first, marked; then those that are chosen, and those per user.
  assert.deepEqual(await metrics("blend"), ["mrr@5", "ctr", "hit_rate", "lists_per_user"]);
  const heads = locate("compared").first().locator("thead th");
  const columns = ["arm (MRR@5), metric", "base", "arm", "lift", "interval", "p", "p of harm", "users", "lists"];
  assert.deepEqual(await heads.evaluateAll((nodes) => nodes.map((node) => [...node.querySelectorAll("svg")].reduce((text, svg) => text.replace(svg.textContent, ""), node.textContent))), columns);
  assert.ok((await heads.evaluateAll((nodes) => nodes.map((node) => node.scope))).every((scope) => scope === "col"));
  const names = of("comparison", "blend").locator("[data-testid=compared-metric] th[scope=row]");
  assert.deepEqual(await Promise.all((await names.all()).map(words)), ["MRR@5 primary", "CTR guardrail", "hit ratio", "lists per assigned user"]);
  assert.deepEqual(await cells("blend", "mrr@5"), ["0.2500", "0.2800", "+12.0%", "−4.0% to +28.0%", "0.040", ""]);
  assert.deepEqual(await cells("blend", "ctr"), ["25.00%", "28.00%", "+12.0%", "−4.0% to +28.0%", "0.040", "<0.001"], "p of harm of a guardrail");
  assert.deepEqual((await cells("blend", "lists_per_user")).slice(0, 3), ["", "", "+12.0%"]);
  assert.deepEqual(await cells("neural", "mrr@5"), ["0.2500", "0.2800", "–", "–", "–", ""], "too little is known");
  assert.deepEqual(await cells("shadow", "mrr@5"), ["0.2500", "0.2800", "+12.0%", "−4.0% to +28.0%", "–", ""], "shown, not tested");
  const tip = await row("blend", "mrr@5").locator(".name").getAttribute("data-tip");
  assert.match(tip, /Per assigned user: −15\.7% \(−20\.0% to \+60\.0%\)\.$/);
  assert.equal(await words(of("comparison-notes", "blend")), "a note on what is compared");

  // An arm that is compared with none has its values, and intervals where enough is known.
  const own = locate("own");
  const ownOf = async (arm) => Promise.all((await own.locator(`tr[data-arm="${arm}"] :is(th, td)`).all()).map(words));
  assert.equal(await own.count(), 1, "others are compared");
  assert.deepEqual(await own.locator("thead th").allInnerTexts(), ["arm", "lists", "users", "MRR", "hit ratio", "CTR"]);
  assert.deepEqual(await ownOf("long"), ["long", "12,345", "2,000", "0.0625 no interval yet", "27.00% 20.00% to 30.00%", "25.00% 20.00% to 30.00%"]);
  assert.equal((await ownOf("short"))[4], "24.00% 20.00% to 30.00%");

  // What is chosen is shown beside what decides.
  await pick("metric", "hit_rate");
  await pollUntil(() => metrics("blend"), (shown) => shown.join() === "mrr@5,ctr,lists_per_user");
  assert.deepEqual(await own.locator("thead th").allInnerTexts(), ["arm", "lists", "users", "MRR", "CTR"]);
  await pick("metric", "hit_rate");
  await pollUntil(() => metrics("blend"), (shown) => shown.length === 4);

  // A copy as Markdown has every shown row, and names as text.
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await locate("copy").first().click();
  const markdown = await pollUntil(() => page.evaluate(() => navigator.clipboard.readText()), (text) => text !== "");
  const quoted = "\\<img src=x onerror=alert(1)\\>";
  const copied = markdown.split("\n");
  assert.deepEqual(copied.slice(0, 4), ["### ranker: Invalid", "", `do not trust this: users are split 23:31:23:23, but 25:25:25:25 was planned (**base** : **${quoted}** : **blend** : **neural**)`, ""]);
  assert.ok(copied.includes("| MRR\\@5 primary | 0.2500 | 0.2800 | +12.0% | −4.0% to +28.0% | 0.040 |  |  |  |"), markdown);
  assert.ok(copied.some((line) => line.startsWith(`| **${quoted}** Invalid: traffic split: hold`)), markdown);
  assert.ok(copied.at(-2).startsWith("Analysis of 2025-11-19 23:30 UTC, <http://127.0.0.1:") && /[#&]experiment=ranker&(.*&)?as_of=2025-11-19T23:30Z>$/.test(copied.at(-2)), markdown);

  // Light, dark, and on a phone nothing sticks out; the table moves by itself.
  await checkAccessibility(page, "arms compared, light");
  await page.emulateMedia({ colorScheme: "dark" });
  await checkAccessibility(page, "arms compared, dark");
  for (const width of [1920, 1024, 768, 360]) {
    await page.setViewportSize({ width, height: 844 });
    await checkWidth(page);
  }
  await checkAccessibility(page, "arms compared on a phone, dark");
  await page.emulateMedia({ colorScheme: "light" });
  await checkAccessibility(page, "arms compared on a phone, light");
  // What somebody folded up stays so when the next look comes, which changes the rest by itself.
  await of("fold", "blend").click();
  console.log("look again");
  await pollUntil(() => words(of("decision", "neural")), (said) => said === "Better");
  assert.equal((await line("neural"))[0], "promote: MRR@5 is better, p = 0.020, decided on day 7");
  // A decided lift is the same as in the sentence. The latest one is among the facts.
  assert.deepEqual((await cells("neural", "mrr@5")).slice(2, 5), ["+10.0%", "+1.0% to +19.0%", "0.020"]);
  assert.equal(await words(of("facts", "neural").locator("li").first()), "MRR@5 is shown as decided on Tue 18 Nov. The latest analysis: +12.0% (−4.0% to +28.0%).");
  assert.equal(await locate("held").first().isVisible(), false, "looks keep up");
  assert.equal(await isOpen("blend"), false);
  await page.reload();
  await of("fold", "neural").waitFor(PATIENCE);
  assert.deepEqual(await Promise.all(["blend", "neural"].map(isOpen)), [false, true], "the address has what is open");

  await touch();

  // Without shares it says what to do, and has no column for what needs them.
  await page.emulateMedia({ colorScheme: "dark" });
  console.log("look without shares");
  await pollUntil(async () => (await line("neural"))[0], (said) => said === "hold: no shares");
  assert.match(await words(of("state-words", "neural")), /^Nothing is decided or checked until the configuration sets .*: shares under \[experiments\.NAME\]\.$/);
  assert.deepEqual(await of("checks", "neural").locator("div").count(), 0);
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 844 });
    await checkWidth(page);
    await checkAccessibility(page, `without shares, dark, ${width} wide`);
  }
  // It says when the next decision is, and advises to plan one where none is planned.
  console.log("look undecided");
  await pollUntil(() => said("ranker"), (said) => said.startsWith("Undecided not decided yet: no primary metric differs significantly on day 7; "));
  const advice = locate("experiment", { experiment: "ranker" }).locator("[data-testid=planning]");
  assert.match(await words(advice), /^No day is planned for the decision\. For the next experiment, set planned_days under \[experiments\.NAME\]/);
  assert.match(await words(of("state-words", "neural")), /Next decision: Tue 25 Nov\.$/);
  await checkAccessibility(page, "advice to plan, dark");
  console.log("look as planned");
  await pollUntil(() => said("ranker"), (said) => said.includes(", next decision Tue 25 Nov, planned end Thu 4 Dec; so far "));
  assert.match(await words(of("state-words", "neural")), /Next decision: Tue 25 Nov\. Planned end: Thu 4 Dec\.$/);
  assert.match(await words(locate("progress").first()), /about 20 days to go · planned end Thu 4 Dec$/);
  assert.equal(await advice.isVisible(), false);
  // Users of all arms with a share, out of the planned ones: all of them only once they are there, and more if they are.
  const enrolled = { 40000: "8,700 of 40,000 planned users (22%)", 8701: "8,700 of 8,701 planned users (99%)", 8000: "8,700 of 8,000 planned users (109%)" };
  for (const planned of [40_000, 8_701, 8_000]) {
    console.log(`plan ${planned} users`);
    await pollUntil(() => words(locate("progress").first()), (said) => said.endsWith(`about 20 days to go · ${enrolled[planned]} · planned end Thu 4 Dec`));
  }
  assert.deepEqual(objections, []);

  async function touch() {
    const context = await page.context().browser().newContext({ hasTouch: true, isMobile: true, viewport: { width: 390, height: 844 } });
    const phone = await context.newPage();
    await phone.goto(url);
    await phone.locator("[data-testid=fold]").nth(1).waitFor(PATIENCE);
    // The head of the table is a legend, whose words explain themselves by a tap.
    const legend = phone.locator("[data-testid=compared]").first().locator("thead");
    for (const [column, meaning] of Object.entries({ control: /^The control's value/, interval: /^The lifts compatible with the data/, p: /^How easily chance alone/ })) {
      await legend.locator(`[data-column=${column}] button`).tap();
      assert.match(await phone.locator("#tip").innerText(), meaning);
    }
    await phone.locator("#choices > summary").tap();
    await checkTargets(phone);
    await checkWidth(phone);
    await checkAccessibility(phone, "arms compared, by touch");
    await context.close();
  }
});
console.log("all is well");
