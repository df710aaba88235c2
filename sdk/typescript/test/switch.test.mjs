// A node that is upgraded while a client is in its rooms: from then on it reads and writes them by
// another schema, which it sends unasked (docs/protocol.md, "Schemas").

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../dist/index.js";
import { Outbox } from "../dist/outbox.js";
import { PackedSocket, Socket } from "./node.mjs";
import {
  AFTER, BEFORE, joined, LAST, PATCH, shows, SNAPSHOT, snapshot, switches,
} from "./upgraded.mjs";
import { bytes } from "./vectors.mjs";

/** A number that no message has. */
const NONE = 2 ** 32 - 1;
const KEPT = { resume: "AA==", grace_ms: 60_000 };

/** A client, and a room of the type "lab" in which it is. */
async function start(t, how = KEPT) {
  const client = new Client("ws://node", {
    format: "packed", WebSocket: PackedSocket, backoffMs: 1,
  });
  t.after(() => client.close());
  const node = Socket.last.open(how), joining = client.joinOrCreate("lab");
  node.gives(BEFORE);
  joined(node, 1, BEFORE);
  shows(node, 1, 1, snapshot.packed);
  return { client, node, room: await joining };
}

/** The client's messages to rooms: number and payload. */
const told = ({ sent }) =>
  sent.filter(({ message }) => message !== undefined)
    .map(({ message, payload }) => [message, [...payload]]);

/** The next connection, once the client has begun it. */
async function resumed(old, received) {
  old.onclose?.();
  while (Socket.last === old) await new Promise(setImmediate);
  return Socket.last.open({ ...KEPT, resume: "AQ==", resumed: { received, lost: [] } });
}

test("a room goes on by another schema: state, messages, replies and events", async (t) => {
  const { client, node, room } = await start(t), states = [], changes = [], events = [];
  const other = client.joinOrCreate("lab");
  joined(node, 2, BEFORE);
  shows(node, 2, 1, snapshot.packed);
  const rooms = [room, await other];
  room.onState((state) => states.push(state));
  room.onChange("score", ({ value }) => changes.push(value));
  room.onEvent("Dealt", (payload) => events.push(payload));
  assert.throws(() => room.onChange("title", () => {}), TypeError);
  const drawing = rooms.map((room) => room.request("Draw", { count: 3 }));
  const [one, two] = node.sent.slice(-2).map(({ request }) => request);
  node.says({ type: "reply", request: two, payload: bytes("08") });
  const event = { type: "event", room: 1, version: 1 };
  node.says({ ...event, sequence: 1, message: 0, payload: bytes("07") });

  switches(node);
  assert.deepEqual(node.sent.at(-1), { type: "ack", received: 6 });
  // The last state stays until the snapshot comes.
  assert.deepEqual([room.version, room.state, states], [null, snapshot.state, []]);
  assert.equal(room.send("Note", { text: "a" }), true);
  node.says({ type: "reply", request: one, payload: bytes("01 61 09") });
  node.says({ ...event, sequence: 2, message: 1, payload: bytes("01 08") });
  const after = { ...snapshot.state, wishes: {}, title: "a" };
  for (const number of [1, 2]) shows(node, number, 5, SNAPSHOT);
  for (const { state } of rooms) assert.deepEqual(state, after);
  room.onChange("title", ({ value }) => changes.push(value));
  node.says({ type: "patch", room: 1, base: 5, advance: 1, body: bytes(PATCH) });

  assert.deepEqual(await Promise.all(drawing), [{ deck: "a", left: 9 }, { left: 8 }]);
  assert.deepEqual(events, [{ to: 7 }, { by: 1, to: 8 }]);
  assert.deepEqual(told(node), [[1, [3]], [1, [3]], [3, [0, 1, 97]]]);
  assert.equal(room.state.score, 20);
  assert.deepEqual([states.length, changes], [2, [20]]);
  assert.ok(!node.sent.some(({ type }) => type === "resync") && client.status === "connected");
});

