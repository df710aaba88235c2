// What a patch does to a browser's copy. Run by `make test` where Node is there.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const source = readFileSync(new URL("./playfield.js", import.meta.url), "utf8");
const { apply } = await import(`data:text/javascript,${encodeURIComponent(source)}`);

const applied = (state, ops) => (apply(state, ops), state);

test("a member is set, added and removed", () => {
  const state = { round: 1, players: { 3: { hp: 9 } } };
  const ops = [[["round"], 2], [["players", "3", "hp"], 8], [["players", "4"], { hp: 7 }], [["players", "3"]]];
  assert.deepEqual(applied(state, ops), { round: 2, players: { 4: { hp: 7 } } });
});

test("an element is set, inserted and removed", () => {
  const ops = [[["cards", 0]], [["cards", 1], 9, "insert"], [["cards", 0], 5]];
  assert.deepEqual(applied({ cards: [1, 2, 3] }, ops), { cards: [5, 9, 3] });
});

test("null is a value, and a member that is not here may be removed", () => {
  assert.deepEqual(applied({ winner: 1, seats: {} }, [[["winner"], null], [["seats", "9"]]]), { winner: null, seats: {} });
});

test("a key that looks like an index is a key", () => {
  assert.deepEqual(applied({ map: { 0: "a" } }, [[["map", "0"]], [["map", "1"], "b"]]), { map: { 1: "b" } });
});

test("__proto__ is a key like others", () => {
  const state = applied({ map: {} }, [[["map", "__proto__"], { hp: 1 }], [["map", "__proto__", "hp"], 2]]);
  assert.deepEqual(state, JSON.parse('{"map":{"__proto__":{"hp":2}}}'));
  assert.deepEqual(applied(state, [[["map", "__proto__"]]]), { map: {} });
});
