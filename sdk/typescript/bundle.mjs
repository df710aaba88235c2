// Makes what nodes serve, in crates/web/dist/client: playfield.js, and playfield-packed.js, which
// it loads when it needs the format `packed`. With `--check` it only says whether they are current.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { minify } from "terser";

/** The most that a client in `json`, and one in `packed`, may take, gzipped. */
const GZIPPED_MAX = 16_550, GZIPPED_BOTH_MAX = 25_950;

const here = new URL(".", import.meta.url);
const served = new URL("../../crates/web/dist/client/", here);
const path = (file) => fileURLToPath(new URL(file, here));

/** In `playfield.js` the module that loads the other file takes the place of `codec.ts`. */
const loading = {
  name: "loading",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/codec\.js$/ }, () => ({ path: path("served.ts") })),
};
/** In `playfield-packed.js` what `playfield.js` has too is taken from its argument, `shared`. */
const borrowing = {
  name: "borrowing",
  setup: ({ onResolve, onLoad }) => {
    const [, names] = /const shared = (\{.*\});/.exec(readFileSync(path("served.ts"), "utf8"));
    onResolve({ filter: /\/(base64|error|reader|writer)\.js$/ }, () => ({
      path: "shared",
      namespace: "shared",
    }));
    onLoad({ filter: /./, namespace: "shared" }, () => ({
      contents: `export const ${names} = shared;`,
    }));
  },
};
const common = {
  bundle: true,
  target: "es2022",
  charset: "utf8",
  write: false,
  // Each of the two minifiers finds what the other leaves.
  minifySyntax: true,
};
const made = async (name, options, changed = (text) => text) => {
  const {
    outputFiles: [{ text }],
  } = await build({ ...common, ...options });
  const { code } = await minify(changed(text), {
    module: true,
    ecma: 2022,
    compress: { passes: 3, pure_getters: true },
  });
  const banner = "// The Playfield client: a bundle of sdk/typescript.\n";
  const all = `${banner}${code}\n`;
  return { name, text: all, gzipped: gzipSync(all, { level: 9 }).length };
};
const files = [
  await made("playfield.js", {
    entryPoints: [path("src/core.ts")],
    format: "esm",
    plugins: [loading],
    external: ["./playfield-packed.js"],
  }),
  await made(
    "playfield-packed.js",
    { entryPoints: [path("src/packed.ts")], format: "esm", plugins: [borrowing] },
    // What the module exports is what the function returns.
    (text) =>
      `export default (shared) => {${text.replace(/export (\{[^}]*\};\s*)$/, "return $1")}};`,
  ),
];
const say = (what) => {
  console.error(`playfield: ${what}`);
  process.exit(1);
};
const limit = (what, bytes, most) => {
  if (bytes > most) say(`${what} takes ${bytes} bytes gzipped; at most ${most} are allowed`);
};
const [main, packed] = files;
limit(main.name, main.gzipped, GZIPPED_MAX);
limit("the client in packed", main.gzipped + packed.gzipped, GZIPPED_BOTH_MAX);
if (process.argv.includes("--check")) {
  for (const { name, text } of files)
    if (readFileSync(new URL(name, served), "utf8") !== text)
      say(`crates/web/dist/client/${name} is not what sdk/typescript makes`);
  process.exit();
}
// Whole files only: a compiler may read them meanwhile.
const write = (name, text) => {
  const place = new URL(name, served), part = new URL(`${name}.${process.pid}`, served);
  writeFileSync(part, text);
  renameSync(part, place);
};
mkdirSync(served, { recursive: true });
write("package.json", '{ "type": "module" }\n');
for (const { name, text, gzipped } of files) {
  write(name, text);
  console.log(`${name}: ${text.length} bytes, ${gzipped} gzipped`);
}
// What the package takes in a page, by the minifier that most use.
for (const [name, entry] of [["playfield/rooms", "rooms"], ["playfield", "index"]]) {
  const entryPoints = [path(`src/${entry}.ts`)];
  const options = { ...common, minify: true, entryPoints, format: "esm" };
  const { outputFiles: [{ contents }] } = await build(options);
  const gzipped = gzipSync(contents, { level: 9 }).length;
  console.log(`${name}, bundled: ${contents.length} bytes, ${gzipped} gzipped`);
}
