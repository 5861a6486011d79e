// Opens a page in headless Chromium, notes what a test objects to, and has what tests of the live page share.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { ABGAUGE_BROWSER_MODULES: modules, ABGAUGE_CHROMIUM: executablePath } = process.env;
const { chromium } = createRequire(`${modules}/`)("playwright-core");

export const PATIENCE = { timeout: 60_000 };

const args = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/**
 * Runs `body(page, objections)` on a page that has loaded `url`.
 *
 * `objections` gathers console errors, uncaught exceptions and requests to any other origin, as text, while the page
 * lives. Whatever `body` throws ends the script with a failure; the browser closes in every case. `script` runs in the
 * page before its own.
 */
export function withPage(url, { script, ...options }, body) {
  return withBrowser(async (browser) => {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    const objections = [];
    page.on("console", (message) => message.type() === "error" && objections.push(`console: ${message.text()}`));
    page.on("pageerror", (error) => objections.push(`exception: ${error.message}`));
    page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      if (protocol.startsWith("http") && origin !== new URL(url).origin) objections.push(`request: ${request.url()}`);
    });
    if (script) await page.addInitScript(script);
    await page.goto(url);
    await body(page, objections);
  });
}

/** Runs `body(browser)`, and closes the browser in every case. */
export async function withBrowser(body) {
  const browser = await chromium.launch({ executablePath, headless: true, args });
  try {
    await body(browser);
  } finally {
    await browser.close();
  }
}

/** Runs in a page before its own scripts, and changes every answer that it follows. */
export function changeAnswers({ stream, ...changes }) {
  const Native = globalThis.EventSource;
  globalThis.EventSource = class extends Native {
    addEventListener(type, listen) {
      const changed = ({ data }) => {
        const answer = JSON.parse(data);
        listen({ data: JSON.stringify({ ...answer, ...changes, stream: { ...answer.stream, ...stream } }) });
      };
      super.addEventListener(type, type === "message" ? changed : listen);
    }
  };
}

/** Ways to find and touch what stands on the live page. */
export function hands(page) {
  const locate = (testid, attributes = {}) =>
    page.locator(`[data-testid="${testid}"]` + Object.entries(attributes).map(([name, it]) => `[data-${name}=${JSON.stringify(it)}]`).join(""));
  return {
    locate,
    all: (testid, attribute) => locate(testid).evaluateAll((nodes, name) => nodes.map((node) => node.getAttribute(name)), attribute),
    state: (name) => page.waitForSelector(`#state[data-state="${name}"]`, PATIENCE),
    box: (name, value) => page.locator(`input[name="${name}"][value="${value}"]`),
    pick: (name, value) => page.locator("label", { has: page.locator(`input[name="${name}"][value="${value}"]`) }).click(),
    hash: () => Object.fromEntries(new URLSearchParams(new URL(page.url()).hash.slice(1))),
    number: (locator) => locator.evaluate((node) => (node.dataset.value === undefined ? null : Number(node.dataset.value))),
    /** Once the answer to what is chosen now is drawn. */
    settled: () => page.waitForSelector('body[aria-busy="false"]', PATIENCE),
  };
}

/** Fails if axe-core finds anything against the page as it stands. */
export async function checkAccessibility(page, state) {
  await page.evaluate(readFileSync(join(modules, "axe-core/axe.min.js"), "utf8"));
  const violations = await page.evaluate(async () => {
    const rules = { "target-size": { enabled: true } };
    const { violations } = await globalThis.axe.run(document, { rules, resultTypes: ["violations"] });
    return violations.map(({ id, help, nodes }) => `${id}: ${help}\n${nodes.map(({ html, failureSummary }) => `  ${html.slice(0, 200)}\n    ${failureSummary}`).join("\n")}`);
  });
  assert.deepEqual(violations, [], `axe-core, ${state}:\n${violations.join("\n")}`);
  console.log(`axe-core: 0 violations, ${state}`);
}

/** Fails if anything sticks out to the side of the page. Charts follow a new width a moment later. */
export async function checkWidth(page) {
  const stickingOut = () => page.evaluate(() => {
    if (document.documentElement.scrollWidth <= innerWidth) return [];
    const wide = [...document.querySelectorAll("body *")].filter((node) => node.getBoundingClientRect().right > innerWidth + 0.5);
    return [`${document.documentElement.scrollWidth} pixels on ${innerWidth}`, ...wide.map((node) => node.outerHTML.slice(0, 80))];
  });
  await pollUntil(stickingOut, (out) => out.length === 0, 5_000);
}

/** Fails if what is tapped most is smaller than a finger. */
export async function checkTargets(page) {
  const small = await page.evaluate(() => {
    const controls = [...document.querySelectorAll("fieldset label, .tools :is(input, select, button), #pages button, .alone, .fold, summary, #colours, #shows a")];
    const sizes = controls.map((node) => ({ node, box: node.getBoundingClientRect() })).filter(({ box }) => box.width > 0);
    const tooSmall = sizes.filter(({ box }) => Math.min(box.width, box.height) < 44 - 0.5);
    return { n: sizes.length, tooSmall: tooSmall.map(({ node, box }) => `${box.width} x ${box.height}: ${node.outerHTML.slice(0, 120)}`) };
  });
  assert.deepEqual(small.tooSmall, []);
  assert.ok(small.n > 10, `${small.n} controls`);
}

/** What `ask` says once it is as wished. */
export async function pollUntil(ask, isIt, patienceMs = PATIENCE.timeout) {
  const end = Date.now() + patienceMs;
  for (;;) {
    const said = await ask();
    if (isIt(said)) return said;
    assert.ok(Date.now() < end, `not within ${patienceMs} ms: ${isIt}\n${JSON.stringify(said)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
