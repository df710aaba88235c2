// Opens two tabs of the template `arena`, and then saves its handler some times: the part of
// scripts/first-game that happens in Chromium.
//
// usage: first-game.mjs URL BEGAN_MS SAVES GAME_FOLDER OUTPUT_OF_DEV

import { readFileSync, writeFileSync } from "node:fs";
import { launch, open } from "../sdk/typescript/test/browser/chromium.mjs";

/** How long the README's steps may take. */
const MINUTES_MAX = 3;

const [url, began, saves, folder, output] = process.argv.slice(2);
const browser = await launch();
const tabs = [await open(browser, url), await open(browser, url)];
const said = (page) => page.textContent("#status");
const picture = (page) => page.evaluate(() => document.getElementById("arena").toDataURL());
const fail = (text) => {
  console.error(`first-game: ${text}`);
  process.exitCode = 1;
};

// Both fly to the middle, where they see each other.
const last = Date.now() + 60_000;
for (let turn = 0; ; turn++) {
  const texts = [];
  for (const { page } of tabs) {
    const { x, y, width, height } = await page.locator("#arena").boundingBox();
    await page.mouse.move(x + width / 2 + (turn % 2), y + height / 2);
    texts.push(await said(page));
  }
  if (texts.every((text) => text === "2 ships in sight")) break;
  if (Date.now() > last) throw new Error(`the tabs say ${texts.join(" and ")}`);
  await new Promise((resolve) => setTimeout(resolve, 100));
}
for (const { page } of tabs) {
  const before = await picture(page);
  await page.waitForTimeout(200);
  if ((await picture(page)) === before) fail("a tab does not move");
}
const seconds = (Date.now() - Number(began)) / 1000;
console.log(`two moving tabs after ${seconds.toFixed(1)} s`);
if (seconds > 60 * MINUTES_MAX) fail(`that is more than ${MINUTES_MAX} minutes`);

// Each save changes the handler's text. The page loads again once it has heard of the new server.
const [{ page }] = tabs, source = `${folder}/src/main.rs`, totals = [];
const lines = () => readFileSync(output, "utf8").split("\n").filter((line) => line.includes("after the save"));
for (let save = 1; save <= Number(saves); save++) {
  await page.evaluate(() => (window.isOld = true));
  const text = readFileSync(source, "utf8").replace(/you have no ship\d*/, `you have no ship${save}`);
  const started = performance.now();
  writeFileSync(source, text);
  await page.waitForFunction(() => !window.isOld && /in sight/.test(document.getElementById("status")?.textContent), null, { polling: 10 });
  totals.push((performance.now() - started) / 1000);
  console.log(`save ${save}: the page speaks with the new server after ${totals.at(-1).toFixed(2)} s`);
  console.log(`  ${lines().at(-1)}`);
}
if (totals.length) {
  totals.sort((one, two) => one - two);
  console.log(`median of ${totals.length} saves: ${totals[totals.length >> 1].toFixed(2)} s, longest ${totals.at(-1).toFixed(2)} s`);
}
for (const { errors } of tabs) for (const error of errors) fail(`a page has failed: ${error}`);
await browser.close();
