// Opens two tabs of the template `react`, as `playfield dev` serves it and as the server does, counts in
// them, and starts the server again meanwhile: the part of scripts/test-new that happens in Chromium.
//
// usage: react-game.mjs DEV_URL PROGRAM PAGES

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { launch, open } from "../sdk/typescript/test/browser/chromium.mjs";

const [devUrl, program, pages] = process.argv.slice(2);

/** Starts the game, and waits for its address. */
async function serve(listen) {
  const options = ["--listen", listen, "--pages", pages, "--log", "error"];
  const node = spawn(program, options, { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: node.stdout })) {
    const [, address] = /^listening on (\S+)$/.exec(line) ?? [];
    if (address) return { node, address, url: `http://${address}/` };
  }
  throw new Error("the game ended before it served");
}

async function stop({ node }) {
  node.kill("SIGINT");
  await once(node, "exit");
}

/** Opens two tabs, and counts to two in them. */
async function count(url) {
  const tabs = [await open(browser, url), await open(browser, url)];
  const [one, other] = tabs.map(({ page }) => page);
  const both = (text) =>
    Promise.all([one, other].map((page) => page.locator("h1", { hasText: text }).waitFor()));
  const add = (page) => page.getByRole("button", { name: "+1" }).click();
  await both(/^0$/);
  await add(one);
  await both(/^1$/);
  await add(other);
  await both(/^2$/);
  await other.getByText(/^last changed by Player \d+$/).waitFor();
  const check = () => {
    for (const { errors } of tabs) if (errors.length) throw errors[0];
  };
  return { other, both, add, check };
}

const browser = await launch();
let served = await serve("127.0.0.1:0");
try {
  (await count(devUrl)).check();
  console.log("two tabs count together at the URL that `playfield dev` prints");

  const { other, both, add, check } = await count(served.url);
  // The new server has a new room, which the pages join by themselves.
  await stop(served);
  served = await serve(served.address);
  await both(/^0$/);
  await add(other);
  await both(/^1$/);
  check();
  console.log("two tabs count together, and go on with a server that was started again");
} finally {
  await browser.close();
  served.node.kill("SIGINT");
}
