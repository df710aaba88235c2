// Decoding in V8: patches of a room with 30 players, all of whom move, where a card changes in a
// fifth of the hands; for one player. Both clients decode the same changes and call a function for
// each player that changed, in turns, and end with the same state. And encoding of the same changes
// for all players, by `@colyseus/schema`; `playfield-bench bench sync` measures ours. Run by
// `make bench-typescript`, with what the example `patches` of `playfield-bench` prints.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import {
  ArraySchema, Callbacks, Decoder, Encoder, MapSchema, schema, StateView, t,
} from "@colyseus/schema";
import { build } from "esbuild";
import { Changes } from "../dist/changes.js";
import { PackedCopy } from "../dist/index.js";

const ROUNDS = 41, WARM_UP = 20;
const sent = JSON.parse(readFileSync(process.argv[2], "utf8")).colyseus;
const { schema: ours, viewer, snapshot, patches, state } = sent;
const bytes = (hex) => Uint8Array.from(hex.match(/../g), (byte) => parseInt(byte, 16));
const N = Object.keys(state.players).length;

/** Ours. */
const mirror = () => {
  const copy = new PackedCopy(ours.state, viewer), changes = new Changes();
  let heard = 0;
  changes.on("players.*", () => heard++);
  copy.snapshot(bytes(snapshot));
  const take = (patch) => {
    const before = copy.state;
    copy.patch(patch);
    changes.report(before, copy.state);
  };
  return { take, heard: () => heard, check: () => assert.deepEqual(copy.state, state) };
};

// Theirs: the same state and steps, encoded for the same player.
const Card = schema({ id: t.int32(), suit: t.int32(), rank: t.int32() }, "Card");
const Hand = schema({ cards: t.array(Card) }, "Hand");
const Player = schema(
  { posX: t.float64(), posY: t.float64(), health: t.int32(), name: t.string() },
  "Player",
);
const Table = schema(
  { round: t.int32(), players: t.map(Player), hands: t.map(Hand).view() },
  "State",
);
Encoder.BUFFER_SIZE = 256 * 1024;

const set = (object, members) => Object.assign(object, members);
const ids = Object.keys(state.players), buffer = new Uint8Array(256 * 1024);

/** Their server: its state, and the view of the first player. */
function serve() {
  const server = new Table(), encoder = new Encoder(server), view = new StateView();
  server.round = 0;
  server.players ??= new MapSchema();
  server.hands ??= new MapSchema();
  ids.forEach((id, i) => {
    server.players.set(
      id,
      set(new Player(), { posX: i * 1.5, posY: i * 2.5, health: 100, name: `Player ${i}` }),
    );
    const hand = new Hand();
    hand.cards ??= new ArraySchema();
    for (let c = 0; c < 10; c++)
      hand.cards.push(set(new Card(), { id: i * 10 + c, suit: c % 4, rank: c % 13 }));
    server.hands.set(id, hand);
    if (i === 0) view.add(hand);
  });
  return { server, encoder, view };
}

/** Returns the snapshot for the player. */
function whole(encoder, view) {
  const at = { offset: 1 };
  encoder.encodeAll(at, buffer);
  return encoder.encodeAllView(view, at.offset, { offset: at.offset }, buffer).slice();
}

/** Returns the patch of the changes for the player. */
function encoded(encoder, view) {
  const at = { offset: 1 };
  encoder.encode(at);
  const sent = encoder.encodeView(view, at.offset, at);
  encoder.discardChanges();
  return sent;
}

/** A tick of their room, as those of ours. */
function step(server, tick) {
  server.round = tick;
  ids.forEach((id, i) => {
    const player = server.players.get(id);
    player.posX += 0.37;
    player.posY -= 0.21;
    player.health = 1 + ((tick * 7 + i) % 100);
  });
  for (let i = 0; i < Math.floor(N / 5); i++) {
    const card = server.hands.get(ids[i]).cards[tick % 10];
    set(card, { id: card.id + 1, suit: (card.suit + 1) % 4, rank: (card.rank + 1) % 13 });
  }
}

/** Plays all ticks of a room; returns the snapshot and the patches of the player. */
function played() {
  const { server, encoder, view } = serve(), snapshot = whole(encoder, view);
  encoded(encoder, view); // of the joins
  const sent = patches.map((_, index) => {
    step(server, index + 1);
    return encoded(encoder, view);
  });
  return { server, snapshot, sent };
}

