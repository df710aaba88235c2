// What `npm pack` makes, as a program that installs it finds it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = fileURLToPath(new URL("..", import.meta.url));
/** The most that a page takes with an entry point of the client, gzipped, and the archive. */
const GZIPPED_MAX = { playfield: 27_000, "playfield/rooms": 23_000 }, ARCHIVE_MAX = 78 * 1024;

const folder = mkdtempSync(join(tmpdir(), "playfield-")),
  installed = join(folder, "node_modules/playfield");
let archive, files, about;
before(() => {
  // `scripts/typescript` has built it.
  const args = ["pack", "--ignore-scripts", "--json", "--silent", "--pack-destination", folder];
  [archive] = JSON.parse(execFileSync("npm", args, { cwd: here, encoding: "utf8" }));
  files = archive.files.map(({ path }) => path);
  mkdirSync(installed, { recursive: true });
  execFileSync("tar", [
    "-xzf",
    join(folder, archive.filename),
    "-C",
    installed,
    "--strip-components=1",
  ]);
  about = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
});
after(() => rmSync(folder, { recursive: true }));

test("the package has the client with its types, a README and the licenses only", () => {
  const others = files.filter((path) => !/^dist\/[\w/]+(\.d\.ts|\.js)$/.test(path)).sort();
  assert.deepEqual(others, ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "package.json"]);
  for (const path of files.filter((path) => path.endsWith(".js"))) {
    assert.ok(files.includes(path.replace(/\.js$/, ".d.ts")), path);
  }
  assert.ok(archive.size <= ARCHIVE_MAX, `${archive.size} bytes`);
});

test("it is ESM alone, and needs nothing else to run", () => {
  assert.equal(about.type, "module");
  assert.equal(about.dependencies, undefined);
  for (const [path, conditions] of Object.entries(about.exports)) {
    assert.deepEqual(Object.keys(conditions), ["types", "default"], path);
    for (const file of Object.values(conditions)) assert.ok(files.includes(file.slice(2)), file);
  }
  for (const path of files.filter((path) => path.endsWith(".js"))) {
    const text = readFileSync(join(installed, path), "utf8");
    const foreign = [...text.matchAll(/^(?:import|export).* from "([^".][^"]*)"/gm)].map(
      ([, name]) => name,
    );
    assert.deepEqual(foreign, path === "dist/react.js" ? ["react"] : [], path);
  }
});

const PROGRAM = `
import { Client, PlayfieldError, type Room } from "playfield";
import { useRoomState } from "playfield/react";
import { Client as RoomsOnly } from "playfield/rooms";
const client = new Client("wss://game.example", { name: "Ann" });
const room: Room = await client.joinOrCreate("duel", { timeoutMs: 5000 });
export const round: number | undefined = useRoomState(room, ({ round }) => round as number);
export const isFull = (error: unknown): boolean =>
  error instanceof PlayfieldError && error.code === "room_full";
export const join = (client: RoomsOnly) => client.join("duel", "key");
// @ts-expect-error: there is no such option.
new Client("wss://game.example", { nam: "Ann" });
`;

for (const [moduleResolution, module] of [["bundler", "esnext"], ["node16", "node16"]]) {
  test(`its types are found with moduleResolution ${moduleResolution}`, () => {
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    writeFileSync(join(folder, "program.ts"), PROGRAM);
    const compilerOptions = {
      module,
      moduleResolution,
      target: "es2022",
      lib: ["es2022", "dom"],
      strict: true,
      noEmit: true,
      types: [],
    };
    writeFileSync(
      join(folder, "tsconfig.json"),
      JSON.stringify({ compilerOptions, files: ["program.ts"] }),
    );
    try {
      execFileSync(join(here, "node_modules/.bin/tsc"), ["-p", folder], { encoding: "utf8" });
    } catch (error) {
      assert.fail(error.stdout);
    }
  });
}

for (const [entry, most] of Object.entries(GZIPPED_MAX)) {
  test(`${entry} can be imported, and bundled for a page`, async () => {
    const script = `const { Client } = await import("${entry}"); console.log(typeof Client);`;
    const args = ["--input-type=module", "--eval", script];
    assert.equal(execFileSync("node", args, { cwd: folder, encoding: "utf8" }), "function\n");
    const { outputFiles: [{ contents }] } = await build({
      stdin: { contents: `export * from "${entry}";`, resolveDir: folder },
      bundle: true, minify: true, format: "esm", target: "es2022", platform: "browser",
      write: false,
    });
    const { length } = gzipSync(contents, { level: 9 });
    assert.ok(length <= most, `${length} bytes gzipped`);
  });
}
