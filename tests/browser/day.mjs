// Follows the live page of a daemon from before its first event on, as somebody does who waits for an experiment to begin.
//
//   day.mjs URL MOST_STREAMS    says "begin", "go on" and "another experiment" when it is time for such lists

import assert from "node:assert/strict";
import http from "node:http";

import { PATIENCE, checkAccessibility, checkWidth, hands, pollUntil, withPage } from "./launch.mjs";

const [url, mostStreams] = process.argv.slice(2);

await withPage(url, { viewport: { width: 1280, height: 800 } }, async (page, objections) => {
  const { locate, all, state, number, hash } = hands(page);
  const tile = (name) => page.locator(`[data-tile="${name}"]`);

  // Nothing has come yet, and the page says so.
  await state("ready");
  assert.equal(await locate("empty").innerText(), "Ready, but no list has been read.");
  await page.goto(`${url}#show=operations`);
  assert.equal(await tile("newest list").locator("dd").innerText(), "–");
  await page.goto(`${url}#view=both`);

  // The first lists appear by themselves. Nothing is final yet: it says from when on.
  console.log("begin");
  const lists = (arm) => locate("bases", { experiment: "first", arm, view: "live" }).getAttribute("data-lists").then(Number);
  await page.waitForSelector('[data-testid=arm][data-arm="v 2"]', PATIENCE);
  assert.equal(await locate("empty").isVisible(), false);
  assert.deepEqual(await all("arm", "data-arm"), ["v 1", "v 2"], "the control that is set comes first");
  assert.match(await locate("bases", { experiment: "first", arm: "v 2", view: "settled" }).innerText(), /final from (\d{4}-\d\d-\d\d )?\d\d:\d\d/);
  const sentence = () => locate("experiment", { experiment: "first" }).locator("[data-testid=sentence]").innerText();
  assert.match(await sentence(), /^too early: no list is final yet; the first becomes final in about (32|31|30) min of event time$/);
  const settling = locate("settling").first();
  assert.match(await settling.innerText(), /^Nothing is final yet\. Final numbers start at (\d{4}-\d\d-\d\d )?\d\d:\d\d, when the first lists can get no more clicks: \d+% of the way\./);
  const { begin, share, end: liveEnd } = await settling.evaluate((node) => {
    const progress = node.querySelector("progress");
    return { begin: Number(progress.dataset.begin), share: progress.value, end: Number(document.querySelector("[data-testid=live-end]").dataset.value) };
  });
  assert.ok(begin > liveEnd && begin - liveEnd <= 32 * 60_000 && share >= 0 && share < 0.5, `at ${begin}, ${share} of the way at ${liveEnd}`);
  await checkAccessibility(page, "nothing final");

  // They go on, over the stream.
  const before = await lists("v 2");
  console.log("go on");
  await pollUntil(() => lists("v 2"), (now) => now > before);
  assert.equal(await locate("warnings").isVisible(), false);

  // Keys alone: to a choice, along it, to a head that sorts, and to the name of what one reads.
  const focused = () => page.evaluate(() => document.activeElement.closest("[data-sort], [data-testid], [data-tip], #filter")?.outerHTML.slice(0, 120) ?? "");
  const tabTo = async (isIt) => {
    for (let presses = 0; presses < 80; presses++) {
      await page.keyboard.press("Tab");
      if (await page.evaluate(isIt)) return;
    }
    assert.fail(`no key leads to ${isIt}, but to ${await focused()}`);
  };
  await tabTo(() => document.activeElement.name === "window");
  await page.keyboard.press("ArrowRight");
  await pollUntil(hash, ({ window }) => window === "5m");
  await tabTo(() => document.activeElement.name === "metric");
  await page.keyboard.press("Space");
  await pollUntil(hash, ({ metrics }) => metrics !== undefined);
  await tabTo(() => document.activeElement.id === "filter");
  await page.keyboard.type("v 2");
  await pollUntil(hash, ({ filter }) => filter === "v 2");
  await page.keyboard.press("Escape");
  await pollUntil(hash, ({ filter }) => filter === undefined);
  await tabTo(() => document.activeElement.dataset.sort === "live.lists");
  await page.keyboard.press("Enter");
  await pollUntil(hash, ({ sort }) => sort === "-live.lists");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.sort), "live.lists", "the focus stays");

  // An experiment that begins later appears by itself, beside the other. Without a control it says so.
  console.log("another experiment");
  await pollUntil(() => all("experiment", "data-experiment"), (names) => names.join() === "first,second");
  // With its second arm, which may come later.
  await locate("experiment", { experiment: "second" }).locator("[data-testid=uncontrolled]").waitFor(PATIENCE);
  assert.ok((await number(locate("value", { experiment: "first", arm: "v 2", view: "live" }).first())) > 0);

  // Nothing comes any more: the live end moves on, and the newest list grows old.
  await page.locator("#shows a").nth(1).click();
  const age = () => tile("newest list").locator("dd").innerText().then(parseFloat);
  const [young, end] = [await age(), Number(await locate("live-end").getAttribute("data-value"))];
  await pollUntil(age, (seconds) => seconds > young);
  assert.ok(Number(await locate("live-end").getAttribute("data-value")) > end);

  await page.locator("#shows a").first().click();

  // A phone: nothing sticks out to the side.
  await page.setViewportSize({ width: 360, height: 740 });
  await checkWidth(page);
  await checkAccessibility(page, "two experiments on a phone");
  assert.deepEqual(objections, []);

  // As many pages follow as may: one more has its numbers all the same, from time to time, says so, and follows once it may.
  const others = [];
  const stream = () => new Promise((resolve) => others.push(http.get(`${url}api/v1/view/stream`, resolve)));
  for (let n = 1; n < Number(mostStreams); n++) assert.equal((await stream()).statusCode, 200);
  assert.equal((await stream()).statusCode, 503);
  const context = await page.context().browser().newContext();
  const late = await context.newPage();
  // A part of the page that does not come is asked for again.
  await late.route("**/page/words.js", (route) => route.abort());
  await late.goto(url);
  await late.waitForFunction(() => document.querySelector("#state")?.innerText.startsWith("Part of this page failed to load"), null, PATIENCE);
  await late.unroute("**/page/words.js");
  await hands(late).state("ready");
  assert.match(await hands(late).locate("reason").innerText(), /^This page updates only every five seconds: too many pages follow/);
  assert.deepEqual(await hands(late).all("experiment", "data-experiment"), ["first", "second"]);
  await checkAccessibility(late, "one page too many");
  const told = async () => Number((await hands(late).all("live-end", "data-value"))[0]);
  const first = await told();
  await pollUntil(told, (end) => end > first);
  for (const other of others) other.destroy();
  await late.waitForSelector("[data-testid=reason]", { state: "hidden", ...PATIENCE });
  await context.close();

  await belowAPath();
});
console.log("all is well");

