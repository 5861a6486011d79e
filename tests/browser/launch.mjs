// Opens a page in headless Chromium and notes what a test objects to.

import { createRequire } from "node:module";

const { ABGAUGE_BROWSER_MODULES: modules, ABGAUGE_CHROMIUM: executablePath } = process.env;
const { chromium } = createRequire(`${modules}/`)("playwright-core");

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
 * lives. Whatever `body` throws ends the script with a failure; the browser closes in every case.
 */
export async function withPage(url, options, body) {
  const browser = await chromium.launch({ executablePath, headless: true, args });
  try {
    const page = await browser.newPage(options);
    const objections = [];
    page.on("console", (message) => message.type() === "error" && objections.push(`console: ${message.text()}`));
    page.on("pageerror", (error) => objections.push(`exception: ${error.message}`));
    page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      if (protocol.startsWith("http") && origin !== new URL(url).origin) objections.push(`request: ${request.url()}`);
    });
    await page.goto(url);
    await body(page, objections);
  } finally {
    await browser.close();
  }
}