test("what was not confirmed is sent again by the schema that came since", async (t) => {
  const { node, room } = await start(t), refused = [];
  room.onRefused((code) => refused.push(code));
  room.send("Old", 1);
  room.send("Note", { text: "a" });
  const drawing = room.request("Draw", { count: 3 });
  room.leave().catch(() => {});
  switches(node);
  // Schema and join were confirmed; the node does not know the name `Old` any more.
  const second = await resumed(node, 2), [{ resume }] = second.sent;
  assert.deepEqual([resume.received, resume.rooms], [3, [{ room: 1, epoch: 3, version: 0 }]]);
  assert.deepEqual(told(second), [[NONE, []], [3, [0, 1, 97]], [1, [0, 3]]]);
  assert.deepEqual(second.sent.slice(1, 5).map(({ type }) => type),
    ["send", "send", "request", "leave"]);
  second.says({ type: "error", room: 1, code: "unknown_message", text: "no such message" });
  // A later upgrade changes the same messages again. One of them was confirmed.
  second.says({ type: "ack", received: 3 });
  switches(second, LAST);
  const third = await resumed(second, 3);
  assert.deepEqual(told(third), [[0, [0, 1, 97]], [2, [0, 3]]]);
  third.says({ type: "reply", request: third.request("request"), payload: bytes("01 61 09") });
  assert.deepEqual(await drawing, { deck: "a", left: 9 });
  assert.deepEqual(refused, ["unknown_message"]);
});

test("a message that grows beyond what the node takes is refused, and all others go", async (t) => {
  const { node, room } = await start(t, { ...KEPT, max_message_bytes: 64 });
  for (const length of [59, 60, 1]) room.send("Note", { text: "a".repeat(length) });
  switches(node);
  const second = await resumed(node, 2);
  assert.deepEqual(told(second).map(([number, { length }]) => [number, length]),
    [[3, 61], [NONE, 0], [3, 3]]);
});

test("messages that are written anew count with their new length", () => {
  const outbox = new Outbox({ write: ({ payload }) => payload ?? "" });
  const keeps = (message) => outbox.keep(message.payload ?? "leave", message);
  keeps({ room: 1, message: 0, payload: "abc" });
  keeps({ room: 2, message: 0, payload: "abc" });
  keeps({ room: 1 });
  keeps({ room: 1, message: 1, payload: "" });
  const isOf = ({ room, message }) => room === 1 && message !== undefined;
  outbox.rewrite(isOf, ({ message, payload }) => {
    if (message) throw new Error("it is gone");
    return { payload: `${payload}d` };
  });
  assert.deepEqual([outbox.frames, outbox.length], [["abcd", "abc", "leave", ""], 12]);
});

test("until the schema was heard, messages are by the old one, also after a return", async (t) => {
  const { node, room } = await start(t);
  room.send("Note", { text: "a" });
  node.onclose();
  room.send("Note", { text: "b" });
  const second = await resumed(node, 2), [{ resume }] = second.sent;
  assert.equal(resume.received, 2);
  room.send("Note", { text: "c" });
  const before = [97, 98, 99].map((letter) => [2, [1, letter]]);
  assert.deepEqual(told(second), before);
  switches(second);
  assert.deepEqual(second.sent.at(-1), { type: "ack", received: 3 });
  room.send("Note", { text: "d" });
  assert.deepEqual(told(second), [...before, [3, [0, 1, 100]]]);
  const after = [97, 98, 99, 100].map((letter) => [3, [0, 1, letter]]);
  assert.deepEqual(told(await resumed(second, 2)), after);
});

test("a join that waits for its schema goes on by the one that came since", async (t) => {
  const { client, node } = await start(t), joining = client.joinOrCreate("hall");
  joined(node, 2, BEFORE, "hall");
  shows(node, 2, 1, snapshot.packed);
  const event = { type: "event", room: 2, version: 1 };
  node.says({ ...event, sequence: 1, message: 0, payload: bytes("07") });
  switches(node, AFTER, "hall");
  const room = await (shows(node, 2, 5, SNAPSHOT), joining), missed = [];
  room.onMissed((count) => missed.push(count));
  node.gives(AFTER);
  node.says({ ...event, sequence: 2, message: 1, payload: bytes("01 08") });
  assert.deepEqual([room.state.title, missed], ["a", [1]]);
  room.send("Note", { text: "a" });
  assert.deepEqual(told(node), [[3, [0, 1, 97]]]);
});