const { server, snapshot: theirSnapshot, sent: theirPatches } = played();

const colyseus = () => {
  const decoder = new Decoder(new Table()), callbacks = Callbacks.get(decoder);
  let heard = 0;
  callbacks.onAdd("players", (player) => callbacks.onChange(player, () => heard++));
  decoder.decode(theirSnapshot, { offset: 1 });
  const check = () => compare(decoder.state);
  return { take: (patch) => decoder.decode(patch, { offset: 1 }), heard: () => heard, check };
};

/** Compares a player's copy with the state of their server. */
function compare({ players, hands, round }) {
  assert.deepEqual([round, players.size, [...hands.keys()]], [patches.length, N, [ids[0]]]);
  for (const id of ids) {
    const copy = players.get(id), right = server.players.get(id);
    assert.deepEqual(
      [copy.posX, copy.posY, copy.health, copy.name],
      [right.posX, right.posY, right.health, right.name],
    );
  }
  const card = ({ id, suit, rank }) => [id, suit, rank];
  const right = server.hands.get(ids[0]).cards.map(card);
  assert.deepEqual(hands.get(ids[0]).cards.map(card), right);
}

/** How long a patch takes, in microseconds. */
function measure(make, patches) {
  const { take, heard, check } = make(), before = heard(), began = performance.now();
  for (const patch of patches) take(patch);
  const took = performance.now() - began;
  check();
  assert.ok(heard() - before >= N * patches.length, `${heard() - before} changes were reported`);
  return (1000 * took) / patches.length;
}

const rows = { playfield: [mirror, patches.map(bytes)], "@colyseus/sdk": [colyseus, theirPatches] };
const times = { playfield: [], "@colyseus/sdk": [] };
for (let round = 0; round < ROUNDS + WARM_UP; round++) {
  for (const [name, row] of Object.entries(rows)) {
    const time = measure(...row);
    if (round >= WARM_UP) times[name].push(time);
  }
}
const size = async (source) => {
  const { outputFiles: [{ contents }] } = await build({
    stdin: { contents: source, resolveDir: fileURLToPath(new URL(".", import.meta.url)) },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    platform: "browser",
    write: false,
    logLevel: "silent",
  });
  return gzipSync(contents, { level: 9 }).length;
};
const sizes = {
  playfield: await size('export * from "../dist/index.js"'),
  "playfield/rooms": await size('export * from "../dist/rooms.js"'),
  "@colyseus/sdk": await size('export * from "@colyseus/sdk"'),
};
const rounded = (row) => JSON.stringify(row, (_, value) =>
  typeof value === "number" ? Number(value.toFixed(3)) : value);
const about = {
  suite: "typescript", node: process.version, players: N, patches: patches.length, rounds: ROUNDS,
};
const decoded = Object.entries(rows).map(([client, [, own]]) => ({
  ...about,
  row: "decode",
  client,
  us: middle(times[client]),
  us_fastest: Math.min(...times[client]),
  bytes: own.reduce((sum, { length }) => sum + length, 0) / own.length,
  verified: true,
}));
if (process.argv.includes("--json")) {
  for (const row of decoded) console.log(rounded(row));
  for (const [client, gzipped_bytes] of Object.entries(sizes))
    console.log(rounded({ ...about, row: "size", client, gzipped_bytes, verified: true }));
} else {
  console.log(
    `node ${process.version}, ${N} players, ${patches.length} patches, ${ROUNDS} rounds in turns`,
  );
  console.log("client           µs a patch, median [fastest]   bytes a patch   gzipped");
  for (const { client, us, us_fastest, bytes } of decoded) {
    const took = `${us.toFixed(1)} [${us_fastest.toFixed(1)}]`;
    console.log(
      [client.padEnd(16), took.padEnd(30), bytes.toFixed(1).padEnd(15), sizes[client]].join(" "),
    );
  }
  const alone = sizes["playfield/rooms"];
  console.log(`playfield/rooms, the same for rooms alone, takes ${alone} gzipped`);
  const ratio = decoded[1].us / decoded[0].us;
  console.log(`playfield is ${ratio.toFixed(2)} times as fast`);
}

function middle(list) {
  return list.sort((a, b) => a - b)[list.length >> 1];
}
