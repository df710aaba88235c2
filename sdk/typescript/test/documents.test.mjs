// The TypeScript in the documents compiles: each block as a file of its own, under the tsconfig of
// docs/typescript.md, beside the types of the guide's game. A wrong name in them does not.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL("..", import.meta.url)), root = join(here, "../..");
const folder = mkdtempSync(join(tmpdir(), "playfield-documents-")), source = join(folder, "src");
after(() => rmSync(folder, { recursive: true }));

/** All documents that users read, by their path. */
function documents() {
  const templates = join(root, "crates/playfield/templates");
  const inside = (path) =>
    readdirSync(path, { recursive: true }).filter((name) => name.endsWith(".md"))
      .map((name) => join(path, name));
  return [...inside(join(root, "docs")), ...inside(templates), join(root, "README.md"),
    join(here, "README.md")];
}

/** The blocks of a document in these languages, with the line at which each begins. */
function blocks(path, ...languages) {
  const found = [], text = readFileSync(path, "utf8");
  for (const { 1: language, 2: code, index } of text.matchAll(/^```(\w+)\n(.*?)^```$/gms)) {
    const line = text.slice(0, index).split("\n").length + 1;
    if (languages.includes(language)) found.push({ language, code, line });
  }
  return found;
}

/** What the compiler says of the files in `src`. */
function compile() {
  try {
    return execFileSync(join(here, "node_modules/.bin/tsc"), ["-p", folder], { encoding: "utf8" });
  } catch ({ stdout }) {
    return stdout;
  }
}

// As `npm install` leaves it. Of Vite, only what its types say of a page.
const modules = join(folder, "node_modules");
for (const path of [source, join(modules, "vite"), join(modules, "@types")])
  mkdirSync(path, { recursive: true });
symlinkSync(here, join(modules, "playfield"));
symlinkSync(join(here, "node_modules/@types/react"), join(modules, "@types/react"));
symlinkSync(join(here, "node_modules/csstype"), join(modules, "csstype"));
writeFileSync(join(modules, "vite/client.d.ts"),
  "interface ImportMeta { readonly env: { readonly DEV: boolean } }");
const [config] = blocks(join(root, "docs/typescript.md"), "json");
writeFileSync(join(folder, "tsconfig.json"), config.code);
copyFileSync(join(here, "test/documents/duel.ts"), join(source, "duel.ts"));

test("all TypeScript in the documents compiles under the tsconfig of the page", () => {
  const places = new Map();
  for (const [number, path] of documents().entries()) {
    for (const { language, code, line } of blocks(path, "ts", "tsx", "typescript")) {
      const name = `block${number}_${line}.${language === "tsx" ? "tsx" : "ts"}`;
      writeFileSync(join(source, name), `${code}\nexport {};\n`);
      places.set(name, `${path.slice(root.length)}:${line}`);
    }
  }
  assert.ok(places.size >= 4, "the pages have blocks");
  const errors = compile().replace(/src\/(block\w+\.tsx?)\((\d+),\d+\)/g,
    (_, name, line) => `${places.get(name)} + ${line - 1}`);
  assert.equal(errors, "");
});

test("a wrong room, message, field or event in the page's script does not compile", () => {
  const [page] = blocks(join(root, "docs/typescript.md"), "ts");
  const wrong = [['"duel")', '"dual")'], ['"Choose"', '"Chose"'], ["won,", "one,"],
    ['"Shown"', '"Shows"'], ["{ index }", "{ place: index }"]];
  for (const [number, [old, now]] of wrong.entries()) {
    assert.ok(page.code.includes(old), old);
    writeFileSync(join(source, `wrong${number}.ts`), page.code.replace(old, now));
  }
  const errors = compile();
  for (const [number, [, now]] of wrong.entries())
    assert.match(errors, new RegExp(`wrong${number}\\.ts.*error TS`), now);
});
