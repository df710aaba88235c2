// What the console costs a node with 1,000 rooms of 30 players at rest: the processor time of the node
// with no page open, with the list of rooms open, and with one room open, in turn. And how long a page
// takes to show the list.

import { readFileSync } from "node:fs";

import { launch } from "../../sdk/typescript/test/browser/chromium.mjs";
import { showcase } from "../test/showcase.mjs";
import { filled, PLAYERS, ROOMS } from "./rooms.mjs";

const ROUNDS = 3,
  SECONDS = Number(process.argv[2] ?? 4);
/** The kernel counts processor time in hundredths of a second. */
const TICKS_PER_S = 100;

const served = await showcase({ release: true });
const browser = await launch();
try {
  const ids = await filled(served);
  for (let round = 1; round <= ROUNDS; round++) {
    const none = await cores();
    const page = await browser.newPage(), errors = [];
    page.on("pageerror", (error) => errors.push(error));
    await page.addInitScript(notesRows);
    await page.goto(served.console);
    const shown_ms = await (await page.waitForFunction(() => globalThis.shown_ms)).jsonValue();
    const list = await cores();
    await page.goto(`${served.console}#room/${ids[0]}`);
    await page.getByRole("tree", { name: "The server's state" }).waitFor();
    const room = await cores();
    await page.close();
    if (errors.length) throw errors[0];
    const row = { suite: "console", row: "open page", round, rooms: ROOMS, players: PLAYERS };
    console.log(JSON.stringify({ ...row, none, list, room, shown_ms, verified: true }));
  }
} finally {
  await browser.close();
  await served.stop();
}

/** In the page: notes when the first rows were painted, in milliseconds from the navigation. */
function notesRows() {
  const observer = new MutationObserver(() => {
    if (!document.querySelector(".viewport .row")) return;
    observer.disconnect();
    requestAnimationFrame(() =>
      setTimeout(() => (globalThis.shown_ms = Math.round(performance.now()))),
    );
  });
  observer.observe(document, { childList: true, subtree: true });
}

/** The processor time that the node uses, in cores. */
async function cores() {
  const [used, begun] = [processorTime(), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, SECONDS * 1000));
  const seconds = (performance.now() - begun) / 1000;
  return Number(((processorTime() - used) / seconds).toFixed(4));
}

function processorTime() {
  // `cargo run` becomes the program.
  const [, fields] = readFileSync(`/proc/${served.node.pid}/stat`, "utf8").split(") ");
  const [user, system] = fields.split(" ").slice(11, 13);
  return (Number(user) + Number(system)) / TICKS_PER_S;
}
