// The page of a real node's console in Chromium: what it shows, what it does, and what it never does.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import axe from "axe-core";

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

/** The four views, in a room with two players, with all that they can show. */
async function views() {
  const ann = await client("ann").create("table");
  await client("a name that is as long as people like to have them").joinById(ann.id);
  const room = `#room/${ann.id}/${ann.player}`;
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
    settings: ["#settings", (tab) => tab.getByRole("rowheader").first().waitFor()],
    nothing: ["#nonsense", (tab) => tab.getByText("#nonsense").waitFor()],
  };
}

for (const colorScheme of ["light", "dark"]) {
  test(`axe finds nothing in any view, ${colorScheme}`, async () => {
    for (const [name, [path, shown]] of Object.entries(await views())) {
      const { page: tab, check } = await page(path, { colorScheme, bypassCSP: true });
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
    for (const [name, [path, shown]] of Object.entries(await views())) {
      const { page: tab, check } = await page(path, { viewport: { width, height: 844 } });
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
