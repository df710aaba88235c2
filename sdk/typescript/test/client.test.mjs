// What a program sees: promises, states, changes, time limits.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, PlayfieldError } from "../dist/index.js";
import { Socket } from "./node.mjs";

const STATE = {
  round: 1,
  players: { 1: { hp: 9, at: { x: 1 } }, 2: { hp: 8, at: { x: 2 } } },
  log: ["a"],
};

async function inRoom(t) {
  const client = new Client("ws://node", { name: "Ann", format: "json", WebSocket: Socket });
  t.after(() => client.close());
  const node = Socket.last.open();
  const joining = client.joinOrCreate("lab");
  node.joins(STATE);
  return { client, node, room: await joining };
}

test("a state never changes, and what did not change in it is the same object", async (t) => {
  const { node, room } = await inRoom(t);
  const before = room.state;
  node.patches([["players", "1", "hp"], 7], [["round"], 2]);
  assert.notEqual(room.state, before);
  assert.deepEqual(before, STATE);
  assert.equal(room.state.players[1].hp, 7);
  assert.equal(room.state.players[2], before.players[2]);
  assert.equal(room.state.players[1].at, before.players[1].at);
  assert.equal(room.state.log, before.log);
});

test("changes are reported by path, and entries as they enter, leave and change", async (t) => {
  const { node, room } = await inRoom(t);
  const heard = [];
  room.onChange("players.*.hp", ({ path, value, old }) => heard.push([path.join("."), old, value]));
  const off = room.onChange("round", ({ kind, value }) => heard.push([kind, value]));
  room.onEntries("players", {
    entered: (key, { hp }) => heard.push(["entered", key, hp]),
    left: (key, { hp }) => heard.push(["left", key, hp]),
    changed: (key, { hp }, old) => heard.push(["changed", key, old.hp, hp]),
  });
  node.patches(
    [["players", "1", "hp"], 7],
    [["players", "2"]],
    [["players", "3"], { hp: 5 }],
    [["round"], 2],
  );
  assert.deepEqual(heard, [
    ["players.1.hp", 9, 7], ["players.2.hp", 8, undefined], ["players.3.hp", undefined, 5],
    ["changed", 2], ["changed", "1", 9, 7], ["left", "2", 8], ["entered", "3", 5],
  ]);
  heard.length = 0;
  off();
  node.patches([["round"], 3]);
  assert.deepEqual(heard, []);
});

test("events are heard by name, and the end of the stay with its code", async (t) => {
  const { node, room } = await inRoom(t);
  const heard = [];
  room.onEvent("Dealt", (payload) => heard.push(payload));
  room.onLeft((code, text) => heard.push([code, text]));
  node.says({
    type: "event",
    room: 1,
    sequence: 1,
    version: 1,
    message: "Dealt",
    payload: { to: 1 },
  });
  node.says({ type: "event", room: 1, sequence: 2, version: 1, message: "Other", payload: null });
  node.says({ type: "left", room: 1, code: "kicked", text: "bye" });
  assert.deepEqual(heard, [{ to: 1 }, ["kicked", "bye"]]);
});

test("events that come with the first state wait for who awaits the room", async (t) => {
  const client = new Client("ws://node", { format: "json", WebSocket: Socket });
  t.after(() => client.close());
  const node = Socket.last.open(), joining = client.joinOrCreate("lab");
  const says = (sequence, message) =>
    node.says({ type: "event", room: 1, sequence, version: 1, message, payload: sequence });
  // All in one turn, as from sockets that give several messages at once.
  node.joins(STATE);
  says(1, "Greeted");
  says(2, "Dealt");
  says(3, "Greeted");
  const room = await joining, heard = [];
  room.onEvent("Greeted", (payload) => heard.push(payload));
  room.onEvent("*", (payload, name) => heard.push([payload, name]));
  await new Promise((done) => setTimeout(done, 1));
  assert.deepEqual(heard, [1, 3, [2, "Dealt"]]);
  // Later ones do not wait for anyone.
  says(4, "Other");
  room.onEvent("Other", () => assert.fail("it was heard"));
  says(5, "Greeted");
  assert.deepEqual(heard.slice(3), [[4, "Other"], 5, [5, "Greeted"]]);
});

test("a request is answered, refused, given up or aborted; late answers are ignored", async (t) => {
  const { node, room } = await inRoom(t);
  const answered = room.request("Draw", { count: 2 });
  node.says({ type: "reply", request: node.request("request"), payload: 7 });
  assert.equal(await answered, 7);
  const refused = room.request("Draw", { count: 2 });
  node.says({ type: "error", request: node.request("request"), code: 1001, text: "no" });
  await assert.rejects(refused, (error) => error instanceof PlayfieldError && error.code === 1001);
  const late = room.request("Draw", { count: 2 }, { timeoutMs: 1 });
  await assert.rejects(late, { code: "timeout" });
  node.says({ type: "reply", request: node.request("request"), payload: 8 });
  const controller = new AbortController();
  const aborted = room.request("Draw", { count: 2 }, { signal: controller.signal });
  controller.abort();
  await assert.rejects(aborted, { name: "AbortError" });
  await assert.rejects(room.request("Draw", null, { signal: controller.signal }), {
    name: "AbortError",
  });
});

test("a join that is given up leaves the room when it comes", async (t) => {
  const client = new Client("ws://node", { format: "json", WebSocket: Socket });
  t.after(() => client.close());
  const node = Socket.last.open();
  const controller = new AbortController();
  const joining = client.join("lab", "key", { signal: controller.signal });
  controller.abort();
  await assert.rejects(joining, { name: "AbortError" });
  node.joins(STATE);
  assert.equal(node.sent.at(-1).type === "leave" || node.request("leave") !== undefined, true);
});

test("rooms are listed, and the status is there to show", async (t) => {
  const client = new Client("ws://node", { format: "json", WebSocket: Socket });
  const statuses = [];
  client.onStatus((status) => statuses.push(status));
  assert.equal(client.status, "connecting");
  const node = Socket.last.open();
  const listing = client.list({ roomType: "lab", filter: { map: "sea" } });
  assert.deepEqual(node.sent.at(-1), {
    type: "list",
    request: 1,
    room_type: "lab",
    filter: { map: "sea" },
  });
  node.says({ type: "listed", request: 1, rooms: [{ id: "r1", room_type: "lab", players: 1 }] });
  assert.equal((await listing)[0].id, "r1");
  client.close();
  assert.deepEqual(statuses, ["connected", "ended"]);
});

test("what no node may send ends the connection with a code, and fails what waits", async () => {
  const wrong = [
    { type: "ack", received: 9 }, { type: "history", request: 1, publications: [7] },
    { type: "listed", request: 1, rooms: [7] }, { type: "welcome", resumed: 5 },
    { type: "event", room: 1, sequence: 5 }, { type: "goodbye", code: "busier", text: "" }, 7, [],
  ];
  for (const message of wrong) {
    const ended = [];
    const on = { ended: (code) => ended.push(code) };
    const client = new Client("ws://node", {
      on,
      format: "json",
      reconnectTimeoutMs: 0,
      WebSocket: Socket,
    });
    const node = Socket.last.open();
    const room = client.connection.join("lab");
    node.joins(STATE);
    const waits = room.request("Draw");
    node.says(message);
    await assert.rejects(waits, PlayfieldError, JSON.stringify(message));
    assert.equal(client.status, "ended");
    assert.equal(ended.length, 1);
  }
});
