// Prints a page's title as its own script has set it, then what a test would object to. Proves the harness.

import { withPage } from "./launch.mjs";

await withPage(process.argv[2], {}, async (page, objections) => {
  await page.waitForFunction(() => document.title !== "");
  await page.waitForLoadState("networkidle");
  console.log(JSON.stringify({ title: await page.title(), objections }));
});
