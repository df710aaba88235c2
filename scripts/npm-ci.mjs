// Installs what a folder's package-lock.json lists: once, and again when the list changes.
//
// usage: node scripts/npm-ci.mjs FOLDER

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** An installation that takes longer was killed, and has left its lock. */
const INSTALLING_MS_MAX = 300_000, POLL_MS = 200;

export function install(folder) {
  const list = join(folder, "package-lock.json"), installed = join(folder, "node_modules/.installed");
  const isCurrent = () => read(list) === read(installed);
  if (isCurrent()) return;
  // One at a time: two builds may need it at once.
  const lock = join(folder, ".installing");
  while (!locks(lock)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_MS);
  try {
    if (isCurrent()) return;
    const args = ["ci", "--silent", "--no-audit", "--no-fund"];
    execFileSync("npm", args, { cwd: folder, stdio: "inherit", shell: process.platform === "win32" });
    copyFileSync(list, installed);
  } finally {
    rmdirSync(lock);
  }
}

function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

function locks(lock) {
  try {
    mkdirSync(lock);
    return true;
  } catch {
    const since = statSync(lock, { throwIfNoEntry: false })?.mtimeMs;
    if (Date.now() - since > INSTALLING_MS_MAX) rmdirSync(lock);
    return false;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) install(process.argv[2]);
