// Opens the live page at one look, and checks that it says no more than the look shows.
//
//   wording.mjs URL WHAT [FOLDER]    with one of the checks below; pictures go into the folder

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { PATIENCE, changeAnswers, checkAccessibility, checkWidth, hands, pollUntil, withPage } from "./launch.mjs";

const [url, what, folder] = process.argv.slice(2);

const CHECKS = {
  /** The goal is not to be worse, and the lift is below 0. */
  async "not worse"({ page, words, of, cell, colors }) {
    assert.match(await words(of("verdict")), /^Not worse neural is not worse than base by more than 5\.0%: MRR@5 −0\.6% \(−3\.0% to \+1\.8%\), decided /);
    assert.equal(await words(of("decision", { arm: "neural" })), "Not worse");
    const { good, bad } = await colors();
    const painted = [of("badge"), of("decision", { arm: "neural" }), cell("neural", "mrr@5", "lift")];
    for (const it of painted) {
      const color = await it.evaluate((node) => getComputedStyle(node).color);
      assert.ok(color !== good && color !== bad, `${await it.innerText()} is ${color}`);
    }
    assert.doesNotMatch(await page.locator("body").innerText(), /winner/i);
  },

  /** The one-sided test found harm, and the interval shown includes 0. */
  async "probably harmful"({ words, of, reason, facts }) {
    assert.match(await words(of("verdict")), /^Probably harmful neural is probably worse than base by the one-sided test of harm since Tue 18 Nov: MRR@5 −0\.6% \(−1\.3% to \+0\.1%\), at least 0\.4% worse \(one-sided 97\.5%\), /);
    assert.equal(await words(of("decision", { arm: "neural" })), "Probably harmful");
    assert.equal(await reason("neural"), "roll back: MRR@5 is probably worse by the one-sided test of harm, p of harm < 0.001, since day 7, at least 0.4% worse (one-sided 97.5%)");
    assert.equal(await words(of("progress")), "8.2 days since the start · harm found Tue 18 Nov");
    assert.equal((await facts("neural"))[0], "MRR@5: harm found Tue 18 Nov; at least 0.4% worse (one-sided 97.5%). The two-sided interval includes 0.");
  },

  /** A decision stays, and is explained next to an interval that includes 0. */
  async "lost and open again"({ words, of, cell, reason, facts }) {
    assert.match(await words(of("verdict")), /^Probably harmful neural was worse than base: MRR@5 −6\.0% \(−9\.0% to −3\.0%\), decided Tue 18 Nov, day 7; since then its interval has come to include 0/);
    assert.equal(await words(of("decision", { arm: "neural" })), "Probably harmful");
    assert.match(await reason("neural"), /^roll back: MRR@5 was worse, .*decided on day 7; since then its interval has come to include 0$/);
    const shown = await Promise.all(["lift", "interval"].map((column) => words(cell("neural", "mrr@5", column))));
    assert.deepEqual(shown, ["−6.0%", "−9.0% to −3.0%"], "the table shows what the sentence shows");
    assert.equal((await facts("neural"))[0], "MRR@5 is shown as decided on Tue 18 Nov. The latest analysis: −5.0% (−20.0% to +10.0%).");
  },

  /** A decision has the day since which it holds, and the later one that confirmed it: in UTC as in the sentence, though it is 14 hours later here. */
  async confirmed({ page, words, of, reason }) {
    assert.match(await words(of("verdict")), /^Better neural beats base: MRR@5 \+10\.0% \(\+1\.0% to \+19\.0%\), better since Tue 18 Nov \(day 7\), last confirmed Wed 19 Nov \(day 8\), /);
    assert.equal(await words(of("progress")), "8.2 days since the start · Better since Tue 18 Nov, last confirmed Wed 19 Nov");
    assert.equal(await words(of("comparison", { arm: "neural" }).locator(".arm")), "neural Better since 18 Nov");
    assert.equal(await words(of("comparison", { arm: "blend" }).locator(".arm")), "blend Undecided");
    assert.equal(await reason("neural"), "promote: MRR@5 is better, p = 0.020, since day 7, last confirmed on day 8");
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#json").click()]);
    const { rows } = JSON.parse(readFileSync(await download.path(), "utf8"));
    const row = rows.find(({ experiment, arm, metric, k }) => experiment === "ranker" && arm === "neural" && `${metric}@${k}` === "mrr@5");
    const time = (day) => `2025-11-${day}T19:20:00.000Z`;
    assert.deepEqual([row?.decision_since, row?.decision_at], [time(18), time(19)]);
  },

  /** Colors follow the arms, whatever the order in which the page was loaded, and whatever else is shown. */
  async colors({ page, of }) {
    const painted = async () => {
      await ranker(page).locator("[data-testid=charts]").scrollIntoViewIfNeeded();
      return of("split-line").evaluateAll((nodes) => nodes.map((node) => `${node.dataset.arm}: ${node.querySelector(".swatch").dataset.colour}`).sort());
    };
    const load = async (hash, n) => {
      await page.goto(`${url}#unfolded=ranker&${hash}`);
      await page.reload();
      return pollUntil(painted, (rows) => rows.length === n);
    };
    const expected = ["<img src=x onerror=alert(1)>: 1", "base: 0", "blend: 2", "neural: 3", "shadow: 4"];
    for (const sort of ["name", "-name", "-lift"]) assert.deepEqual(await load(`sort=${sort}`, 5), expected, sort);
    assert.deepEqual(await load("filter=neural", 2), ["base: 0", "neural: 3"]);
  },

  /** After a decision look without a decision, more than days is missing. */
  async "what is missing"({ page, words, of, cell, facts, pick }) {
    assert.match(
      await words(of("verdict")),
      /^Undecided not decided yet: no primary metric differs significantly on day 7; waiting for the guardrail CTR: may be down 4\.0%, 2\.0% allowed; data collected for a 5\.0% effect: 50%, about 28 days in all, next decision Tue 25 Nov; so far /,
    );
    // Metrics and terms explain themselves where they are first mentioned.
    const terms = await of("sentence").locator("button").evaluateAll((nodes) => nodes.map((node) => [node.textContent, node.dataset.tip]));
    assert.deepEqual(terms.map(([name]) => name), ["guardrail", "CTR", "data collected", "MRR@5"]);
    assert.match(terms[3][1], /^Mean reciprocal rank/);
    assert.equal(await words(of("progress")), "8.2 days since the start · 50% of the data for a decision · about 20 days to go");
    assert.equal(await of("progress").locator("progress").evaluate((bar) => bar.value), 0.5);
    assert.deepEqual(await facts("blend"), ["Guardrail CTR not shown to hold yet: may be down 4.0%, 2.0% allowed.", "Data collected for a decision: 50%, about 28 days in all."]);
    assert.doesNotMatch(await page.locator("body").innerText(), /every guardrail/i);
    // The settled view since the start shows the analysis, whatever has been counted since then. Lifts are only in the rows below.
    await pick("view", "both");
    await of("value", { arm: "blend", view: "settled", metric: "mrr" }).waitFor(PATIENCE);
    assert.equal(await words(of("difference", { arm: "blend", view: "settled", metric: "mrr" })), "");
    const shown = async (arm) => [await words(of("value", { arm, view: "settled", metric: "mrr" })), await words(of("bases", { arm, view: "settled" }))];
    assert.deepEqual(await shown("blend"), ["0.2800", "12,345 lists 2,000 users"]);
    assert.deepEqual(await shown("base"), ["0.2500", "12,345 lists 2,000 users"]);
    // The head names what the cells have: users of the analysis, or clicks.
    const bases = async () => (await words(ranker(page).locator("thead .columns th.settled").last())).toLowerCase();
    assert.equal(await bases(), "lists users");
    await pick("window", "1h");
    await pollUntil(() => shown("blend"), ([, bases]) => bases.startsWith("1 list"));
    assert.equal(await bases(), "lists clicks");
    await pick("window", "total");
    const tick = cell("blend", "ctr", "interval").locator(".margin");
    await pollUntil(() => tick.evaluate((node) => parseFloat(node.getAttribute("x1"))), (left) => left > 0 && left < 50);
  },

  /** Arms are compared with the control, and not with each other. */
  async "two winners"({ words, of, reason, facts }) {
    const reasons = [await reason("neural"), await reason("blend")];
    assert.match(reasons[0], /^promote: /);
    assert.match(reasons[1], /^also passes, not compared with neural: /);
    assert.equal(await words(of("progress")), "8.2 days since the start · Better since Tue 18 Nov");
    assert.equal(await of("progress").locator("progress").isVisible(), false, "nothing is missing");
    assert.match(await words(of("verdict")), /2 of 3 arms beat base, not compared with each other/);
    assert.equal((await facts("neural")).at(-1), "No guardrail is set.");
  },

  /** Absolute effects replace lifts, with intervals in the unit of the metric. */
  async "absolute effects"({ page, words, cell, pick }) {
    await pick("difference", "absolute");
    const shown = async (metric) => (await Promise.all(["lift", "interval"].map((column) => words(cell("blend", metric, column))))).join(": ");
    await ranker(page).locator("[data-testid=fold][data-arm=blend]").click();
    await pollUntil(() => shown("mrr@5"), (said) => said === "+0.0300: −0.0100 to +0.0700");
    assert.equal(await shown("ctr"), "+3.00 pp: −1.00 pp to +7.00 pp");
    assert.equal(await shown("lists_per_user"), "–: –");
    const edges = async (metric) => {
      const boxOf = (column) => cell("blend", metric, column).evaluate((node) => {
        const range = document.createRange();
        range.selectNodeContents(node.querySelector(".interval > span") ?? node);
        return range.getBoundingClientRect().toJSON();
      });
      const [lift, interval] = await Promise.all(["lift", "interval"].map(boxOf));
      return [lift.right, interval.left].map(Math.round);
    };
    assert.deepEqual(await edges("ctr"), await edges("lists_per_user"), "numbers with a unit and dashes are in line");
    assert.equal(await cell("blend", "ctr", "interval").locator("svg").isVisible(), false, "units differ");
    assert.equal(await ranker(page).locator("[data-testid=difference]").count(), 0);
  },

  /** Lifts are folded, with what to check first. */
  async invalid({ page, words, of }) {
    const lifts = () => ranker(page).locator("[data-testid=compared] .line td[data-column=lift]:visible, [data-testid=compared-metric]:visible, [data-testid=charts]:visible").count();
    assert.equal(await lifts(), 0);
    assert.match(await words(of("distrust")), /^Check first: whether each arm logs all of its lists.* What to do show the lifts anyway$/);
    assert.equal(await of("distrust").locator("a").getAttribute("href"), "runbooks#abgaugesampleratiomismatch");
    const button = of("distrust").locator("button");
    await button.click();
    assert.ok((await lifts()) > 0);
    assert.equal(await button.innerText(), "hide the lifts");
    await button.click();
    assert.equal(await lifts(), 0);
  },

  /** Every check is named with its result. */
  async trusted({ words, of }) {
    assert.equal(
      await words(of("trust")),
      "6 of 7 checks passed, 1 not possible yet: traffic split OK (p = 0.800) each user in one arm OK (0.05% in two) users known OK equal losses OK equal lists per user OK (1.051 times the control's, lowest p = 1) clicks find their list no clicks yet data read OK",
    );
    assert.equal(await of("trust").locator("a").count(), 0);
  },

  /** Checks that failed come with their runbooks, those of the stream too. */
  async "not trusted"({ words, of }) {
    assert.match(await words(of("trust")), /^2 of 7 checks failed: traffic split not as planned \(p < 0\.001\) What to do clicks find their list 10\.0% find none What to do each user in one arm not checked users known OK .* data read OK$/);
    const links = await of("trust").locator("a").evaluateAll((nodes) => nodes.map((node) => node.getAttribute("href")));
    assert.deepEqual(links, ["runbooks#abgaugesampleratiomismatch", "runbooks#abgaugeunmatchedclicks"]);
  },

  /** Misspelled names take one line, and can be opened. */
  async "few lists"({ page, words }) {
    const folded = page.locator("[data-testid=folded]");
    assert.equal(await words(folded), "12 names with few lists are not shown, perhaps misspelled: rankr (1 list) <b> (3 lists) and 10 more");
    await folded.locator("button").first().click();
    await pollUntil(() => new URL(page.url()).hash, (hash) => hash.includes("experiment=rankr"));
  },

  /** No green light above a stream of which nothing is counted. */
  async "nothing counted"({ page, words }) {
    assert.equal(await words(page.locator("#state")), "numbers missing or wrong");
    assert.equal(await words(page.locator("#reason")), "Nothing is counted: none of 54,694 records of topic served was accepted as a list, since 2025-11-19 12:00. What to do");
  },
};

