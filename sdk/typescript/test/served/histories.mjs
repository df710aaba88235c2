// Applies patches that the engine made, as a browser does. Run by `cargo test -p playfield` (tests/browser.rs), which writes one
// history a line: {"snapshot": ops, "patches": [ops, …], "expected": …, "digest": …}. Prints a line for each that comes out otherwise.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as playfield from "../../../../crates/web/dist/client/playfield.js";

const { apply, digest, whole } = playfield;

const histories = readFileSync(0, "utf8").split("\n").filter(Boolean);
for (const [number, line] of histories.entries()) {
  const { snapshot, patches, expected, digest: expectedDigest } = JSON.parse(line);
  try {
    const state = whole(snapshot);
    for (const ops of patches) apply(state, ops);
    assert.deepEqual(state, expected);
    assert.equal(digest(state), expectedDigest, "the digest");
  } catch (error) {
    console.log(`history ${number}: ${error.message}`);
  }
}
console.log(`${histories.length} histories`);
