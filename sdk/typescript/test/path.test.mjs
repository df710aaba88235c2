// The paths of changes: one that the schema has nothing at is refused, with what there is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { checkPath } from "../dist/state/path.js";

const struct = (fields) => ({
  struct: "S", fields: Object.entries(fields).map(([name, type]) => ({ name, type })),
});
const STATE = struct({
  round: "u32",
  players: { map: struct({ hp: "u8", at: { option: struct({ x: "f32" }) } }), key: "player" },
  names: { map: "text", key: "text" },
  log: { list: { quantized: "f32", step: 0.5 } },
  tags: { set: "text" },
  shape: { enum: "Shape", variants: [{ name: "Circle", fields: [{ name: "0", type: "u8" }] }] },
});

for (const path of [
  "", "*", "round", "players", "players.*", "players.7.hp", "players.*.at.x", "*.*.hp", "names.a b",
  "log.0", "log.*", "tags.red", "shape", "shape.Circle.0",
]) test(`changes may be at "${path}"`, () => checkPath(STATE, path ? path.split(".") : []));

for (const [path, why] of [
  ["rounds", 'the state has no field "rounds"; it has round, players, names, log, tags, shape'],
  ["players.*.hq", 'players.* has no field "hq"; it has hp, at'],
  ["players.*.at.y", 'players.*.at has no field "y"; it has x'],
  ["players.ann", 'a step below players is a number (player) or *, not "ann"'],
  ["log.first", 'a step below log is a number (u32) or *, not "first"'],
  ["log.0.x", "log.0 has nothing below it"],
  ["round.x", "round has nothing below it"],
  ["tags.red.x", "tags.red has nothing below it"],
  ["shape.Box", 'shape has no variant "Box"; it has Circle'],
]) {
  test(`no change is at "${path}"`, () =>
    assert.throws(() => checkPath(STATE, path.split(".")), {
      name: "TypeError", message: `no change has the path "${path}": ${why}`,
    }));
}
