// The page of a real node's console in Chromium: what it shows, what it does, and what it never does.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import axe from "axe-core";
import { transformWithEsbuild } from "vite";

import { launch, open, root } from "../../sdk/typescript/test/browser/chromium.mjs";
import { showcase } from "./showcase.mjs";

/** Only a failing test waits that long. */
const PATIENCE = 30_000;
const HOSTILE = ["<img src=x onerror=alert(1)>", "שלום (evil) עולם", "x".repeat(60)];

/** Two nodes: rooms of the second can be recorded. */
let served, recorder, browser, folder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "playfield-recordings-"));
  served = await showcase();
  recorder = await showcase({ env: { PLAYFIELD_RECORDINGS_FOLDER: folder } });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await served?.stop();
  await recorder?.stop();
  await rm(folder, { recursive: true, force: true });
});

const client = (name, node = served) => node.client(name);

/** A page of the console that must not complain. */
async function page(path = "", options = {}, node = served) {
  const opened = await open(browser, `${node.console}${path}`, options);
  opened.page.setDefaultTimeout(PATIENCE);
  opened.check = () => {
    assert.deepEqual(opened.errors, []);
    assert.deepEqual(
      opened.console.filter(({ type }) => type === "error"),
      [],
    );
  };
  return opened;
}

/** Until there is something to see in charts. */
async function polled(tab, path, times = 6) {
  const isAnswer = (answer) => answer.url().includes(path);
  for (let time = 0; time < times; time++) await tab.waitForResponse(isAnswer);
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
  await polled(tab, "/api/node");
  await tab.screenshot({ path: `${root}docs/images/console-room.png` });

  await tab.getByRole("button", { name: "Lock" }).click();
  await tab.getByRole("button", { name: "Unlock" }).waitFor();
  check();
  const over = new Promise((resolve) => ann.onLeft((_, text) => resolve(text)));
  await tab.getByRole("button", { name: "Close" }).click();
  await tab.getByRole("dialog", { name: "Close this room?" }).getByRole("textbox").fill("good night");
  await tab.getByRole("button", { name: "Close the room" }).click();
  assert.equal(await over, "good night");
  // From here on the browser logs that the room is not found.
  await tab.getByText(/no room has the id/).waitFor();
  await tab.getByRole("link", { name: "Show all rooms" }).waitFor();
  // There is nothing to do to it any more.
  assert.equal(await tab.getByRole("button", { name: /Kick|Lock|Close/ }).count(), 0);
  assert.deepEqual(errors, []);
});

/** The text of what has the focus, or its label. */
const focused = (tab) =>
  tab.evaluate(() => {
    const { ariaLabel, textContent, tagName } = document.activeElement;
    return tagName === "BODY" ? "body" : (ariaLabel ?? textContent.trim());
  });
const focusIs = (tab, text) =>
  tab.waitForFunction(
    (text) => (document.activeElement.ariaLabel ?? document.activeElement.textContent) === text,
    text,
  );

test("kicking asks first, the reason reaches the player, and the focus stays in the list", async () => {
  const ann = await client("ann").create("table"),
    bob = await client("bob").joinById(ann.id),
    eve = await client("eve").joinById(ann.id);
  const { page: tab, check } = await page(`#room/${ann.id}`);
  const kick = ({ player }) => tab.getByRole("button", { name: `Kick player ${player}` });
  await kick(bob).focus();
  await tab.keyboard.press("Enter");
  const dialog = tab.getByRole("dialog", { name: "Kick bob?" });
  await tab.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.equal(await focused(tab), `Kick player ${bob.player}`);
  const left = new Promise((resolve) => bob.onLeft((code, text) => resolve({ code, text })));
  await tab.keyboard.press("Enter");
  await tab.keyboard.type("be kind");
  await tab.keyboard.press("Enter");
  assert.deepEqual(await left, { code: "kicked", text: "be kind" });
  await kick(bob).waitFor({ state: "detached" });
  await focusIs(tab, `Kick player ${eve.player}`);
  await tab.getByText("bob was kicked.").waitFor();
  check();
});