test("a schema that can't be used ends the rooms of its type, as at a join", async (t) => {
  const { client, node, room } = await start(t), lefts = [];
  const joining = client.joinOrCreate("hall");
  node.gives(BEFORE);
  joined(node, 2, BEFORE, "hall");
  shows(node, 2, 1, snapshot.packed);
  const other = await joining;
  // In a callback no other room of the type takes what would be by the old schema.
  const third = client.joinOrCreate("lab");
  joined(node, 3, BEFORE);
  shows(node, 3, 1, snapshot.packed);
  const last = await third;
  room.onLeft((code) => lefts.push(code, last.send("Note", { text: "b" })));
  room.send("Note", { text: "a" });
  const drawing = room.request("Draw", { count: 3 });
  switches(node, { ...AFTER, fingerprint: 1 });
  await assert.rejects(drawing, { code: "bad_message" });
  assert.deepEqual([lefts, room.left, other.left], [["bad_message", false], true, false]);
  assert.deepEqual(node.sent.slice(-3).map(({ type }) => type), ["ack", "leave", "leave"]);
  // No other handler of the room gets its messages.
  const second = await resumed(node, 5);
  assert.deepEqual(told(second), [[NONE, []], [NONE, []]]);
  assert.equal(client.status, "connected");
});

test("options are by the schema that came last, and it is not asked for", async (t) => {
  const { client, node } = await start(t), asked = node.request("schema");
  const creates = (bots) =>
    client.create("lab", { options: { bots, lives: 9 } }).catch(() => {});
  const created = ({ sent }) =>
    sent.filter(({ type }) => type === "create").map(({ options }) => [...options]);
  creates(1);
  switches(node);
  creates(2);
  assert.deepEqual(created(node), [[1, 9], [9, 2]]);
  assert.equal(node.request("schema"), asked);
  assert.deepEqual(created(await resumed(node, 2)), [[9, 1], [9, 2]]);
});

test("options that can't be rewritten create no room", async (t) => {
  const { client, node } = await start(t);
  client.create("lab", { options: { bots: 1, lives: 9 } }).catch(() => {});
  switches(node, { ...AFTER, fingerprint: 1 });
  const created = (await resumed(node, 1)).sent.find(({ type }) => type === "create");
  assert.equal(created.room_type, "");
});

test("a node that keeps no session hears how many schemas were read", async (t) => {
  const { client, node, room } = await start(t, { resume: "", grace_ms: 0 });
  // Also of a type that it has nothing to do with.
  switches(node, AFTER, "hall");
  assert.deepEqual(node.sent.at(-1), { type: "ack", received: 1 });
  switches(node);
  assert.deepEqual(node.sent.at(-1), { type: "ack", received: 2 });
  room.send("Note", { text: "a" });
  assert.deepEqual(told(node), [[3, [0, 1, 97]]]);
  // Another session begins at 0.
  node.onclose();
  while (Socket.last === node) await new Promise(setImmediate);
  const next = Socket.last.open({ resume: "", grace_ms: 0 });
  switches(next, AFTER, "hall");
  assert.deepEqual(next.sent.at(-1), { type: "ack", received: 1 });
  assert.equal(client.status, "connected");
});

test("in json a schema is acknowledged, and changes nothing", async (t) => {
  const client = new Client("ws://node", { format: "json", WebSocket: Socket });
  t.after(() => client.close());
  const node = Socket.last.open(KEPT), joining = client.joinOrCreate("lab");
  node.joins({ round: 1 });
  const room = await joining;
  node.says({ type: "schema", room_type: "lab", schema: AFTER });
  assert.deepEqual(node.sent.at(-1), { type: "ack", received: 2 });
  node.patches([["title"], "a"]);
  assert.deepEqual([room.version, room.state], [2, { round: 1, title: "a" }]);
});
