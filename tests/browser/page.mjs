// Opens the live page while the demo runs, and holds it to its claims by clicks and keys.
//
//   page.mjs URL [FOLDER]    with a folder, leaves page.png, page-dark.png and page-phone.png there

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { PATIENCE, changeAnswers, checkAccessibility, checkTargets, checkWidth, hands, pollUntil, withPage } from "./launch.mjs";

const [url, folder] = process.argv.slice(2);
const EXPERIMENTS = { layout: ["grid", "carousel"], ranker: ["control", "blend", "neural"] };
const VIEWS = ["live", "settled"];
const METRICS = ["hit_rate", "ctr", "mrr"];
/** How long it may take until the demo names a winner. */
const PORTRAIT_MS = 180_000;
const N_VALUES = 5 * METRICS.length;
/** Pixels of the first view. */
const HIGHEST = 1600;

const options = { viewport: { width: 1440, height: 900 }, deviceScaleFactor: 1.5, timezoneId: "UTC" };
await withPage(url, options, async (page, objections) => {
  const { locate, all, state, box, pick, hash, number, settled } = hands(page);
  const order = () => locate("arm", { experiment: "ranker" }).evaluateAll((nodes) => nodes.map((node) => node.dataset.arm));

  await state("ready");
  assert.equal(await locate("state").innerText(), "ready");
  assert.equal(await locate("reason").isVisible(), false, "nothing stands against the demo's numbers");
  // Simulated numbers must not be mistaken for real ones, not even on paper.
  assert.equal(await locate("demo").innerText(), "demo: simulated numbers");
  await page.emulateMedia({ media: "print" });
  assert.ok(await locate("demo").isVisible());
  await page.emulateMedia({ media: null });
  await firstView();

  // Every arm stands there, control first, with its numbers in both views, once some of its lists were clicked on.
  await pick("view", "both");
  await pick("window", "1h");
  await pick("k", "whole");
  await locate("experiment", { experiment: "ranker" }).first().locator('.wide [data-sort="name"]').click();
  await settled();
  const clicked = (n) => [...document.querySelectorAll("[data-testid=value][data-value]")].filter((node) => Number(node.dataset.value) > 0).length === n;
  await page.waitForFunction(clicked, N_VALUES * VIEWS.length, PATIENCE);
  assert.deepEqual((await all("arm", "data-arm")).toSorted(), Object.values(EXPERIMENTS).flat().toSorted());
  for (const [experiment, arms] of Object.entries(EXPERIMENTS))
    for (const arm of arms)
      for (const view of VIEWS)
        for (const metric of METRICS) {
          const cell = locate("value", { experiment, arm, view, metric });
          const [value, text] = await cell.evaluate((node) => [Number(node.dataset.value), node.textContent]);
          assert.ok(value > 0 && value < 1, `${experiment}/${arm} ${view} ${metric}: ${value}`);
          const shown = text.endsWith("%") ? parseFloat(text) / 100 : parseFloat(text);
          assert.ok(Math.abs(shown - value) < 1e-4, `${text} shows ${value}`);
        }

  // They change without anyone touching the page; so do the ends and the counts of the stream.
  const numbers = async () => ({
    values: await all("value", "data-value"),
    lists: await all("bases", "data-lists"),
    ends: [await all("live-end", "data-value"), await all("settled-end", "data-value")],
    records: await locate("records").innerText(),
  });
  const before = await numbers();
  const later = await pollUntil(numbers, (now) => Object.keys(now).every((key) => JSON.stringify(now[key]) !== JSON.stringify(before[key])));
  for (const [i, end] of later.ends.entries()) assert.ok(Number(end[0]) > Number(before.ends[i][0]), "time goes forward");

  // Differences are to the control, relative or absolute; the control has none.
  assert.deepEqual(await locate("control").filter({ visible: true }).count(), 1, "grid, and not the arm called control");
  const differences = (kind) => page.evaluate((kind) => {
    const value = (testid, arm) => document.querySelector(`[data-testid=${testid}][data-experiment=ranker][data-arm=${arm}][data-view=settled][data-metric=ctr]`);
    const [arm, control] = ["neural", "control"].map((arm) => Number(value("value", arm).dataset.value));
    const node = value("difference", "neural");
    return { seen: Number(node.dataset.value), text: node.textContent, right: kind === "absolute" ? arm - control : (arm - control) / control };
  }, kind);
  const relative = await differences("relative");
  assert.equal(relative.seen, relative.right);
  assert.match(relative.text, /^[+−±]\d+\.\d%$/);
  const written = await page.evaluate(() => {
    const nodes = [...document.querySelectorAll("[data-testid=difference][data-value]")];
    return nodes.map((node) => [Number(node.dataset.value), node.textContent]).filter(([, text]) => /^[+−±][\d.,]+%$/.test(text));
  });
  assert.ok(written.length > 3, "several differences are shown");
  for (const [share, text] of written)
    assert.equal(text.slice(1), `${new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 }).format(Math.abs(100 * share))}%`, "rounded, not cut");
  await pick("difference", "absolute");
  const absolute = await differences("absolute");
  assert.equal(absolute.seen, absolute.right);
  assert.match(absolute.text, /^[+−±]\d+\.\d\d\spp$/);
  assert.equal(hash().difference, "absolute");
  for (const without of [{ experiment: "ranker", arm: "control" }, { experiment: "layout", arm: "grid" }])
    assert.equal(await locate("difference", { ...without, view: "settled", metric: "ctr" }).innerText(), "");
  await pick("difference", "relative");

  // Another window and another k, kept in the address; the way back leads through them.
  await pick("window", "5m");
  await pick("window", "1h");
  await pick("k", "5");
  assert.deepEqual([hash().window, hash().k], ["1h", "5"]);
  await page.waitForSelector('[data-testid=value][data-key="hit_rate@5"][data-value]');
  assert.match(await locate("experiment", { experiment: "ranker" }).locator("thead").first().innerText(), /hit ratio@5/);
  await page.goBack();
  await page.waitForSelector('[data-testid=value][data-key="hit_rate"][data-value]');
  assert.deepEqual([hash().window, hash().k, await box("k", "whole").isChecked()], ["1h", "whole", true]);
  await page.goForward();
  await page.waitForSelector('[data-testid=value][data-key="hit_rate@5"][data-value]');

  // Lines run through all cells but for one that has just begun, in both views.
  const lines = () => locate("line").evaluateAll((all) => all.map((line) => [...line.querySelectorAll("path")].map((path) => path.getAttribute("d")).join("")));
  const isWhole = (d) => (d.match(/[ML]/g) ?? []).length >= 59;
  await pollUntil(lines, (all) => all.length === N_VALUES * 2 && all.every(isWhole));

  await checkAccessibility(page, "light");

  // One view at a time.
  await pick("view", "settled");
  assert.deepEqual([...new Set(await all("value", "data-view"))], ["settled"]);
  assert.equal(await locate("value").count(), N_VALUES);
  await pick("view", "both");

  // A head sorts, by click and by key, and the control stays first.
  const ofRanker = locate("experiment", { experiment: "ranker" });
  const head = (key) => ofRanker.locator(`.wide [data-sort="${key}"]`);
  const isSorted = async (sign) => {
    const shown = [];
    for (const arm of (await order()).slice(1)) shown.push(await number(locate("value", { experiment: "ranker", arm, view: "settled", metric: "ctr" })));
    return shown.length === 2 && sign * shown[0] <= sign * shown[1];
  };
  await head("settled.ctr").click();
  await pollUntil(() => head("settled.ctr").locator("xpath=..").getAttribute("aria-sort"), (order) => order === "descending");
  assert.ok((await order())[0] === "control" && (await isSorted(-1)));
  assert.equal(hash().sort, "-settled.ctr");
  await head("settled.ctr").press("Enter");
  await pollUntil(() => head("settled.ctr").locator("xpath=..").getAttribute("aria-sort"), (order) => order === "ascending");
  assert.ok((await order())[0] === "control" && (await isSorted(1)));
  assert.ok(await head("settled.ctr").evaluate((node) => node === document.activeElement), "the focus stays");
  await head("name").click();
  await pollUntil(order, (arms) => arms.join() === "control,blend,neural");

  // A filter finds arms and experiments; what finds nothing says so; Escape ends it.
  const filter = page.locator("#filter");
  await filter.pressSequentially("NEUR");
  await pollUntil(() => all("arm", "data-arm"), (arms) => arms.join() === "control,neural");
  assert.equal(await locate("extent").innerText(), "2 of 3 arms");
  await filter.pressSequentially("zz");
  await pollUntil(() => locate("empty").isVisible(), (isThere) => isThere);
  assert.match(await locate("empty").innerText(), /^None of the 5 arms has “neurzz” in its name/);
  await checkAccessibility(page, "nothing found");
  await filter.press("Escape");
  await pollUntil(() => all("arm", "data-arm"), (arms) => arms.length === 5);
  assert.equal(hash().filter, undefined);

  // What is chosen can be sent to a colleague.
  await pick("view", "live");
  const colleague = await page.context().newPage();
  await colleague.goto(page.url());
  await colleague.waitForSelector('[data-testid=value][data-view=live][data-key="ctr@5"]', PATIENCE);
  assert.equal(await colleague.locator("[data-testid=value][data-view=settled]").count(), 0);
  assert.ok(await hands(colleague).box("window", "1h").isChecked());
  // What is not there is told, and the default stands in; one click leads to the defaults.
  const notes = () => hands(colleague).locate("notes").locator("li").allInnerTexts();
  await colleague.goto(`${url}#window=7d&view=sideways&difference=none&experiment=gone&page=9&windw=1h`);
  await pollUntil(notes, (said) => said.length === 6);
  for (const [i, part] of ["window “7d” here: since start is shown. It can be 5m, 1h, 24h, total (since start).", "view “sideways” here: final is shown. It can be settled (final), both, live.", "difference “none” here: relative is", "“windw” is not a parameter", "experiment “gone”: all are", "page 9 here: page 1 is"].entries())
    assert.ok((await notes())[i].includes(part), (await notes()).join("\n"));
  await checkAccessibility(colleague, "an address of things that are not there");
  await colleague.locator("#notes button").click();
  await pollUntil(notes, (said) => said.length === 0);
  assert.deepEqual(hands(colleague).hash(), {});
  await colleague.goto(`${url}#experiment=ranker`);
  await pollUntil(() => hands(colleague).all("experiment", "data-experiment"), (names) => names.join() === "ranker");
  await colleague.locator("[data-testid=alone]").click();
  // Their order depends on what has been decided by then.
  await pollUntil(() => hands(colleague).all("experiment", "data-experiment"), (names) => names.toSorted().join() === "layout,ranker");
  await colleague.close();
  await pick("view", "both");

  // Words explain themselves by pointer, by key and by touch; Escape takes the explanation away.
  const tip = page.locator("#tip");
  const settledWord = ofRanker.locator(".groups .settled .explain");
  await settledWord.hover();
  assert.match(await tip.innerText(), /attribution window has closed/);
  await page.keyboard.press("Escape");
  assert.equal(await tip.isVisible(), false);
  await page.mouse.move(0, 0);
  await settledWord.focus();
  assert.match(await tip.innerText(), /attribution window has closed/);
  assert.equal(await settledWord.getAttribute("aria-describedby"), "tip");
  await checkAccessibility(page, "an explanation open");
  await page.keyboard.press("Escape");
  assert.equal(await tip.isVisible(), false);
  await touch();

  // Keys alone lead past the header to the arms, and what is chosen stays so.
  const keys = await page.context().newPage();
  await keys.goto(page.url());
  await keys.waitForSelector("[data-testid=arm]", PATIENCE);
  await keys.keyboard.press("Tab");
  assert.equal(await keys.evaluate(() => document.activeElement.textContent), "Skip to the arms");
  await keys.keyboard.press("Enter");
  await keys.keyboard.press("Tab");
  assert.ok(await keys.evaluate(() => document.querySelector("#experiments").contains(document.activeElement)));
  assert.equal(keys.url(), page.url());
  await keys.close();

  await downloads();
  await losses();

  // Operations have a part of their own, by a link that leaves all else as it is chosen; the strip tells of the stream.
  const shows = page.locator("#shows a");
  assert.equal(await locate("health").isVisible(), false);
  await shows.nth(1).click();
  await pollUntil(() => locate("health").isVisible(), (isVisible) => isVisible);
  assert.deepEqual([hash().show, hash().window, hash().k], ["operations", "1h", "5"]);
  assert.equal(await shows.nth(1).getAttribute("aria-current"), "page");
  assert.equal(await locate("experiment").first().isVisible(), false);
  assert.ok(await locate("records").isVisible() && (await locate("live-end").isVisible()));
  await checkAccessibility(page, "operations");
  await page.setViewportSize({ width: 360, height: 740 });
  await checkWidth(page);
  await checkAccessibility(page, "operations on a phone");
  await page.setViewportSize(options.viewport);
  const tiles = await page.locator("#tiles dt").allInnerTexts();
  for (const name of ["lag", "delay of final lists", "open lists", "clicks waiting", "memory", "partitions", "unmatched clicks"])
    assert.ok(tiles.includes(name), `${name}: ${tiles}`);
  assert.equal(await page.locator('[data-tile="partitions"] dd').innerText(), "8");
  await shows.first().click();
  await pollUntil(() => locate("experiment").first().isVisible(), (isVisible) => isVisible);
  assert.deepEqual([hash().show, hash().window], [undefined, "1h"]);

  // A phone, upright: nothing sticks out to the side, everything is there.
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await locate("shown").innerText(), "1h, k = 5, both views, relative differences, 3 metrics");
  await page.locator("#choices > summary").click();
  await page.locator("#words summary").click();
  for (const window of ["5m", "total", "1h"]) {
    await pick("window", window);
    await settled();
    await checkWidth(page);
  }
  assert.ok(await locate("value", { experiment: "ranker", arm: "neural", view: "settled" }).first().isVisible());
  const rightEnds = await page.locator("[data-testid=compared-metric] [data-column=p]").evaluateAll((cells) => cells.map((cell) => cell.getBoundingClientRect().right));
  assert.ok(rightEnds.length > 0 && rightEnds.every((x) => x <= 360), `lift, interval and p stand within the screen: ${rightEnds}`);
  await page.locator("#sort").selectOption("live.mrr");
  await pollUntil(() => hash().sort, (sort) => sort === "live.mrr");
  await checkAccessibility(page, "phone, light");
  await page.emulateMedia({ colorScheme: "dark" });
  await checkAccessibility(page, "phone, dark");

  // In the dark, ink is light and paper dark; on a wide screen and a narrow one nothing sticks out.
  for (const width of [2560, 1920, 1024, 768, options.viewport.width]) {
    await page.setViewportSize({ ...options.viewport, width });
    await checkWidth(page);
  }
  assert.ok(await page.locator("#choices").evaluate(({ open }) => open), "what was folded up on the phone is open again");
  await allMetrics();
  const [ink, paper] = await page.evaluate(() => {
    const style = getComputedStyle(document.body);
    return [style.color, style.backgroundColor].map((color) => color.match(/\d+/g).reduce((sum, part) => sum + Number(part), 0));
  });
  assert.ok(ink > 600 && paper < 120, `ink ${ink}, paper ${paper}`);
  await checkAccessibility(page, "dark");

  // Whatever the system has, what is chosen here counts, on other pages too, and is kept.
  const paperOf = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await paperOf(page);
  const other = await page.context().newPage();
  await other.emulateMedia({ colorScheme: "dark" });
  await other.goto(url);
  await page.locator("#colours").selectOption("light");
  const light = await paperOf(page);
  assert.notEqual(light, dark);
  await pollUntil(() => paperOf(other), (paper) => paper === light);
  await other.reload();
  assert.equal(await paperOf(other), light);
  assert.equal(await other.locator("#colours").inputValue(), "light");
  await checkAccessibility(page, "light on a dark system");
  await page.emulateMedia({ colorScheme: "light" });
  await page.locator("#colours").selectOption("dark");
  await pollUntil(() => paperOf(other), (paper) => paper === dark);
  await checkAccessibility(page, "dark on a light system");
  await page.locator("#colours").selectOption({ label: "system" });
  assert.equal(await paperOf(page), light);
  await other.close();
  await page.emulateMedia({ colorScheme: "dark" });
  await settledWord.focus();
  await checkAccessibility(page, "dark, an explanation open");
  if (folder) await portraits();

  assert.deepEqual(objections, []);

  /**
   * Without a choice: settled lists since the start, by the primary metric of the experiment, what it comes to in a sentence before
   * everything else, and the lift with its interval beside each value. All of it is what the API says at that moment.
   */
  async function firstView() {
    await page.waitForSelector("[data-testid=comparison] [data-column=lift][data-value]", PATIENCE);
    assert.deepEqual(hash(), {});
    for (const [name, value] of [["window", "total"], ["k", "10"], ["view", "settled"], ["difference", "relative"]])
      assert.ok(await box(name, value).isChecked(), `${name}: ${value}`);
    const rows = new Set((await all("compared-metric", "data-metric")).slice(0, 3));
    assert.deepEqual([...rows], ["ctr@10", "hit_rate@10", "mrr@10"], "the primary metric comes first");
    assert.equal(await locate("value").count(), 0, "each number is shown once");
    const said = await pollUntil(
      () => page.evaluate(async () => {
        const { experiments } = await (await fetch("api/v1/view")).json();
        const told = ({ name, verdict, arms }) => {
          const section = document.querySelector(`[data-testid=experiment][data-experiment="${name}"]`);
          const part = (testid) => section.querySelector(`[data-testid=${testid}]`);
          // The row of the primary metric of an open arm, or the line of a closed one.
          const row = (arm) => section.querySelector(`[data-arm="${arm}"] [data-metric="ctr@10"], [data-arm="${arm}"] .line:has([data-column=lift])`);
          const lift = (arm) => row(arm).querySelector("[data-column=lift]");
          const shown = ({ state, metrics: { "ctr@10": it } }) => (["win", "loss", "no_effect"].includes(state) && it.decision ? it.decision : it);
          const lifts = arms.filter(({ comparison }) => comparison?.metrics["ctr@10"]?.lift !== undefined);
          return {
            name,
            sentence: [verdict.sentence, part("sentence").textContent],
            badge: [verdict.badge, part("verdict").dataset.badge],
            isFirst: part("verdict").compareDocumentPosition(part("comparison")) & Node.DOCUMENT_POSITION_FOLLOWING,
            lifts: lifts.map(({ name, comparison }) => [shown(comparison).lift, Number(lift(name).dataset.value), `${lift(name).textContent} (${row(name).querySelector("[data-column=interval]").textContent})`]),
            asOf: part("as-of").textContent,
          };
        };
        return experiments.map(told);
      }),
      (said) => said.every(({ sentence, lifts }) => sentence[0] === sentence[1] && lifts.length > 0 && lifts.every(([told, shown]) => told === shown)),
    );
    for (const { name, sentence, badge, isFirst, lifts, asOf } of said) {
      assert.equal(badge[0], badge[1], name);
      assert.ok(isFirst, name);
      assert.match(sentence[0], /CTR@10 [+−±][\d.]+% \([+−±][\d.]+% to [+−±][\d.]+%\), [\d.]+% against [\d.]+%, [\d,]+ (against [\d,]+ users|users each), traffic split OK \(p = [\d.]+\)/);
      for (const [, , text] of lifts) assert.match(text, /^[+−±][\d.]+% \([+−±][\d.]+% to [+−±][\d.]+%\)$/);
      assert.match(asOf, /^All lists from \d{4}-\d\d-\d\d \d\d:\d\d to \d{4}-.* that no click can change any more \(final\)\./);
    }
    // The badges of several experiments are at the top, and lead to their sentences.
    const names = said.map(({ name }) => name);
    const links = async () => (await locate("verdicts").locator("li").allInnerTexts()).map((text) => text.replace(/\s+/, " "));
    const badges = async () => Promise.all(names.map(async (experiment) => `${experiment} ${await locate("experiment", { experiment }).locator("[data-testid=badge]").innerText()}`));
    await pollUntil(async () => [await links(), await badges()], ([links, badges]) => links.join() === badges.join());
    assert.deepEqual(names.toSorted(), ["layout", "ranker"]);
    await locate("verdicts").locator("button").nth(1).click();
    assert.equal(await page.evaluate(() => document.activeElement.closest("section")?.dataset.experiment), names[1]);
    await pollUntil(() => locate("experiment").nth(1).evaluate((node) => Math.abs(node.getBoundingClientRect().top) < innerHeight / 2), (isIt) => isIt);
    await page.evaluate(() => scrollTo(0, 0));
    // Behind the control the arms stand by the least that their lift may be.
    assert.equal(await page.locator("#sort").inputValue(), "lift");
    assert.equal(await locate("comparison", { experiment: "ranker" }).first().getAttribute("data-arm"), "control");
    assert.equal((await locate("comparison", { experiment: "ranker" }).first().locator(".arm").innerText()).trim(), "control", "it is not marked twice");
    // One arm of each experiment is open: the arm of the sentence.
    assert.equal(await page.locator("[data-testid=fold][aria-expanded=true]").count(), 2);
    // Five arms in two experiments, on a desktop.
    const height = await page.evaluate(() => document.documentElement.scrollHeight);
    assert.ok(height <= HIGHEST, `${height} pixels`);
    console.log(`${height} pixels high`);
    await checkAccessibility(page, "first view");
    await copied();
    await printed();
  }

  /** Rows that are selected come in clean columns. */
  async function copied() {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.evaluate(() => getSelection().selectAllChildren(document.querySelector('[data-experiment="ranker"] [data-testid=compared]')));
    await page.keyboard.press("Control+c");
    const read = () => page.evaluate(() => navigator.clipboard.readText());
    const rows = (await pollUntil(read, (text) => text.includes("\t"))).split("\n").map((line) => line.split("\t"));
    assert.ok(rows.every((cells) => cells.length === rows[0].length), JSON.stringify(rows));
    assert.deepEqual(rows[0].slice(0, 5), ["arm (CTR@10), metric", "control", "arm", "lift", "interval"]);
    const primary = rows.find(([name]) => name === "CTR@10 primary");
    assert.match(primary.slice(1, 5).join(" "), /^[\d.]+% [\d.]+% [+−±][\d.]+% [+−±][\d.]+% to [+−±][\d.]+%$/);
    await page.evaluate(() => getSelection().removeAllRanges());
  }

  /** On paper: the results of both experiments on two pages, with date and address. */
  async function printed() {
    const file = (await page.pdf({ format: "A4" })).toString("latin1");
    const n = file.match(/\/Type\s*\/Page\b/g).length;
    assert.ok(n <= 2, `${n} pages`);
    await page.emulateMedia({ media: "print" });
    assert.ok((await page.locator("#printed").innerText()).startsWith(`${page.url()}, printed 20`));
    assert.equal(await page.locator("#choices").isVisible(), false);
    await page.emulateMedia({ media: "screen" });
  }

  /** The first view with the charts of its first experiment, once that is decided. */
  async function portraits() {
    await page.setViewportSize(options.viewport);
    await page.goto(`${url}#unfolded=ranker`);
    await page.emulateMedia({ colorScheme: "light" });
    const isDecided = () => page.locator("[data-testid=verdict][data-badge=win]").count();
    await pollUntil(isDecided, (n) => n > 0, PORTRAIT_MS);
    await state("ready");
    await page.waitForSelector('[data-experiment="ranker"] [data-testid=charts][data-drawn]', PATIENCE);
    await portray("page.png", await toFirst());
    await page.emulateMedia({ colorScheme: "dark" });
    await portray("page-dark.png", await toFirst());
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 390, height: 844 });
    await portray("page-phone.png", { fullPage: false });
  }

  /** Seven metrics stand on a laptop whole, live below settled; where more goes on beyond the edge, it shows. */
  async function allMetrics() {
    const beyond = () => page.locator(".wide").evaluateAll((tables) => Math.max(...tables.map((it) => it.scrollWidth - it.clientWidth)));
    const hints = () => page.locator(".wide.more").count();
    const top = async (view) => (await locate("value", { experiment: "ranker", arm: "neural", view, metric: "ctr" }).boundingBox()).y;
    const isStacked = async () => (await top("live")) > (await top("settled"));
    await page.setViewportSize({ width: 1280, height: 900 });
    // The page looks again at what fits once the browser tells it of its new size.
    const layout = async () => [await beyond(), await hints(), await isStacked()].join(" ");
    await pollUntil(layout, (now) => now === "0 0 false");
    for (const id of ["ndcg", "precision", "recall", "map"]) await pick("metric", id);
    await pollUntil(() => all("value", "data-value"), (values) => values.length === 2 * 5 * 7);
    await pollUntil(layout, (now) => now === "0 0 true");
    await checkAccessibility(page, "seven metrics, stacked");
    await page.setViewportSize({ width: 1024, height: 900 });
    await pollUntil(hints, (n) => n === 2);
    assert.ok((await beyond()) > 0);
    await page.locator(".wide").evaluateAll((tables) => tables.forEach((it) => it.scrollTo(it.scrollWidth, 0)));
    await pollUntil(hints, (n) => n === 0);
    await page.setViewportSize(options.viewport);
    for (const id of ["ndcg", "precision", "recall", "map"]) await pick("metric", id);
    await pollUntil(() => all("value", "data-value"), (values) => values.length === 2 * N_VALUES);
  }

  async function touch() {
    const context = await page.context().browser().newContext({ hasTouch: true, isMobile: true, viewport: { width: 360, height: 740 } });
    const phone = await context.newPage();
    await phone.goto(url);
    await phone.waitForSelector('#state[data-state="ready"]', PATIENCE);
    await phone.locator("#shows a").nth(1).tap();
    const word = phone.locator('[data-tile="lag"] .explain');
    await word.tap();
    assert.match(await phone.locator("#tip").innerText(), /Records between the read positions/);
    await phone.locator("h1").tap();
    assert.equal(await phone.locator("#tip").isVisible(), false);
    await phone.locator("#shows a").first().tap();
    await phone.locator("#choices > summary").tap();
    await checkTargets(phone);
    await checkWidth(phone);
    await checkAccessibility(phone, "phone, by touch");
    await phone.setViewportSize({ width: 768, height: 1024 });
    await checkTargets(phone);
    await context.close();
  }

  /** No green light beside a stream that loses its clicks, whatever the daemon itself warns of. */
  async function losses() {
    for (const [unmatched, name, share] of [[40, "ready"], [60, "warned", "6.0"], [700, "wrong", "70.0"]]) {
      const context = await page.context().browser().newContext();
      await context.addInitScript(changeAnswers, { stream: { click_results: { matched: 1000 - unmatched, unmatched } } });
      const losing = await context.newPage();
      await losing.goto(url);
      await hands(losing).state(name);
      const reason = hands(losing).locate("reason");
      assert.equal(await reason.isVisible(), share !== undefined);
      if (share !== undefined) {
        assert.equal((await reason.innerText()).replace(/, since [\d-]+ [\d:]+/, ""), `Clicks are being lost: ${share}% of the accepted clicks find no list. What to do`);
        assert.equal(await reason.locator("a").getAttribute("href"), "runbooks#abgaugeunmatchedclicks");
      }
      await context.close();
    }
  }

  async function downloads() {
    const save = async (id) => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.locator(id).click()]);
      return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
    };
    const csv = await save("#csv");
    assert.match(csv.name, /^abgauge-.*\.csv$/);
    const [names, ...rows] = csv.text.trimEnd().split("\r\n").map((line) => line.split(","));
    assert.equal(rows.length, N_VALUES * 2, csv.text);
    const row = (arm, view) => Object.fromEntries(rows.find((row) => row[1] === arm && row[3] === view && row[7] === "ctr").map((it, i) => [names[i], it]));
    const [neural, control] = [row("neural", "settled"), row("control", "settled")];
    assert.deepEqual([neural.experiment, neural.window, neural.k, neural.is_control], ["ranker", "1h", "5", "false"]);
    assert.deepEqual([control.is_control, control.difference_absolute, neural.control_value], ["true", "", control.value]);
    const end = Number(await locate("live-end").getAttribute("data-value"));
    assert.ok(Date.parse(neural.settled_end) < Date.parse(neural.live_end) && Date.parse(neural.live_end) <= end, csv.text.slice(0, 900));
    // The rest is the decision log of the latest analysis, since the start.
    const compared = JSON.parse((await save("#json")).text).rows.find(({ arm, view, metric }) => arm === "neural" && view === "settled" && metric === "ctr");
    const known = ["analysis", "state", "label", "result", "reason", "sentence", "users", "planned_share", "analysis_lists"];
    assert.deepEqual(known.filter((name) => compared[name] === undefined || !names.includes(name)), [], csv.text.slice(0, 900));
    const times = ["last_list", "analysis"].map((name) => compared[name]);
    assert.ok(times.every((it) => new Date(it).toISOString() === it), times.join());
    assert.equal(Number(neural.difference_absolute), Number(neural.value) - Number(control.value));
    const json = await save("#json");
    const told = JSON.parse(json.text);
    assert.deepEqual([told.chosen.window, told.rows.length], ["1h", N_VALUES * 2]);
    for (const name of ["live_end", "settled_end", "since"]) assert.equal(new Date(told[name]).toISOString(), told[name], name);
    assert.ok(told.rows.every(({ value, lists }) => value > 0 && lists > 0));
  }

  /** A pixel for a pixel of the page is enough where it is wide, at half of the bytes. */
  /** The page down to the end of its first experiment. */
  async function toFirst() {
    const bottom = await locate("experiment").first().evaluate((node) => node.getBoundingClientRect().bottom + scrollY);
    return { fullPage: true, scale: "css", clip: { x: 0, y: 0, width: options.viewport.width, height: Math.ceil(bottom) + 16 } };
  }

  async function portray(name, how) {
    await page.evaluate(() => {
      document.querySelector("#words").removeAttribute("open");
      document.activeElement?.blur();
      scrollTo(0, 0);
    });
    await page.mouse.move(0, 0);
    await page.screenshot({ path: join(folder, name), ...how });
  }
});
console.log("all is well");
