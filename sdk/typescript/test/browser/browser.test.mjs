// In Chromium: the tests that need no Node, and the conformance scenarios, played by the file that
// nodes serve. Run by `make test-browser`.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { launch, open, root, scenarioServer } from "./chromium.mjs";

const PAGE = "/files/sdk/typescript/test/browser/page.html";
const read = (path) => JSON.parse(readFileSync(`${root}conformance/${path}`, "utf8"));
const names = (folder) => readdirSync(`${root}conformance/${folder}`).sort();

let browser, server;
before(async () => ([browser, server] = await Promise.all([launch(), scenarioServer()])));
after(() => Promise.all([browser?.close(), server?.stop()]));

for (const file of ["protocol", "state", "client", "patience", "hostile"]) {
  test(`the tests of ${file}.test.mjs pass`, async () => {
    const { page, errors } = await open(browser, server.url + PAGE);
    const folders = { "/files/conformance/vectors/state/": names("vectors/state") };
    const results = await page.evaluate(async ([file, folders]) => {
      globalThis.folders = folders;
      await import(`../${file}.test.mjs`);
      return (await import("node:test")).run();
    }, [file, folders]);
    for (const { name, error } of results) assert.equal(error, null, name);
    assert.ok(results.length > 3, `${results.length} tests ran`);
    assert.deepEqual(errors, []);
    console.log(`${file}: ${results.length} tests`);
  });
}

test("the file for `packed` is loaded when needed; a join says why if it can't be", async () => {
  const { page, errors } = await open(browser, server.url + PAGE);
  const loaded = [];
  let isThere = false;
  await page.route("**/playfield-packed.js", (route) => {
    loaded.push(route.request().url());
    return isThere ? route.continue() : route.abort();
  });
  const join = (format) => page.evaluate(async ([url, format]) => {
    const { Client } = await import("/playfield.js");
    const client = new Client(url, { format });
    try {
      return (await client.joinOrCreate("lab", { timeoutMs: 20_000 })).state.int;
    } catch (error) {
      return [error.name, error.code, error.message];
    } finally {
      client.close();
    }
  }, [server.url, format]);
  assert.equal(await join("json"), 0);
  assert.deepEqual(loaded, []);
  const [name, code, text] = await join("packed");
  assert.deepEqual([name, code], ["PlayfieldError", "internal"]);
  assert.match(text, /playfield-packed\.js can't be loaded: /);
  isThere = true;
  await page.reload();
  assert.equal(await join("packed"), 0);
  assert.deepEqual(errors, []);
});

test("the served client plays the scenarios", async () => {
  const { page, errors } = await open(browser, server.url + PAGE);
  const scenarios = names("scenarios").flatMap((file) => read(`scenarios/${file}`).scenarios);
  const how = {
    controls: server.url,
    leftOut: read("clients/playfield.js.json"),
    scenarios,
    run: "c",
  };
  const { runs, failed, passed } = await page.evaluate(async (how) => {
    const playfield = await import("/playfield.js");
    const { playAll } = await import("/files/sdk/typescript/test/served/player.mjs");
    return playAll({ ...how, playfield });
  }, how);
  assert.deepEqual(failed, []);
  assert.deepEqual(errors, []);
  assert.ok(runs > scenarios.length, `${runs} were played`);
  console.log(`${runs} scenarios played, ${passed.length} left out`);
});
