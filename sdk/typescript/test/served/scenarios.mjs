// Plays the conformance scenarios with the browser's client in Node. Run by
// `cargo test -p playfield-conformance`, with the URL of a scenario server.
// Prints what was left out and how many scenarios were played, or what failed.

import { readdirSync, readFileSync } from "node:fs";
import { playAll } from "./player.mjs";

if (typeof WebSocket === "undefined") {
  console.log("no WebSocket");
  process.exit();
}
const playfield = await import("../../../../crates/web/dist/client/playfield.js");
const root = new URL("../../../../conformance/", import.meta.url);
const read = (path) => JSON.parse(readFileSync(new URL(path, root), "utf8"));
const files = readdirSync(new URL("scenarios/", root)).sort();
const [controls, cuts = 200] = [process.argv[2], process.env.PLAYFIELD_CUTS];
const generated = await (await fetch(`${controls}/generated/${cuts}/plain`)).json();
// With a name, or the beginning of one, only those.
const isPlayed = ({ name }) => name.startsWith(process.env.PLAYFIELD_SCENARIOS ?? "");
const { runs, failed, passed } = await playAll({
  playfield, controls, leftOut: read("clients/playfield.js.json"), run: "j",
  scenarios: [
    ...files.flatMap((file) => read(`scenarios/${file}`).scenarios),
    ...generated.scenarios,
  ].filter(isPlayed),
});
for (const why of passed) console.log(`left out: ${why}`);
for (const failure of failed) console.log(failure);
console.log(`${runs} scenarios played, ${failed.length} failed`);
process.exit(failed.length ? 1 : 0);
