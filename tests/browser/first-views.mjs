// Opens the page of demos with different seeds, each view with a fresh page, and checks that sentence, table, chart, copy, download, API and
// /metrics agree, and that each claim of a sentence is true of the simulated traffic.
//
//   first-views.mjs PROGRAM FIRST_SEED DEMOS VIEWS    VIEWS of each demo, a day of event time apart; prints what they claim

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";

import { pollUntil, withBrowser } from "./launch.mjs";

const [program, ...numbers] = process.argv.slice(2);
const [firstSeed, nDemos, nViews] = numbers.map(Number);
/** Demos that run at the same time. */
const N_PARALLEL = 4;
/** A day of event time takes ten seconds. */
const TRAFFIC = ["--speed", "9000", "--rate", "1000", "--duration", "5m", "--port", "0"];
/** True lifts of the demo over the control. */
const TRUE_LIFTS = { ranker: { neural: 0.32, blend: 0.18 }, layout: { carousel: -0.1 } };
const PRIMARY = "ctr@10";
const DAY_MS = 86_400_000;
/** A machine that is busy with other demos may take minutes. */
const PATIENCE_MS = 600_000;
const DECIDED = ["win", "loss", "no_effect"];
/** Signs of the true lift that a badge claims. */
const CLAIMS = { Better: 1, "Not worse": 1, Worse: -1, "Probably harmful": -1 };
const isCompared = ({ comparison }) => comparison?.metrics[PRIMARY]?.lower !== undefined;

const claims = new Map();
const intervals = { covered: 0, all: 0 };

let nAgreed = 0;
const seeds = Array.from({ length: nDemos }, (_, i) => firstSeed + i);
// Each has its own browser, because pages of one browser share a clipboard.
await Promise.all(Array.from({ length: Math.min(N_PARALLEL, nDemos) }, () => withBrowser(async (browser) => {
  for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) await viewDemo(browser, seed);
})));
for (const [claim, n] of [...claims].sort()) console.log(`${n} × ${claim}`);
console.log(`${intervals.covered} of ${intervals.all} intervals include the true lift`);
console.log(`${nAgreed} first views agree`);

async function viewDemo(browser, seed) {
  const demo = spawn(program, ["demo", "--seed", String(seed), ...TRAFFIC], { stdio: ["ignore", "pipe", "ignore"] });
  try {
    const url = await new Promise((resolve, reject) => {
      createInterface(demo.stdout).on("line", (line) => /live page +http/.test(line) && resolve(line.match(/http\S+/)[0]));
      demo.on("exit", (code) => reject(new Error(`the demo ended early, with code ${code}`)));
    });
    for (let view = 0; view < nViews; view++) {
      const told = await pollUntil(() => oneAnalysis(url, view * DAY_MS), (told) => told !== null, PATIENCE_MS);
      for (const experiment of await look(browser, url, told)) judge(seed, told, experiment);
      nAgreed += 1;
      if (nAgreed % 100 === 0) console.log(`${nAgreed} views so far`);
    }
  } finally {
    demo.removeAllListeners("exit");
    demo.kill("SIGKILL");
  }
}

/** Returns the answers of the API and /metrics as of the same analysis, not before this time after the start. Null if a new analysis came in between, or there is none yet. */
async function oneAnalysis(url, earliest) {
  const [view, metrics] = await Promise.all([get(`${url}api/v1/view`).then(JSON.parse), get(`${url}metrics`)]);
  const asOf = Number(metrics.match(/^abgauge_look_timestamp_seconds (\S+)$/m)?.[1]) * 1000;
  const { experiments } = view;
  const isKnown = experiments.length === 2 && experiments.every(({ looks, arms }) => looks?.as_of === asOf && asOf - looks.start >= earliest && arms.some(isCompared));
  return isKnown ? { asOf, view, metrics } : null;
}

async function get(url) {
  return (await fetch(url)).text();
}

/** Reads a fresh page that is given this view, and what is copied and saved from it. */
async function look(browser, url, { view }) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, timezoneId: "UTC", permissions: ["clipboard-read", "clipboard-write"] });
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    // Without a stream, the page asks for its view.
    await page.route("**/api/v1/view/stream?*", (route) => route.fulfill({ status: 503 }));
    await page.route("**/api/v1/view?*", (route) => route.fulfill({ json: view }));
    await page.goto(url);
    await page.waitForSelector("[data-testid=comparison] [data-column=lift][data-value]");
    const seen = await read(page);
    const [saved] = await Promise.all([page.waitForEvent("download"), page.locator("#json").click()]);
    const { rows } = JSON.parse(await readFile(await saved.path(), "utf8"));
    const all = [];
    for (const experiment of seen) {
      await page.locator(`[data-testid=experiment][data-experiment="${experiment.name}"] [data-testid=copy]`).click();
      const copy = await pollUntil(() => page.evaluate(() => navigator.clipboard.readText()), (text) => text.startsWith(`### ${experiment.name}:`));
      all.push({ ...experiment, copy, rows: rows.filter((row) => row.experiment === experiment.name) });
    }
    return all;
  } finally {
    await context.close();
  }
}

