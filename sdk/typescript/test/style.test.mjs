// The package's own text: no line is longer than 100 columns.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const COLUMNS_MAX = 100;
const root = new URL("../", import.meta.url);

test("lines have at most 100 columns", () => {
  const folders = ["", "bench/", "src/", "src/formats/", "src/state/", "test/", "test/browser/"];
  const long = [];
  for (const folder of folders) {
    for (const name of readdirSync(new URL(folder, root))) {
      if (!/\.(ts|mjs|md)$/.test(name)) continue;
      const lines = readFileSync(new URL(folder + name, root), "utf8").split("\n");
      lines.forEach((line, index) => {
        if ([...line].length > COLUMNS_MAX) long.push(`${folder}${name}:${index + 1}`);
      });
    }
  }
  assert.deepEqual(long, []);
});
