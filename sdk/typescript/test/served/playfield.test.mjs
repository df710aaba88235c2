// The browser's client. `make test` runs this if Node is installed.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { join } from "./callbacks.mjs";
import * as playfield from "../../../../crates/web/dist/client/playfield.js";

const { apply, digest, whole, OutOfStep, UNUSABLE_IN_A_ROW_MAX } = playfield;

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

test("null is a value, and a missing member may be removed", () => {
  assert.deepEqual(applied({ winner: 1, seats: {} }, [[["winner"], null], [["seats", "9"]]]), { winner: null, seats: {} });
});

test("a key that looks like an index is a key", () => {
  assert.deepEqual(applied({ map: { 0: "a" } }, [[["map", "0"]], [["map", "1"], "b"]]), { map: { 1: "b" } });
});

test("__proto__ is an ordinary key", () => {
  const state = applied({ map: {} }, [[["map", "__proto__"], { hp: 1 }], [["map", "__proto__", "hp"], 2]]);
  assert.deepEqual(state, JSON.parse('{"map":{"__proto__":{"hp":2}}}'));
  assert.deepEqual(applied(state, [[["map", "__proto__"]]]), { map: {} });
});

const vectors = new URL("../../../../conformance/vectors/state/", import.meta.url);

test("snapshots and patches of the vectors make the state that the player sees", () => {
  for (const name of readdirSync(vectors).filter((name) => name.endsWith(".json"))) {
    const story = JSON.parse(readFileSync(new URL(name, vectors), "utf8"));
    for (const { viewer, steps } of story.viewers) {
      let state;
      for (const step of steps.filter((step) => step.kind !== "refused")) {
        if (step.kind === "snapshot") state = whole(structuredClone(step.json));
        else apply(state, step.json);
        assert.deepEqual(state, step.state, `${name}, player ${viewer}: ${step.what}`);
        assert.equal(digest(state).toString(16).padStart(8, "0"), step.digests.json, `${name}, player ${viewer}: ${step.what}`);
      }
    }
  }
});

// Lost connections, and the client's timers, have a test of their own (resumption.test.mjs).
globalThis.setTimeout = () => 0;

/** A WebSocket whose other end is the test. */
class Socket {
  static OPEN = 1;
  readyState = 0;
  sent = [];
  constructor() {
    Socket.last = this;
  }
  send(text) {
    this.sent.push(JSON.parse(text));
  }
  open() {
    this.readyState = 1;
    this.onopen();
  }
  says(message) {
    this.onmessage({ data: JSON.stringify(message) });
  }
  close() {
    this.readyState = 3;
  }
}
// A node that keeps no sessions answers like this. Its pings and acknowledgements are left out.
const rest = (sent) => sent.filter(({ type }) => !["ping", "ack"].includes(type));

function connected(how) {
  Object.assign(globalThis, { WebSocket: Socket, location: { protocol: "http:", host: "here" } });
  const statuses = [];
  const room = join("table", "Ann", { status: (text) => statuses.push(text) }, how);
  const socket = Socket.last;
  socket.open();
  socket.says({ type: "welcome" });
  return { room, socket, statuses };
}

test("before the room is joined, a request waits, and a message without a reply is refused", async () => {
  const { room, socket } = connected();
  room.request("Draw").catch(() => {});
  assert.equal(room.send("Wave"), false);
  assert.deepEqual(rest(socket.sent).map(({ type }) => type), ["hello", "join_or_create"]);
  socket.says({ type: "joined", request: 1, room: 1, player: 7, id: "a" });
  assert.deepEqual(rest(socket.sent).at(-1), { type: "request", request: 2, room: 1, message: "Draw" });
});

/** The messages of clients in the protocol's vectors, by their descriptions. */
const { messages } = JSON.parse(readFileSync(new URL("../protocol/client.json", vectors), "utf8"));
const vector = (name) => messages.find((message) => message.name === name).json;

test("a room is asked for by id, by key, with a code or by chance, as the vectors say", () => {
  const asked = (how) => connected(how).socket.sent[1];
  const like = (how, name) => {
    // The vectors have other numbers and options, and say what may be left out.
    const { request, room_type, ...rest } = vector(name);
    const { request: own, room_type: type, ...sent } = asked(how);
    if (rest.private === false) delete rest.private;
    if (rest.code === false) delete rest.code;
    if (rest.options === null) delete rest.options;
    assert.deepEqual(sent, rest, name);
    assert.ok(own === 1 && (type === "table" || room_type === undefined), name);
  };
  const key = "a key", options = { count: 2 };
  like({ id: "a room" }, "join, in full");
  like({ id: "täble \u{1F600}" }, "join, not in ASCII");
  like({ key, create: false }, "join_by_key, in full");
  like({ key, options }, "join_or_create, in full");
  like({ create: true }, "create, the least");
  like({ key, create: true, code: true, private: true, options }, "create, in full");
  assert.deepEqual(asked(), { type: "join_or_create", request: 1, room_type: "table" });
});

test("a token is sent in base64, and a room's key is read", () => {
  const { room, socket } = connected({ token: "gehéim" });
  assert.equal(socket.sent[0].token, "Z2Vow6lpbQ==");
  assert.equal(connected({ token: Uint8Array.of(255, 0) }).socket.sent[0].token, "/wA=");
  assert.equal(room.key, null);
  socket.says({ type: "joined", request: 1, room: 1, player: 7, id: "a", key: "K7WQ4C" });
  assert.equal(room.key, "K7WQ4C");
});

