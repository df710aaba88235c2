// Opens tabs of the template `arena`, saves its handler some times, and lets its room fail: the part of
// scripts/first-game that happens in Chromium.
//
// usage: first-game.mjs URL BEGAN_MS SAVES GAME_FOLDER OUTPUT_OF_DEV [--json]

import { readFileSync, writeFileSync } from "node:fs";
import { launch, open } from "../sdk/typescript/test/browser/chromium.mjs";
import { drawn, record, unevenness } from "./motion.mjs";

/** How long the README's steps may take. */
const MINUTES_MAX = 3;

/** The largest share of frames that may move a ship unevenly; on a quiet machine there are few. */
const UNEVENNESS_MAX = 0.5;

const [url, began, saves, folder, output, json] = process.argv.slice(2);
/** What people read. */
const say = json ? console.error : console.log;
/** A result, printed at the end if nothing has failed. */
const rows = [];
const row = (name, values) => rows.push({ suite: "first-game", row: name, ...values, verified: true });
const browser = await launch();
const fail = (text) => {
  console.error(`first-game: ${text}`);
  process.exitCode = 1;
};
/** Waits until an element of a page has this text. */
const says = (page, id, text) =>
  page.waitForFunction(
    ([id, text]) => new RegExp(text).test(document.getElementById(id)?.textContent),
    [id, text],
    { polling: 10, timeout: 60_000 * MINUTES_MAX },
  );

// One tab alone has company. The second tab's ship takes a bot's place.
const one = await open(browser, url, {}, record);
await says(one.page, "ships", "^players: 1, bots: 5$");
const other = await open(browser, url);
const tabs = [one, other];
for (const { page } of tabs) await says(page, "ships", "^players: 2, bots: 4$");
const seconds = (Date.now() - Number(began)) / 1000;
say(`two tabs that see each other after ${seconds.toFixed(1)} s`);
row("all steps", { ms: Math.round(1000 * seconds) });
if (seconds > 60 * MINUTES_MAX) fail(`that is more than ${MINUTES_MAX} minutes`);

const moves = await drawn(one.page, 4_000);
const uneven = unevenness(moves);
say(`${(100 * uneven).toFixed(1)} % of ${moves.length} steps from frame to frame are uneven by more than a tenth`);
if (!(uneven < UNEVENNESS_MAX)) fail(`that is more than ${100 * UNEVENNESS_MAX} %`);

// Each save changes the handler's text. The new server takes the match over: the page stays in its room.
const { page } = one, source = `${folder}/src/main.rs`, totals = [], patches = [];
const lines = () => readFileSync(output, "utf8").split("\n").filter((line) => line.includes("after the save"));
const save = async (change) => {
  await page.evaluate(() => {
    document.getElementById("status").textContent = "";
    window.messagesAt.length = 0;
  });
  const started = performance.now(), before = lines().length;
  writeFileSync(source, change(readFileSync(source, "utf8")));
  while (lines().length === before) await new Promise((done) => setTimeout(done, 5));
  const seconds = (performance.now() - started) / 1000, seen = Date.now();
  if (!lines().at(-1).includes("the match goes on")) fail(`the match did not go on: ${lines().at(-1)}`);
  await says(page, "ships", "^players: 2, bots: 4$");
  const status = await page.textContent("#status");
  if (/joined again/.test(status)) fail(`the page has left its room: ${status}`);
  // The new server's first message ends the longest gap since the build.
  await page.waitForTimeout(500);
  const built = seen - 1000 * Number(/hand-over ([\d.]+) s/.exec(lines().at(-1))?.[1]);
  const came = (await page.evaluate(() => window.messagesAt)).filter((at) => at >= built);
  const gaps = came.map((at, index) => at - (came[index - 1] ?? built));
  return { seconds, patch: came[gaps.indexOf(Math.max(...gaps))] - built };
};
for (let number = 1; number <= Number(saves); number++) {
  const saved = await save((text) => text.replace(/you have no ship\d*/, `you have no ship${number}`));
  totals.push(saved.seconds);
  patches.push(saved.patch);
  say(`save ${number}: the match goes on in the new server after ${totals.at(-1).toFixed(2)} s`);
  say(`  ${lines().at(-1)}; the next patch is in the tab ${Math.round(saved.patch)} ms after the build`);
}
if (totals.length) {
  for (const all of [totals, patches]) all.sort((one, two) => one - two);
  const ms = (seconds) => Math.round(1000 * seconds);
  const median = totals[totals.length >> 1];
  const patch_ms = Math.round(patches[patches.length >> 1]), patch_ms_max = Math.round(patches.at(-1));
  row("save", { saves: totals.length, ms: ms(median), ms_max: ms(totals.at(-1)), patch_ms, patch_ms_max });
  say(`from the end of a build to the next patch in the tab: median ${patch_ms} ms, longest ${patch_ms_max} ms`);
  say(`median of ${totals.length} saves: ${median.toFixed(2)} s, longest ${totals.at(-1).toFixed(2)} s`);
}

// A room that fails once, when a third player joins: all pages say so, and are in another one.
await save((text) =>
  `${text}\nstatic FAILS: std::sync::Once = std::sync::Once::new();\n`.replace(
    /(fn join\(.*\n)/,
    "$1        if self.ships.len() == 2 && !FAILS.is_completed() {\n            FAILS.call_once(|| {});\n            panic!(\"on purpose\");\n        }\n",
  ),
);
for (const { page } of tabs) {
  await says(page, "ships", "^players: 2, bots: 4$");
  await page.evaluate(() => (document.getElementById("status").textContent = ""));
}
tabs.push(await open(browser, url));
for (const { page } of tabs) await says(page, "ships", "^players: 3, bots: 3$");
for (const { page } of [one, other]) await says(page, "status", "^joined again: the room failed");
say(`after a panic the tabs say: ${await page.textContent("#status")}`);
for (const { errors } of tabs) for (const error of errors) fail(`a page has failed: ${error}`);
await browser.close();
if (json && !process.exitCode) for (const one of rows) console.log(JSON.stringify(one));
