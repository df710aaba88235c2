// The motion of the template `arena`, with states that arrive at uneven times.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { dice } from "./dice.mjs";

const source = readFileSync(new URL("../../../../crates/playfield/templates/arena/web/motion.js", import.meta.url), "utf8");
const { Motion } = await import(`data:text/javascript,${encodeURIComponent(source)}`);

const HZ = 30, SYNC_MS = 1000 / HZ;

/** How far a thing that moves by 5 in each sync is drawn in each frame, at 60 Hz. */
function steps(syncs, arrival) {
  const motion = new Motion(HZ), drawn = [];
  let version = 1;
  for (let now = 0; version < syncs; now += 1000 / 60) {
    for (; arrival(version) <= now; version++) motion.add(version, version * 5, arrival(version));
    const at = motion.at(now);
    if (at) drawn.push(at.from + (at.to - at.from) * at.part);
  }
  return drawn.slice(1).map((place, index) => place - drawn[index]);
}

/** The largest deviation from an even step, as a part of it. */
const uneven = (found) => Math.max(...found.map((step) => Math.abs(step / (5 * HZ / 60) - 1)));

test("on an even line all steps are even", () => {
  const found = steps(300, (version) => 1000 + version * SYNC_MS);
  // The first state is shown until the second one.
  assert.ok(uneven(found.slice(4)) < 0.001, `${found}`);
});

test("states that are up to 15 ms late leave no mark, once the clock is known", () => {
  const { roll } = dice(7);
  const late = Array.from({ length: 601 }, () => 15 * roll());
  const found = steps(600, (version) => 1000 + version * SYNC_MS + late[version]);
  assert.ok(uneven(found.slice(200)) < 0.02, `${uneven(found.slice(200))}`);
});

test("a state that is missing, another room and a hidden tab stop nothing", () => {
  const motion = new Motion(HZ);
  assert.equal(motion.at(0), null);
  for (const version of [10, 11, 13, 14]) motion.add(version, version, version * SYNC_MS);
  assert.ok(Math.abs(motion.at(13.5 * SYNC_MS).part - 0.5) < 0.001);
  // The same version again: another room.
  motion.add(14, "other", 500 * SYNC_MS);
  assert.deepEqual(motion.at(500 * SYNC_MS), { from: "other", to: "other", part: 1 });
  // A hidden tab takes states without drawing.
  for (let version = 15; version < 5000; version++) motion.add(version, version, (486 + version) * SYNC_MS);
  assert.ok(motion.states.length < 100);
});