test("a patch that does not fit the copy throws, and reaches nothing outside it", () => {
  const misfits = [
    [["no", "such"], 1], [["seats", "9", "hp"], 1], [["round", "x"], 1], [["seats", 0], 1], [[], 1], [["cards", 3], 1], [["cards", -1], 1],
    [["cards", "0"], 1], [["cards", "length"], 0], [["cards", 3]], [["cards", 4], 1, "insert"], [["seats", 0], 1, "insert"], [["cards", 0], 3, "move"],
    [["cards", 3], 0, "move"], [["cards"], [0, 0, 1], "order"], [["cards"], [0], "order"], [["cards"], [0, 1, 3], "order"], [["round"], [0], "order"],
    [["round"], 1, "twirl"], [["cards", 0], 1, "insert", 1], [["__proto__", "polluted"], 1], [["seats", "constructor", "polluted"], 1], 7, null,
  ];
  for (const op of misfits) {
    assert.throws(() => apply({ round: 1, seats: {}, cards: [1, 2, 3] }, [op]), JSON.stringify(op));
  }
  assert.throws(() => apply({}, null));
  assert.equal({}.polluted, undefined);
});

/** A connection in room 1, at version 5 of epoch 3. */
function inRoom(on = {}) {
  const faults = [], statuses = [];
  Object.assign(globalThis, { WebSocket: Socket, location: { protocol: "http:", host: "here" } });
  const room = join("table", "Ann", { outOfStep: (error) => faults.push(error), status: (text) => statuses.push(text), ...on });
  const socket = Socket.last;
  socket.open();
  socket.says({ type: "welcome" });
  socket.says({ type: "joined", request: 1, room: 1, player: 7, id: "a", epoch: 3 });
  socket.says({ type: "snapshot", room: 1, epoch: 3, version: 5, ops: [[[], { round: 1, cards: [] }]] });
  socket.sent.length = 0;
  return { room, socket, faults, statuses };
}

const patch = (base, version, ops = [[["round"], version]]) => ({ type: "patch", room: 1, base, version, ops });
const wholeOf = (version) => [[[], { round: version, cards: [] }]];
const snapshot = (version, epoch = 3, ops = wholeOf(version)) => ({ type: "snapshot", room: 1, epoch, version, ops });
const check = (version, digest) => ({ type: "check", room: 1, version, digest });
const resync = { type: "resync", room: 1 };

test("an unusable message is reported with its reason, and a snapshot repairs the copy", (t) => {
  t.mock.method(console, "warn", () => {});
  const cases = [
    ["base", patch(6, 7)], ["base", patch(4, 5)], ["base", patch(5, 5)], ["patch", patch(5, 6, [[["round"], 6], [["cards", 9], 1]])], ["patch", patch(5, 6, null)],
    ["patch", patch(5, 6, "ab")], ["patch", patch(5, 6, ["ab"])], ["patch", patch(5, 6, [["round"]])], ["patch", patch(5, 6, [[[]]])],
    ["patch", patch(5, 6, [[Array(129).fill("round"), 1]])], ["patch", patch(5, 6, [[["cards"], "", "order"]])],
    ["base", patch(5, "2e9")], ["base", patch(5, 5.5)], ["base", patch(5, 2 ** 53)], ["snapshot", { ...snapshot(6), version: undefined }],
    ["snapshot", { ...snapshot(6), version: "7" }], ["snapshot", snapshot(6, 3, [])],
    ["snapshot", snapshot(6, 3, [[[], []]])], ["snapshot", snapshot(6, 3, [[["round"], 1]])], ["snapshot", snapshot(6, 3, [...wholeOf(6), [["cards", 9], 1]])],
    ["snapshot", snapshot(6, 3, { round: 1 })], ["epoch", snapshot(6, 4)], ["older", snapshot(4)], ["snapshot", snapshot(6, 3, null)],
    ["digest", check(5, 7)],
  ];
  for (const [reason, message] of cases) {
    const { room, socket, faults } = inRoom();
    socket.says(message);
    assert.deepEqual(faults.map((fault) => [fault instanceof OutOfStep, fault.reason]), [[true, reason]]);
    assert.deepEqual(socket.sent, [resync], reason);
    assert.deepEqual(room.state, { round: 1, cards: [] }, "the last right copy");
    // Patches are passed over until the snapshot.
    socket.says(patch(5, 6));
    assert.equal(room.version, null);
    socket.says(snapshot(8));
    socket.says(patch(8, 9));
    assert.deepEqual([room.state.round, room.version, socket.sent.length, faults.length], [9, 9, 1, 1]);
  }
});

test("digests match those of other clients", () => {
  // As of the Rust client.
  assert.equal(digest(Array(6_000_000).fill(1)).toString(16), "5551f902");
});

test("a server that always sends the same wrong snapshot is not asked forever", (t) => {
  t.mock.method(console, "warn", () => {});
  const { room, socket, statuses } = inRoom();
  for (let round = 0; round < 2; round++) {
    for (let count = 0; count < UNUSABLE_IN_A_ROW_MAX; count++) socket.says(snapshot(6, 4));
    assert.equal(socket.sent.length, (round + 1) * UNUSABLE_IN_A_ROW_MAX);
    if (round === 0) socket.says(snapshot(6)); // usable: the count starts over
  }
  socket.says(snapshot(6, 4));
  assert.equal(socket.sent.length, 2 * UNUSABLE_IN_A_ROW_MAX);
  assert.equal(socket.readyState, 3);
  assert.match(statuses.at(-1), /17 messages in a row .* reload/);
  assert.equal(room.number, null);
});

test("a patch that moves too many elements is refused", () => {
  const state = { list: Array(2_000_000).fill(0) };
  const ops = Array.from({ length: 60_000 }, () => [["list", 1_000]]);
  assert.throws(() => apply(state, ops), /moves more than 1073741824 elements/);
  assert.ok(state.list.length > 1_999_000);
});
