// The page of a real node's console in Chromium: what it shows, what it does, and what it never does.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, open, root } from "../../sdk/typescript/test/browser/chromium.mjs";
import { showcase } from "./showcase.mjs";

/** Only a failing test waits that long. */
const PATIENCE = 30_000;
const HOSTILE = ["<img src=x onerror=alert(1)>", "שלום (evil) עולם", "x".repeat(60)];

let served, browser;
before(async () => {
  served = await showcase();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await served?.stop();
});

const client = (name) => served.client(name);

/** A page of the console that must not complain. */
async function page(path = "", options = {}) {
  const opened = await open(browser, `${served.console}${path}`, options);
  opened.page.setDefaultTimeout(PATIENCE);
  opened.page.on("dialog", (dialog) => dialog.accept());
  opened.check = () => {
    assert.deepEqual(opened.errors, []);
    assert.deepEqual(
      opened.console.filter(({ type }) => type === "error"),
      [],
    );
  };
  return opened;
}

test("joins appear, and a player's view lacks what only others see", async () => {
  const ann = await client("ann").create("table"),
    bob = await client("bob").joinById(ann.id);
  const { page: tab, errors, check } = await page(`#room/${ann.id}`, {
    viewport: { width: 1280, height: 860 },
  });
  await tab
    .getByRole("button", { name: /Show what this player sees|ann/ })
    .filter({ hasText: "ann" })
    .click();
  const server = tab.getByRole("tree", { name: "The server's state" });
  const seen = tab.getByRole("tree", { name: "What the player sees" });
  await seen.getByText("hands", { exact: true }).waitFor();
  assert.equal(await server.getByText("deck", { exact: true }).count(), 1);
  assert.equal(await seen.getByText("deck", { exact: true }).count(), 0);
  const hands = (tree) =>
    tree.getByRole("treeitem").filter({ hasText: "hands" }).first().getByRole("group").first();
  assert.equal(await hands(server).locator(":scope > li").count(), 2);
  // In the order of the declaration; what is hidden comes last.
  const names = await server.locator(":scope > li > .item .name").allTextContents();
  assert.deepEqual(names, ["round", "players", "open", "winner", "hands", "deck"]);
  await tab.getByRole("region", { name: "Charts of the room" }).waitFor();
  assert.equal(await hands(seen).locator(":scope > li").count(), 1);
  assert.equal((await server.locator(".badge.hidden").count()) >= 1, true);
  assert.equal((await server.locator(".badge.owner").count()) >= 1, true);
  await tab.screenshot({ path: `${root}docs/images/console-room.png` });

  const left = new Promise((resolve) => bob.onLeft((code, text) => resolve({ code, text })));
  await tab.getByRole("button", { name: `Kick player ${bob.player}` }).click();
  assert.equal((await left).code, "kicked");
  await tab
    .getByRole("button", { name: `Kick player ${bob.player}` })
    .waitFor({ state: "detached" });
  await tab.getByRole("button", { name: "Lock" }).click();
  await tab.getByRole("button", { name: "Unlock" }).waitFor();
  check();
  const over = new Promise((resolve) => ann.onLeft((code) => resolve(code)));
  await tab.getByRole("button", { name: "Close" }).click();
  await over;
  // From here on the browser logs that the room is not found.
  await tab.getByText(/no room has the id/).waitFor();
  assert.deepEqual(errors, []);
});

test("names are never markup", async () => {
  const room = await client(HOSTILE[0]).create("table");
  for (const name of HOSTILE.slice(1)) await client(name).joinById(room.id);
  const { page: tab, check } = await page(`#room/${room.id}`);
  for (const name of HOSTILE) await tab.getByTitle(name, { exact: true }).first().waitFor();
  assert.equal(await tab.locator("img").count(), 0);
  // Each name is isolated, so that it can't turn what stands beside it.
  assert.equal((await tab.locator(".players bdi").count()) >= HOSTILE.length, true);
  check();
});

test("1,000 rooms scroll, and only the rows in sight are drawn", async () => {
  const many = client("many");
  for (let made = 0; made < 1000; made += 50) {
    await Promise.all(Array.from({ length: 50 }, () => many.create("table")));
  }
  const { page: tab, check } = await page("", { viewport: { width: 1280, height: 860 } });
  await tab.getByText(/^1,\d\d\d rooms$/).waitFor();
  const rows = tab.locator(".viewport .row");
  await rows.first().waitFor();
  assert.ok((await rows.count()) < 60, `${await rows.count()} rows`);
  await tab.screenshot({ path: `${root}docs/images/console-rooms.png` });
  const arena = tab.getByRole("row").filter({ hasText: "arena" });
  await tab.getByRole("button", { name: "Bytes in / out per s" }).click();
  // The showcase's bots play: their room has the most bytes.
  await tab.locator('[aria-sort="descending"]', { hasText: "Bytes" }).waitFor();
  await tab.locator('[aria-rowindex="2"]', { hasText: "arena" }).waitFor();
  await arena.getByText(/^\d+(\.\d)? k?B \/ \d+(\.\d)? kB$/).waitFor();
  const viewport = tab.locator(".viewport");
  await viewport.evaluate((element) => element.scrollTo(0, element.scrollHeight));
  const last = await tab.getByRole("table").getAttribute("aria-rowcount");
  await tab.locator(`[aria-rowindex="${last}"]`).waitFor();
  check();
});

test("the playground joins a room, sends a message and shows the copy", async () => {
  const { page: tab, check } = await page("#playground");
  await tab.getByLabel("Type").selectOption("table");
  await tab.getByRole("button", { name: "Join" }).click();
  await tab.getByRole("tree", { name: "The copy" }).getByText("round", { exact: true }).waitFor();
  await tab.getByRole("button", { name: "Send" }).first().click();
  await tab
    .locator(".log")
    .getByText(/→|refused/)
    .first()
    .waitFor();
  check();
});

test("settings are shown, and the page is dark where the system is", async () => {
  const { page: tab, check } = await page("#settings", { colorScheme: "dark" });
  await tab.getByRole("rowheader", { name: "rooms_max" }).first().waitFor();
  const limits = tab.locator(".limits li");
  const limit = (name) => limits.filter({ has: tab.getByText(name, { exact: true }) });
  await limit("rooms_max").getByText(/[1-9][\d,]* of 100,000/).waitFor();
  await limit("rooms_per_session_max").getByText("at most 1,000").waitFor();
  assert.ok((await limits.count()) > 20);
  const background = (color) =>
    tab.waitForFunction(
      (color) => getComputedStyle(document.documentElement).backgroundColor === color,
      color,
    );
  await background("rgb(18, 21, 26)");
  await tab.getByLabel("Theme").selectOption("light");
  await background("rgb(255, 255, 255)");
  check();
});
