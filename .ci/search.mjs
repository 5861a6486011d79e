#!/usr/bin/env node
// Looks for words in the book in target/book, opened from its files in Chromium, as a reader would.
// Needs what `tests/run --setup-only` brings, and `.ci/book` before it.

import assert from "node:assert/strict";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const cache = process.env.ABGAUGE_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "abgauge");
process.env.ABGAUGE_BROWSER_MODULES ??= join(cache, "browser/node_modules");
process.env.ABGAUGE_CHROMIUM ??= join(cache, "bin/chromium");
const { withPage } = await import(pathToFileURL(resolve("tests/browser/launch.mjs")));

await withPage(pathToFileURL(resolve("target/book/start.html")).href, {}, async (page, objections) => {
  await page.fill("#rtd-search-form input", "missing_field");
  await page.press("#rtd-search-form input", "Enter");
  const first = page.locator("#mkdocs-search-results article a").first();
  await first.waitFor();
  const found = await page.locator("#mkdocs-search-results p").first().innerText();
  assert.match(found, /^[1-9]\d* sections$/);
  await page.fill("#mkdocs-search-query", "user buckets");
  assert.notEqual(await page.locator("#mkdocs-search-results p").first().innerText(), found);
  await page.fill("#mkdocs-search-query", "<b>nosuchword</b>");
  assert.equal(await page.locator("#mkdocs-search-results").innerText(), "0 sections");
  await page.fill("#mkdocs-search-query", "why is my event refused");
  const link = page.locator("#mkdocs-search-results article a").first();
  assert.equal(await link.innerText(), "Why is my event refused?");
  await link.click();
  await page.waitForURL(/events\.html#why-is-my-event-refused$/);
  assert.deepEqual(objections, []);
  console.log(`search in the book: missing_field is in ${found}`);
});
