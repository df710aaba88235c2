// Bundles what nodes serve to browsers, crates/web/dist: the client, from sdk/typescript, and the
// console's page, from console. The build script of crates/web runs it, where they are missing or old.
//
// usage: node scripts/bundles.mjs [--check]
//
// With `--check` it only says whether they are what the sources make.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { install } from "./npm-ci.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const sdk = join(root, "sdk/typescript"), page = join(root, "console");
const served = join(root, "crates/web/dist/console"), isCheck = process.argv.includes("--check");
const run = (file, ...args) =>
  execFileSync(process.execPath, [file, ...args], { cwd: page, stdio: "inherit" });

install(sdk);
run(join(sdk, "bundle.mjs"), ...process.argv.slice(2));
install(page);
mkdirSync(served, { recursive: true });
const made = mkdtempSync(join(root, "crates/web/dist/console-"));
try {
  run("node_modules/vite/bin/vite.js", "build", "--logLevel", "warn", "--outDir", made);
  for (const name of readdirSync(made)) {
    if (!isCheck) {
      renameSync(join(made, name), join(served, name));
    } else if (!readFileSync(join(made, name)).equals(readFileSync(join(served, name)))) {
      console.error(`playfield: crates/web/dist/console/${name} is not what console makes`);
      process.exitCode = 1;
    }
  }
} finally {
  rmSync(made, { recursive: true });
}
