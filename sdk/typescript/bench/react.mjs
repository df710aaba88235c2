// `useRoomState` in Chromium: 1,000 components show an entity each, of which 100 change 20 times a
// second. Prints how many of them render for a patch, and how long the page's scripts run for it:
// decoding, comparing and React. Run by `make bench-typescript`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { launch, open } from "../test/browser/chromium.mjs";

const WARM_UP = 60;
const { entities: sent } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const {
  outputFiles: [{ text: page }],
} = await build({
  entryPoints: [fileURLToPath(new URL("entities.mjs", import.meta.url))],
  bundle: true,
  write: false,
  minify: true,
  format: "iife",
  globalName: "bench",
  define: { "process.env.NODE_ENV": '"production"' },
});
const browser = await launch();
try {
  const { page: tab, errors } = await open(browser, "about:blank");
  await tab.evaluate((sent) => void (globalThis.sent = sent), sent);
  await tab.addScriptTag({ content: page });
  await tab.evaluate(() => bench.show());
  await tab.evaluate((to) => bench.take(0, to), WARM_UP);
  const devtools = await tab.context().newCDPSession(tab);
  await devtools.send("Performance.enable");
  const times = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return Object.fromEntries(metrics.map(({ name, value }) => [name, 1000 * value]));
  };
  const before = await times(),
    patches = sent.patches.length - WARM_UP;
  const renders = await tab.evaluate(
    ([from, to]) => bench.take(from, to),
    [WARM_UP, sent.patches.length],
  );
  const after = await times(),
    took = (name) => ((after[name] - before[name]) / patches).toFixed(2);
  const expected = Object.entries(sent.state.entities).map(
    ([id, { x, y, hp }]) => `${id}: ${x}, ${y}, ${hp}`,
  );
  assert.deepEqual((await tab.evaluate(() => bench.shown())).sort(), expected.sort());
  assert.deepEqual(errors, []);
  const chromium = browser.version();
  if (process.argv.includes("--json")) {
    const ms = (name) => Number(took(name));
    console.log(
      JSON.stringify({
        suite: "typescript", row: "react", chromium, entities: 1000, changed: 100, patches,
        rendered: renders.entities / patches, scripting_ms: ms("ScriptDuration"),
        style_ms: ms("RecalcStyleDuration"), layout_ms: ms("LayoutDuration"),
        tasks_ms: ms("TaskDuration"), verified: true,
      }),
    );
  } else {
    console.log(`chromium ${chromium}, 1,000 entities, ${patches} patches at 20 Hz of 100 each`);
    console.log(
      `components rendered a patch: ${renders.entities / patches}; ` +
        `their list: ${renders.all} times`,
    );
    console.log(
      `scripting ${took("ScriptDuration")} ms a patch; style ${took("RecalcStyleDuration")}, ` +
        `layout ${took("LayoutDuration")}, all tasks ${took("TaskDuration")}`,
    );
  }
} finally {
  await browser.close();
}
