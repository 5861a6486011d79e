// Opens the live page over TLS, by a certificate of its own authority, and behind a password.
//
//   secured.mjs URL USER PASSWORD    says "go on" when it is time for more lists

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { PATIENCE, hands, pollUntil, withPage } from "./launch.mjs";

const [url, username, password] = process.argv.slice(2);

await withPage(url, { ignoreHTTPSErrors: true, httpCredentials: { username, password } }, async (page, objections) => {
  const { locate, state } = hands(page);
  await state("ready");
  assert.equal(await page.evaluate(() => isSecureContext && location.protocol), "https:");
  await page.locator('label:has(input[name="view"][value="both"])').click();
  await page.waitForSelector("[data-testid=value][data-view=live][data-value]", PATIENCE);
  const lists = () => locate("bases", { experiment: "first", arm: "v 2", view: "live" }).getAttribute("data-lists").then(Number);
  const before = await lists();
  console.log("go on");
  await pollUntil(lists, (now) => now > before);
  assert.equal(await locate("reason").isVisible(), false, "it follows the stream");

  const save = async (id) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(id).click()]);
    return readFileSync(await download.path(), "utf8");
  };
  assert.match(await save("#csv"), /first,v 2,false,live/);
  assert.ok(JSON.parse(await save("#json")).rows.length > 0);
  assert.deepEqual(objections, []);

  // Without the password there is no page; with a wrong one neither.
  const browser = page.context().browser();
  for (const httpCredentials of [undefined, { username, password: `${password}!` }]) {
    const context = await browser.newContext({ ignoreHTTPSErrors: true, httpCredentials });
    const stranger = await context.newPage();
    const refused = await stranger.goto(url).then((answer) => `HTTP ${answer.status()}`, ({ message }) => message);
    assert.match(refused, /HTTP 401|ERR_INVALID_AUTH_CREDENTIALS/);
    assert.equal(await stranger.locator("#state").count(), 0);
    await context.close();
  }

  // Whoever is on the page when the password is taken away is told.
  await page.route("**/api/v1/view*", (route) => route.fulfill({ status: 401 }));
  await page.route("**/api/v1/view/stream*", (route) => route.fulfill({ status: 401 }));
  await page.locator('label:has(input[name="window"][value="1h"])').click();
  await state("silent");
  assert.match(await page.locator("#state").innerText(), /it requires credentials: reload the page/);
});
console.log("all is well");
