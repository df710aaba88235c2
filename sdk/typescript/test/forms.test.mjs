// A page may be older than the node's schema, by which it writes `packed`: what it writes in the
// form of its own build is read as in docs/state.md, "Forms of fields".

import assert from "node:assert/strict";
import { test } from "node:test";
import { EncodeError } from "../dist/error.js";
import { encodeValue } from "../dist/state/atomic.js";

const fields = (types) => Object.entries(types).map(([name, type]) => ({ name, type }));
const struct = (types) => ({ struct: "S", fields: fields(types) });
const packed = (type, value) => [...encodeValue(type, value, "it")];

const maybe = { option: "u8" };

test("fields that an older page leaves out are empty", () => {
  const named = struct({ soft: maybe, notes: { list: "text" }, costs: { map: "u8", key: "u8" } });
  for (const value of [undefined, null, {}, { notes: null, costs: null }])
    assert.deepEqual(packed(named, value), [0, 0, 0]);
  const step = struct({ 0: "u8", 1: maybe, 2: { list: "u8" } });
  for (const value of [5, [5], [5, null], [5, null, []]])
    assert.deepEqual(packed(step, value), [5, 0, 0]);
  assert.deepEqual(packed(struct({ 0: maybe, 1: maybe }), null), [0, 0]);
});

test("the name of a variant that got fields is enough", () => {
  const mode = {
    enum: "Mode",
    variants: [
      { name: "On", fields: fields({ 0: "u8" }) },
      { name: "Off", fields: fields({ level: maybe }) },
      { name: "Gone", fields: [] },
    ],
  };
  assert.deepEqual(packed(mode, "Off"), [1, 0]);
  assert.deepEqual(packed(mode, { Off: null }), [1, 0]);
  for (const refused of ["On", { Gone: null }, "Of", { On: null }])
    assert.throws(() => packed(mode, refused), EncodeError);
});

test("what is too much or may not be empty is refused", () => {
  const step = struct({ 0: "u8", 1: maybe });
  for (const refused of [[5, null, 1], [], null, "5x"])
    assert.throws(() => packed(step, refused), EncodeError);
  assert.throws(() => packed(struct({ text: "text" }), null), /it.text is undefined/);
});
