// Makes the bundle that nodes serve at `/playfield.js`: crates/playfield/web/playfield.js. With
// `--check` it only says whether that is current.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

/** The most that the bundle may take, gzipped. */
const GZIPPED_MAX = 25 * 1024;

const here = new URL(".", import.meta.url);
const place = new URL("../../crates/playfield/web/playfield.js", here);
const banner = "// The Playfield client: the bundle of sdk/typescript, which `make typescript` writes.";
const { outputFiles } = await build({
  entryPoints: [fileURLToPath(new URL("src/index.ts", here))],
  bundle: true, format: "esm", target: "es2022", minify: true, charset: "utf8", write: false,
  banner: { js: banner },
});
const [{ text }] = outputFiles, { length } = gzipSync(text, { level: 9 });
const say = (what) => {
  console.error(`playfield: ${what}`);
  process.exit(1);
};
if (length > GZIPPED_MAX) say(`the bundle has ${length} bytes gzipped; at most ${GZIPPED_MAX} are allowed`);
if (!process.argv.includes("--check")) {
  writeFileSync(place, text);
  console.log(`${fileURLToPath(place)}: ${text.length} bytes, ${length} gzipped`);
} else if (readFileSync(place, "utf8") !== text) {
  say("crates/playfield/web/playfield.js is not the bundle of sdk/typescript; run `make typescript`");
}