/** Changes to every answer of the daemon, made in the page. */
const CHANGES = {
  "few lists": { folded: [{ name: "rankr", lists: 1 }, { name: "<b>", lists: 3 }], n_folded: 12 },
  "not trusted": { stream: { click_results: { matched: 9_000, unmatched: 1_000 } } },
  "nothing counted": { stream: { records: { served: { accepted: 0, ignored: 54_694 }, clicks: { accepted: 0 } }, since_ms: 1_763_553_600_000 } },
};

const ranker = (page) => page.locator('[data-testid=experiment][data-experiment="ranker"]');

/** Gives the metrics of every comparison an absolute effect. */
function addEffects() {
  const parse = JSON.parse;
  JSON.parse = (text) => {
    const answer = parse(text);
    for (const { comparison } of (answer.experiments ?? []).flatMap(({ arms }) => arms))
      for (const metric of Object.values(comparison?.metrics ?? {})) if (metric.control !== undefined) metric.absolute = { value: 0.03, lower: -0.01, upper: 0.07 };
    return answer;
  };
}

const script = what === "absolute effects" ? addEffects : { content: `(${changeAnswers})(${JSON.stringify(CHANGES[what] ?? {})})` };

await withPage(url, { script, viewport: { width: 1440, height: 900 }, timezoneId: what === "confirmed" ? "Pacific/Kiritimati" : "UTC" }, async (page, objections) => {
  const { locate, state, pick } = hands(page);
  await state({ "nothing counted": "wrong", "not trusted": "warned" }[what] ?? "ready");
  await ranker(page).locator("[data-testid=comparison]").first().waitFor(PATIENCE);
  const of = (testid, attributes = {}) => ranker(page).locator(`[data-testid="${testid}"]` + Object.entries(attributes).map(([name, it]) => `[data-${name}=${JSON.stringify(it)}]`).join(""));
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
  const open = async (arm) => {
    const fold = of("fold", { arm });
    if ((await fold.getAttribute("aria-expanded")) === "false") await fold.click();
    return of("comparison", { arm });
  };
  const cell = (arm, metric, column) => of("comparison", { arm }).locator(`tr[data-metric="${metric}"] td[data-column=${column}]`);
  const reason = async (arm) => words((await open(arm)).locator("td[data-column=reason]"));
  const facts = async (arm) => {
    const comparison = await open(arm);
    return comparison.locator("[data-testid=facts] li").allInnerTexts().then((all) => all.map((text) => text.replaceAll(/\s+/g, " ").trim()));
  };
  await CHECKS[what]({ page, locate, words, of, cell, reason, colors, facts, pick });
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 844 });
    await checkWidth(page);
    await checkAccessibility(page, `${what}, ${width} wide`);
    if (folder) await page.screenshot({ path: join(folder, `${what}-${width}.png`), fullPage: true });
  }
  assert.deepEqual(objections, []);
});
console.log("all is well");