/** Reads what the page shows of each experiment. */
function read(page) {
  return page.evaluate((primary) =>
    [...document.querySelectorAll("[data-testid=experiment]")].map((section) => {
      const part = (testid) => section.querySelector(`[data-testid=${testid}]`)?.textContent;
      const lines = [...section.querySelectorAll(`[data-metric="${primary}"], .line`)].filter((row) => row.querySelector("[data-column=lift]")?.textContent);
      const ofRow = (row) => {
        const cell = (column) => row.querySelector(`[data-column=${column}]`)?.textContent;
        return [row.closest("[data-arm]").dataset.arm, { lift: cell("lift"), interval: cell("interval"), control: cell("control"), arm: cell("arm") }];
      };
      return { name: section.dataset.experiment, label: part("badge"), sentence: part("sentence"), basis: part("as-of"), shown: Object.fromEntries(lines.map(ofRow)) };
    }), PRIMARY);
}

function judge(seed, { asOf, view, metrics }, { name, label, sentence, basis, shown, copy, rows }) {
  const about = (what) => `${what} of ${name}, seed ${seed}, analysis ${asOf}`;
  const { verdict, arms } = view.experiments.find((it) => it.name === name);
  assert.equal(label, verdict.label, about("badge"));
  assert.equal(sentence, verdict.sentence, about("sentence"));
  const minute = new Date(asOf).toISOString().slice(0, 16).replace("T", " ");
  assert.ok(basis.includes(minute), about("time"));
  assert.ok(copy.startsWith(`### ${name}: ${label}\n`) && copy.includes(`Analysis of ${minute} UTC`), about("copied label"));
  const copied = copy.replaceAll(/\*\*|\\/g, "");
  assert.ok(copied.includes(sentence), about("copied sentence"));
  for (const { name: arm, comparison } of arms.filter(isCompared)) {
    const metric = comparison.metrics[PRIMARY];
    const row = shown[arm];
    // A decision keeps the lift of its time.
    const { lift, lower, upper } = DECIDED.includes(comparison.state) && metric.decision?.lift !== undefined ? metric.decision : metric;
    assert.deepEqual(row, { ...row, lift: percent(lift), interval: `${percent(lower)} to ${percent(upper)}` }, about(`row of ${arm}`));
    assert.ok(copied.includes(`| ${row.control} | ${row.arm} | ${row.lift} | ${row.interval} |`), about(`copied row of ${arm}`));
    const saved = rows.find((row) => row.arm === arm && `${row.metric}@${row.k}` === PRIMARY);
    const { lift_lower: savedLower, lift_upper: savedUpper } = saved;
    assert.deepEqual([saved.lift, savedLower, savedUpper, saved.label, saved.sentence], [metric.lift, metric.lower, metric.upper, comparison.label, sentence], about(`download of ${arm}`));
    const [id, k] = PRIMARY.split("@");
    const gauges = ["", "_lower", "_upper"].map((end) => gaugeOf(metrics, `abgauge_lift${end}`, [`experiment="${name}"`, `arm="${arm}"`, `metric="${id}"`, `k="${k}"`]));
    assert.deepEqual(gauges, [metric.lift, metric.lower, metric.upper], about(`gauges of ${arm}`));
    if (arm === verdict.arm) assert.ok(sentence.includes(`CTR@10 ${row.lift} (${row.interval})`), about("lift in the sentence"));
    const truth = TRUE_LIFTS[name][arm];
    intervals.all += 1;
    intervals.covered += metric.lower <= truth && truth <= metric.upper;
    checkClaim(about(`label ${comparison.label} of ${arm}`), comparison.label, truth);
  }
  if (verdict.arm !== null) checkClaim(about(`sentence “${sentence}”`), label, TRUE_LIFTS[name][verdict.arm]);
  const claim = `${name}: ${label}${label in CLAIMS ? ` ${verdict.arm}` : ""}`;
  claims.set(claim, (claims.get(claim) ?? 0) + 1);
}

/** Writes a lift with its sign, and a tenth of a percent. */
function percent(lift) {
  const digits = Math.abs(lift * 100).toFixed(1);
  const sign = digits === "0.0" ? "±" : lift < 0 ? "−" : "+";
  return `${sign}${digits}%`;
}

function gaugeOf(metrics, name, labels) {
  const line = metrics.split("\n").find((line) => line.startsWith(`${name}{`) && labels.every((label) => line.includes(label)));
  return line === undefined ? undefined : Number(line.split(" ").at(-1));
}

function checkClaim(about, label, truth) {
  if (label in CLAIMS) assert.equal(Math.sign(truth), CLAIMS[label], about);
}
