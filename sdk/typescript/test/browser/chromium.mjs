// Chromium and servers for tests in a browser: these, and those of other packages.

import { execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

/** The root of the repository. */
export const root = fileURLToPath(new URL("../../../../", import.meta.url));

/**
 * Starts Chromium without a window. Close it when the tests are over: `after(() =>
 * browser.close())`.
 *
 * @returns {Promise<import("playwright-core").Browser>}
 */
export function launch(options = {}) {
  const stdio = ["ignore", "pipe", "inherit"];
  const executablePath = execFileSync(`${root}scripts/chromium`, {
    encoding: "utf8",
    stdio,
  }).trim();
  return chromium.launch({ executablePath, ...options });
}

/**
 * Opens a page of its own: nothing is shared with other pages. A function `first` runs in it before
 * its scripts.
 *
 * @returns The `page`, and two lists that grow: the `errors` that nothing caught, and the lines of
 *   the `console` as `{ type, text }`, where failed loads and connections are of the type "error"
 * too.
 */
export async function open(browser, url, options = {}, first = undefined) {
  const context = await browser.newContext(options), page = await context.newPage();
  if (first) await page.addInitScript(first);
  const errors = [], console = [];
  page.on("pageerror", (error) => errors.push(error));
  page.on("console", (line) => console.push({ type: line.type(), text: line.text() }));
  await page.goto(url);
  return { page, errors, console };
}

/**
 * Starts a server at the root of the repository, and waits for the first line on its standard
 * output that has a URL. The server must end when its standard input does.
 *
 * @returns {Promise<{ url: string, stop(): Promise<void> }>}
 */
export async function start(command, args, options = {}) {
  const server = spawn(command, args, {
    cwd: root,
    stdio: ["pipe", "pipe", "inherit"],
    ...options,
  });
  const ended = new Promise((resolve) => server.once("exit", resolve));
  const url = await new Promise((resolve, reject) => {
    server.once("error", reject);
    ended.then((status) =>
      reject(new Error(`${command} ended with status ${status} before it served`)),
    );
    createInterface(server.stdout).on("line", (line) => {
      const [found] = /https?:\/\/\S+/.exec(line) ?? [];
      if (found) resolve(found);
    });
  });
  const stop = async () => {
    server.stdin.end();
    await ended;
  };
  return { url, stop };
}

/** Starts the scenario server (conformance/README.md), with the repository's files at `/files/`. */
export const scenarioServer = () => {
  // A scenario lets a room panic.
  const env = { ...process.env, RUST_BACKTRACE: "0" };
  return start("cargo", ["run", "--quiet", "--package", "playfield-conformance", "--", "."], {
    env,
  });
};