test("a player is found by a part of the name, and shown as the room has them", async () => {
  const room = await client("Zoë the Great").create("table");
  const { page: tab, check } = await page();
  await tab.getByRole("searchbox").fill("zoë");
  const found = tab.getByRole("region", { name: "Players found" });
  await found.getByRole("link", { name: "Zoë the Great" }).click();
  await tab.getByRole("heading", { name: `table ${room.id}` }).waitFor();
  await tab.getByRole("tree", { name: "What the player sees" }).waitFor();
  assert.equal(await tab.getByRole("button", { pressed: true }).count(), 1);
  await tab.goBack();
  await tab.getByRole("searchbox").fill("nobody is called that");
  await found.getByText(/^0$/).waitFor();
  await tab.getByText("No room has it in its id, key or metadata.").waitFor();
  check();
});

test("each view has a title, the focus goes with it, and what is no view says so", async () => {
  const room = await client("ann").create("table");
  const { page: tab, check } = await page();
  const isAt = async (title) => {
    await tab.waitForFunction((title) => document.title === title, `${title} · Playfield console`);
    await focusIs(tab, title);
    assert.equal(await tab.getByRole("heading", { level: 1 }).count(), 1);
  };
  for (const [link, title] of [
    ["Settings", "Settings and limits"],
    ["Playground", "Playground"],
    ["Rooms", "Rooms"],
  ]) {
    await tab.getByRole("navigation").getByRole("link", { name: link }).click();
    await isAt(title);
  }
  await tab.evaluate((id) => (location.hash = `room/${id}`), room.id);
  await tab.getByRole("heading", { name: `table ${room.id}` }).waitFor();
  assert.equal(await tab.title(), `table ${room.id} · Playfield console`);
  for (const nonsense of ["nonsense", "room", "room/%", "settings/more"]) {
    await tab.evaluate((hash) => (location.hash = hash), nonsense);
    await isAt("Nothing here");
    await tab.getByText(`#${nonsense}`).waitFor();
  }
  await tab.getByRole("link", { name: "Show all rooms" }).click();
  await isAt("Rooms");
  check();
});

/** Records a room while something is done. Returns the address of the recording. */
async function record({ id: room }, play) {
  const act = async (records) =>
    fetch(`${recorder.console}api/rooms/${room}/record`, {
      method: "POST",
      headers: { "x-playfield-console": "1" },
      body: JSON.stringify({ records }),
    });
  await act(true);
  await play();
  await act(false);
  for (;;) {
    const listed = await fetch(`${recorder.console}api/recordings?find=${room}`);
    const { recordings } = await listed.json();
    if (recordings[0]?.end) return { room, file: recordings[0].file };
  }
}