/** A proxy has put the page below a path of its own. */
async function belowAPath() {
  const PREFIX = "/team/abgauge";
  const proxy = http.createServer((request, answer) => {
    if (!request.url.startsWith(`${PREFIX}/`)) return answer.writeHead(404).end();
    const { method, headers } = request;
    const onward = http.request(new URL(request.url.slice(PREFIX.length), url), { method, headers }, (got) => {
      answer.writeHead(got.statusCode, got.headers);
      got.pipe(answer);
    });
    onward.on("error", () => answer.destroy());
    answer.on("close", () => onward.destroy());
    onward.end();
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  try {
    await withPage(`http://127.0.0.1:${proxy.address().port}${PREFIX}/`, {}, async (page, objections) => {
      const { state, all, locate } = hands(page);
      await state("ready");
      assert.deepEqual(await all("experiment", "data-experiment"), ["first", "second"]);
      const end = () => locate("live-end").getAttribute("data-value").then(Number);
      const before = await end();
      await pollUntil(end, (now) => now > before);
      assert.equal(await locate("reason").isVisible(), false, "it follows the stream");
      const links = await page.locator("footer a").evaluateAll((links) => Promise.all(links.map(({ href }) => fetch(href).then(({ status }) => status))));
      assert.deepEqual(links, [200, 200]);
      assert.deepEqual(objections, []);
    });
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
}
