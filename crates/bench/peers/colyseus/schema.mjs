// Encodes the workload "colyseus" with @colyseus/schema. For each line "PLAYERS A|B SHARE" of
// standard input it plays new rooms, and prints the median time of a sync for all players; what each
// player is sent of the first is decoded and compared at every step, and that of the others is the
// same.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { Decoder, Encoder } from "@colyseus/schema";
import { empty, Model, seat, step, Table } from "./table.mjs";

/** As in `playfield-bench bench sync`. */
const WARM_UP = 5, MEASURED = 100;
/** How many rooms are played for a line, and how many before the first. */
const ROOMS = 10, FIRST = 20;

const PATCH = 15, STATE = 14;
const buffer = new Uint8Array(1024 * 1024);
const warm = new Set();

/** Plays a room. Returns what players were sent, and the times of syncs in microseconds. */
function play(players, everyone, share) {
  const table = empty(), encoder = new Encoder(table);
  const ids = Array.from({ length: players }, (_, place) => `player-${place}`);
  const views = ids.map((id, place) => seat(table, id, place));
  const first = views.map((view) => whole(encoder, view));
  patches(encoder, views); // of the joins
  const sent = [], took = [];
  for (let round = 0; round < WARM_UP + MEASURED; round++) {
    step(table, ids, everyone, share);
    const began = performance.now(), messages = patches(encoder, views);
    const us = 1000 * (performance.now() - began);
    sent.push(messages);
    if (round >= WARM_UP) took.push(us);
  }
  return { ids, first, sent, took };
}

/** The first message of a player. */
function whole(encoder, view) {
  const at = { offset: 1 };
  buffer[0] = STATE;
  encoder.encodeAll(at, buffer);
  return encoder.encodeAllView(view, at.offset, { offset: at.offset }, buffer).slice();
}

/** A message for every player, as `SchemaSerializer` of Colyseus makes them. */
function patches(encoder, views) {
  const at = { offset: 1 };
  encoder.sharedBuffer[0] = PATCH;
  encoder.encode(at);
  const shared = at.offset, sent = views.map((view) => encoder.encodeView(view, shared, at));
  encoder.discardChanges();
  return sent;
}

/** Decodes all that players were sent. Throws if a copy is not as it should be. */
function check({ ids, first, sent }, everyone, share) {
  ids.forEach((id, place) => {
    const decoder = new Decoder(new Table()), model = new Model(ids.length);
    decoder.decode(first[place], { offset: 1 });
    for (const messages of sent) {
      model.step(everyone, share);
      decoder.decode(messages[place], { offset: 1 });
      const wrong = model.differs(decoder.state, id);
      if (wrong || decoder.state.players.size !== ids.length) throw new Error(wrong ?? "players");
    }
  });
}

function round(line) {
  const [count, scenario, rest] = line.split(" "), share = Number(rest), everyone = scenario === "B";
  const played = (rooms) =>
    Array.from({ length: rooms }, () => play(Number(count), everyone, share));
  if (!warm.has(line)) played(FIRST);
  warm.add(line);
  const rooms = played(ROOMS), [one, ...others] = rooms;
  check(one, everyone, share);
  const same = others.every(({ sent }) => sent.every((messages, at) =>
    messages.every((message, place) => Buffer.compare(message, one.sent[at][place]) === 0)));
  const times = rooms.flatMap(({ took }) => took).sort((a, b) => a - b);
  const bytes = one.sent.slice(WARM_UP).flat().reduce((sum, { length }) => sum + length, 0);
  return { value: times[times.length >> 1], bytes: bytes / MEASURED, verified: same };
}

const require = createRequire(import.meta.url);
const installed = join(dirname(require.resolve("@colyseus/schema")), "..", "package.json");
const { version } = JSON.parse(readFileSync(installed, "utf8"));
console.log(JSON.stringify({ "@colyseus/schema": `${version}, Node.js ${process.version}` }));
for await (const line of createInterface({ input: process.stdin }))
  console.log(JSON.stringify(round(line)));