/** A recorded game at a counter, in which ann adds 1 to 5, and then too much. */
async function recorded() {
  const ann = await client("ann", recorder).create("counter");
  await client("bob", recorder).joinById(ann.id);
  return record(ann, async () => {
    for (const step of [1, 2, 3, 4, 5]) {
      await ann.request("Add", step);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await assert.rejects(ann.request("Add", "9223372036854775807"));
  });
}

test("a room is recorded by a button, and its recording is in the list", async () => {
  const ann = await client("ann", recorder).create("counter");
  const { page: tab, check } = await page(`#room/${ann.id}`, {}, recorder);
  await tab.getByRole("button", { name: "Record" }).click();
  await ann.request("Add", 1);
  await tab.getByRole("button", { name: "Stop recording" }).click();
  await tab.getByRole("button", { name: "Record", exact: true }).waitFor();
  await tab.getByRole("link", { name: "Its recordings" }).click();
  const row = tab.getByRole("row").filter({ hasText: ann.id });
  await row.getByText("on request").first().waitFor();
  await row.getByRole("link").click();
  await tab.getByRole("heading", { name: `counter ${ann.id}` }).waitFor();
  await tab.getByRole("tree", { name: "The server's state" }).waitFor();
  check();
});

test("a recording shows any moment, who did what, and what a player saw", async () => {
  const { room, file } = await recorded();
  const { page: tab, check } = await page(`#recording/${file}/${room}`, {}, recorder);
  const state = tab.getByRole("tree", { name: "The server's state" });
  const value = (tree) =>
    tree.getByRole("treeitem").filter({ hasText: "value" }).locator(".leaf").last().innerText();
  const inputs = tab.getByRole("list", { name: "Inputs" });
  const next = tab.getByRole("button", { name: "Next", exact: true });
  const present = inputs.locator("[aria-current]");
  // The two joins, then what ann adds.
  await state.waitFor();
  await next.click();
  await present.getByText("join ann").waitFor();
  await next.click();
  await present.getByText("join bob").waitFor();
  await next.click();
  await present.getByText("ann: Add 1").waitFor();
  assert.equal(await value(state), "1");
  // The old value is beside the new one.
  await state.locator(".changed").getByText("0 →").first().waitFor();
  await tab.getByRole("combobox", { name: /What/ }).selectOption({ label: "2 bob" });
  const seen = tab.getByRole("tree", { name: "What the player saw" });
  await seen.waitFor();
  assert.equal(await value(seen), "0", "the sync comes later");
  await tab.getByTitle("One input on").click();
  await seen.locator(".changed").first().waitFor();
  assert.equal(await value(seen), "1");
  // By a change of the field that was chosen.
  await tab.getByTitle("One input back").click();
  await present.getByText("ann: Add 1").waitFor();
  await tab.getByRole("button", { name: "value", exact: true }).click();
  await next.click();
  await present.getByText("ann: Add 2").waitFor();
  await tab.getByRole("button", { name: "Previous", exact: true }).click();
  await present.getByText("ann: Add 1").waitFor();
  // To an error, which ann got.
  await tab.getByLabel("Jump to the next").selectOption("error");
  await next.click();
  await present.getByText("the counter would overflow").waitFor();
  assert.equal(await value(state), "15");
  await tab.setViewportSize({ width: 1280, height: 860 });
  await tab.screenshot({ path: `${root}docs/images/console-recording.png` });
  // The address leads there.
  const address = tab.url();
  assert.match(address, new RegExp(`#recording/${file}/${room}/[1-9][0-9]*/2$`));
  const { page: other, check: checkOther } = await page(new URL(address).hash, {}, recorder);
  await other.locator("[aria-current=step]").getByText("the counter would overflow").waitFor();
  await other.getByRole("tree", { name: "What the player saw" }).waitFor();
  checkOther();
  // The slider goes to a time.
  const slider = tab.getByRole("slider");
  await slider.focus();
  await tab.keyboard.press("End");
  await present.getByText(/./).first().waitFor();
  await tab.getByTitle("To the begin").click();
  await present.getByText("before").waitFor();
  assert.equal(await slider.inputValue(), await slider.getAttribute("min"));
  await tab.getByRole("button", { name: "Play", exact: true }).click();
  await tab.getByRole("button", { name: "Pause" }).waitFor();
  // The fork ends by itself.
  await tab.getByRole("button", { name: "Play", exact: true }).waitFor();
  assert.equal(await value(state), "15");
  check();
});

test("the steps of an excerpt are the states of the node", async () => {
  const source = await readFile(`${root}console/src/excerpt.ts`, "utf8");
  const { code } = await transformWithEsbuild(source, "excerpt.ts", { sourcemap: false });
  const url = `data:text/javascript;base64,${Buffer.from(code).toString("base64")}`;
  const { stepsOf } = await import(url);
  const ann = await client("ann", recorder).create("table"),
    bob = await client("bob", recorder).joinById(ann.id);
  const { room, file } = await record(ann, async () => {
    // Cards leave the middle of a hand, and tricks leave the table.
    for (const place of [2, 0, 1]) {
      await ann.request("Play", { place });
      await bob.request("Play", { place });
    }
  });
  const frames = async (query) =>
    (await fetch(`${recorder.console}api/recordings/${file}/${room}/frames?as=1&${query}`)).json();
  const steps = stepsOf(await frames("at_ms=0&count=1000"));
  assert.ok(steps.some(({ frame }) => frame?.changes.some(({ kind }) => kind === "left")));
  assert.ok(steps.length >= 10, `${steps.length} steps`);
  for (const { input, state, view } of steps) {
    const { begin } = await frames(`input=${input}&count=0`);
    assert.deepEqual([begin.state, begin.view], [state, view], `input ${input}`);
  }
});

test("a fork goes on in the playground, and a player's seat is taken by the name", async () => {
  const { room, file } = await recorded();
  const { page: tab, check } = await page(`#recording/${file}/${room}`, {}, recorder);
  const next = tab.getByRole("button", { name: "Next", exact: true });
  const present = tab.locator("[aria-current=step]");
  for (const input of ["join ann", "join bob", "ann: Add 1", "ann: Add 2"]) {
    await next.click();
    await present.getByText(input).waitFor();
  }
  await tab.getByRole("combobox", { name: /What/ }).selectOption({ label: "1 ann" });
  await tab.getByRole("button", { name: "Fork here" }).click();
  await tab.getByRole("heading", { name: "Playground" }).waitFor();
  await tab.getByRole("button", { name: "Join" }).click();
  await tab.locator(".log").getByText(/as player 1$/).waitFor();
  const copy = tab.getByRole("tree", { name: "The copy" });
  const value = copy.getByRole("treeitem").filter({ hasText: "value" }).locator(".leaf");
  assert.equal(await value.innerText(), "3");
  await tab.getByLabel("Value").fill("39");
  await tab.getByRole("button", { name: "Send" }).click();
  await value.getByText("42").waitFor();
  check();
});

test("a damaged recording says where", async () => {
  const { room, file } = await recorded();
  const bytes = await readFile(join(folder, file));
  bytes[bytes.length - 10] ^= 4;
  await writeFile(join(folder, "damaged.rec"), bytes);
  const { page: tab, check } = await page(`#recording/damaged.rec/${room}`, {}, recorder);
  await tab.getByText(/The file is damaged.*block \d+, at byte \d+, is damaged/).waitFor();
  await tab.getByRole("tree", { name: "The server's state" }).waitFor();
  check();
  await tab.evaluate((hash) => (location.hash = hash), `recording/none.rec/${room}`);
  await tab.getByText('the recording "none.rec" is not in the folder of recordings').waitFor();
});

test("a profile names a room's fields and messages, with their bytes and times", async () => {
  const ann = await client("ann").create("counter");
  const { page: tab, check } = await page(`#room/${ann.id}`);
  const button = tab.getByRole("button", { name: "Profile for 10 s" });
  await button.click();
  const section = tab.getByRole("region", { name: "Bytes by field" });
  await section.getByText("Counting…").waitFor();
  assert.equal(await button.isDisabled(), true);
  const rows = (name) => tab.getByRole("region", { name }).getByRole("row");
  const fields = rows("Bytes of each field");
  let isOver = false;
  const over = fields.first().waitFor().then(() => (isOver = true));
  // As fast as a player may, and no faster.
  while (!isOver) {
    await ann.request("Add", 1);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await over;
  await button.and(tab.locator(":enabled")).waitFor();
  const value = await fields.filter({ hasText: "value" }).innerText();
  assert.match(value, /value\s+i64\s+\d+\.\d\s+\d+(\.\d)? %/);
  const add = await rows("Messages and events").filter({ hasText: "Add" }).innerText();
  assert.match(add, /Add\s+message\s+\d+\s+[\d.]+ k?B\s+\d+\.\d\s+\d+ µs/);
  await section.getByText(/by \d+ of \d+ syncs\s+for 1 player/).waitFor();
  check();
});

test("a room of many parts opens as far as it fits, and keys move in its tree", async () => {
  const { page: tab, check } = await page();
  await tab.getByRole("row").filter({ hasText: "arena" }).getByRole("link").click();
  const tree = tab.getByRole("tree", { name: "The server's state" });
  const ships = tree.getByRole("treeitem", { expanded: true }).filter({ hasText: "ships" }).first();
  await ships.locator(":scope > [role=group] > li").nth(17).waitFor();
  // Each of the 18 ships shows what it holds.
  await ships.getByText(/name: "bot \d+", x: /).nth(17).waitFor();
  await tree.getByRole("treeitem").first().focus();
  const name = () => tab.evaluate(() => document.activeElement.querySelector(".name").textContent);
  assert.equal(await name(), "ships");
  const path = [];
  for (const key of ["ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowLeft"]) {
    await tab.keyboard.press(key);
    path.push(await name());
  }
  const [first] = path;
  assert.deepEqual(path, [first, first, "name", first, first, "ships"]);
  assert.equal(await tree.locator('[tabindex="0"]').count(), 1);
  check();
});

test("labels of charts are not cut", async () => {
  const { page: tab } = await page();
  await tab.evaluate(() => {
    globalThis.labels = [];
    const fillText = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, ...more) {
      const { width } = this.measureText(text);
      const left = x - { right: width, center: width / 2 }[this.textAlign];
      globalThis.labels.push({ text, left });
      fillText.call(this, text, x, ...more);
    };
  });
  // Of the bytes that the bots get.
  await tab.waitForFunction(() => globalThis.labels.some(({ text }) => /\dK$/.test(text)));
  const cut = await tab.evaluate(() => globalThis.labels.filter(({ left }) => !(left >= 0)));
  assert.deepEqual(cut, []);
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

test("rooms at rest have no longest sync, whatever their last one took", async () => {
  const many = client("many");
  await Promise.all(Array.from({ length: 9 }, () => many.create("counter")));
  const { page: tab, check } = await page();
  await tab.getByLabel("Type").selectOption("counter");
  await tab.getByRole("button", { name: "Longest sync" }).click();
  // Nobody counts in these but a bot in a room of its own.
  await tab.locator('[aria-rowindex="11"]').getByText("at rest").waitFor();
  await tab.locator('[aria-rowindex="3"]').getByText("at rest").waitFor();
  await tab.locator('[aria-rowindex="2"]').getByText(/ µs| ms/).first().waitFor();
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
  await polled(tab, "/api/node");
  await tab.screenshot({ path: `${root}docs/images/console-rooms.png` });
  const arena = tab.getByRole("row").filter({ hasText: "arena" });
  await tab.getByRole("button", { name: "Bytes in / out per s" }).click();
  // The showcase's bots play: their room has the most bytes.
  await tab.locator('[aria-sort="descending"]', { hasText: "Bytes" }).waitFor();
  await tab.locator('[aria-rowindex="2"]', { hasText: "arena" }).waitFor();
  await arena.getByText(/^\d+(\.\d)? k?B \/ \d+(\.\d)? kB$/).waitFor();
  const viewport = tab.locator(".viewport");
  await viewport.evaluate((element) => element.scrollTo(0, element.scrollHeight));
  await tab.waitForFunction(() => {
    const last = document.querySelector("[role=table]").ariaRowCount;
    return document.querySelector(`[aria-rowindex="${last}"]`);
  });
  // What has the focus keeps it while rows change their places.
  await viewport.evaluate((element) => element.scrollTo(0, 0));
  await tab.locator('[aria-rowindex="2"]').getByRole("link").focus();
  const id = await focused(tab);
  for (const order of ["oldest", "players", "newest"]) {
    await tab.getByLabel("Order").evaluate((select, order) => {
      select.value = order;
      select.dispatchEvent(new Event("change", { bubbles: true }));
    }, order);
    const query = tab.waitForResponse((answer) => answer.url().includes(`order=${order}`));
    await query;
    await tab.evaluate(() => new Promise(requestAnimationFrame));
    assert.notEqual(await focused(tab), "body", `${order}, at first ${id}`);
  }
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
  await tab.getByRole("rowheader", { name: "limits.rooms" }).first().waitFor();
  const limits = tab.locator(".limits li");
  const limit = (name) => limits.filter({ has: tab.getByText(name, { exact: true }) });
  await limit("limits.rooms").getByText(/[1-9][\d,]* of 100,000/).waitFor();
  await limit("limits.session.rooms").getByText("at most 1,000").waitFor();
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

/** The views, in a room with two players, with all that they can show. */
async function views() {
  const ann = await client("ann").create("table");
  await client("a name that is as long as people like to have them").joinById(ann.id);
  const room = `#room/${ann.id}/${ann.player}`;
  const of = await recorded();
  return {
    rooms: ["", (tab) => tab.getByRole("row").nth(3).waitFor()],
    found: [
      "",
      async (tab) => {
        await tab.getByRole("searchbox").fill("a");
        await tab.getByRole("region", { name: "Players found" }).getByRole("link").nth(5).waitFor();
      },
    ],
    room: [room, (tab) => tab.getByRole("tree", { name: "What the player sees" }).waitFor()],
    kick: [
      room,
      async (tab) => {
        await tab.getByRole("button", { name: "Kick player 2" }).click();
        await tab.getByRole("dialog").waitFor();
      },
    ],
    playground: [
      "#playground",
      async (tab) => {
        await tab.getByLabel("Type").selectOption("table");
        await tab.getByRole("button", { name: "Join" }).click();
        await tab.getByRole("tree", { name: "The copy" }).waitFor();
        await tab.getByRole("button", { name: "Send" }).first().waitFor();
      },
    ],
    recordings: [
      "#recordings",
      (tab) => tab.getByRole("rowheader").first().waitFor(),
      recorder,
    ],
    recording: [
      `#recording/${of.file}/${of.room}`,
      async (tab) => {
        for (let time = 0; time < 3; time++) {
          await tab.getByRole("button", { name: "Next", exact: true }).click();
          await tab.getByText(/Searching/).waitFor({ state: "detached" });
        }
        await tab.getByRole("combobox", { name: /What/ }).selectOption({ label: "2 bob" });
        await tab.getByRole("tree", { name: "What the player saw" }).waitFor();
      },
      recorder,
    ],
    settings: ["#settings", (tab) => tab.getByRole("rowheader").first().waitFor()],
    nothing: ["#nonsense", (tab) => tab.getByText("#nonsense").waitFor()],
  };
}

for (const colorScheme of ["light", "dark"]) {
  test(`axe finds nothing in any view, ${colorScheme}`, async () => {
    for (const [name, [path, shown, node]] of Object.entries(await views())) {
      const { page: tab, check } = await page(path, { colorScheme, bypassCSP: true }, node);
      await shown(tab);
      await tab.addScriptTag({ content: axe.source });
      const { violations } = await tab.evaluate(() => globalThis.axe.run());
      const found = violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
      assert.deepEqual(found, [], name);
      check();
      await tab.context().close();
    }
  });
}

test("no view scrolls sideways on a narrow screen", async () => {
  for (const width of [390, 320]) {
    for (const [name, [path, shown, node]] of Object.entries(await views())) {
      const { page: tab, check } = await page(path, { viewport: { width, height: 844 } }, node);
      await shown(tab);
      const wider = await tab.evaluate(() =>
        [document.documentElement, ...document.querySelectorAll("main, .viewport, header, .row")]
          .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
          .map((element) => [element.className || element.tagName, element.scrollWidth]),
      );
      assert.deepEqual(wider, [], `${name}, ${width} px`);
      check();
      await tab.context().close();
    }
  }
});

test("a refused token is asked for again, and not tried by itself", async () => {
  const token = "sixteen-letters-and-more";
  const own = await showcase({ env: { PLAYFIELD_CONSOLE_TOKEN: token } });
  try {
    const { page: tab, errors } = await open(browser, own.console, { bypassCSP: true });
    tab.setDefaultTimeout(PATIENCE);
    let asked = 0;
    tab.on("request", (request) => (asked += request.url().includes("/api/")));
    const input = tab.getByLabel("Token");
    await input.fill("another-one-of-this-length");
    await tab.keyboard.press("Enter");
    await tab.getByRole("alert").getByText(/The token is wrong/).waitFor();
    await tab.addScriptTag({ content: axe.source });
    const { violations } = await tab.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes[0].html]), []);
    const before = asked;
    await input.fill(token);
    assert.equal(asked, before);
    await tab.keyboard.press("Enter");
    await tab.getByText(/^Healthy/).waitFor();
    await focusIs(tab, "Rooms");
    assert.deepEqual(errors, []);
  } finally {
    await own.stop();
  }
});
