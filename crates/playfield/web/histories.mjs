// Applies patches that the engine made, as a browser does. Run by `cargo test -p playfield` (tests/browser.rs), which writes one
// history a line: {"snapshot": …, "patches": [ops, …], "expected": …}. Prints a line for each that comes out otherwise.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const source = readFileSync(new URL("./playfield.js", import.meta.url), "utf8");
const { apply } = await import(`data:text/javascript,${encodeURIComponent(source)}`);

const histories = readFileSync(0, "utf8").split("\n").filter(Boolean);
for (const [number, line] of histories.entries()) {
  const { snapshot, patches, expected } = JSON.parse(line);
  try {
    for (const ops of patches) apply(snapshot, ops);
    assert.deepEqual(snapshot, expected);
  } catch (error) {
    console.log(`history ${number}: ${error.message}`);
  }
}
console.log(`${histories.length} histories`);
