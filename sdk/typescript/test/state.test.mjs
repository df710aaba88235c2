// The decoder of `packed` against the vectors: copies, digests, and bodies that must be refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../dist/error.js";
import { readSchema } from "../dist/schema.js";
import { PackedCopy } from "../dist/state/copy.js";
import { bytes, jsonForm, stories } from "./vectors.mjs";

/** A copy after these steps. */
const after = (schema, viewer, steps) => {
  const copy = new PackedCopy(schema.state, viewer);
  for (const { kind, packed } of steps) if (kind !== "refused") copy[kind](bytes(packed));
  return copy;
};

for (const { name, schema: source, viewers } of stories()) {
  const schema = readSchema(source);
  for (const { viewer, steps } of viewers) {
    test(`${name}: the copy of player ${viewer} is what the player sees`, () => {
      const copy = new PackedCopy(schema.state, viewer);
      for (const step of steps.filter(({ kind }) => kind !== "refused")) {
        copy[step.kind](bytes(step.packed));
        assert.deepEqual(jsonForm(schema.state, copy.state), step.state, step.what);
        assert.equal(copy.digest().toString(16).padStart(16, "0"), step.digests.packed, step.what);
      }
    });

    test(`${name}: what does not fit the copy of player ${viewer} is refused`, () => {
      steps.forEach((step, place) => {
        const before = steps.slice(0, place);
        const refuses = (body, why) => {
          const copy = after(schema, viewer, before);
          assert.throws(() => copy.patch(body), DecodeError, why);
          assert.equal(copy.state, null, "no wrong copy");
        };
        for (const { packed, why } of step.refused ?? []) refuses(bytes(packed), why);
        for (const cut of step.refused_cuts ?? []) {
          const body = bytes(step.packed).subarray(0, cut);
          if (step.kind === "patch") refuses(body, `${step.what}, cut at ${cut}`);
          else assert.throws(() => after(schema, viewer, []).snapshot(body), DecodeError);
        }
      });
    });
  }
}
