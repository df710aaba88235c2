// A room that is joined again by itself: one object, whatever becomes of connections and servers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../dist/index.js";
import { Socket } from "./node.mjs";

const KEPT = { resume: "t", grace_ms: 60_000 };

/** Joins, by `join` of the client, and records what becomes of the stay. */
async function start(t, how = {}, join = (client) => client.joinOrCreate("lab")) {
  const client = new Client("ws://node", {
    format: "json", WebSocket: Socket, backoffMs: 1, again: true, ...how,
  });
  t.after(() => client.close());
  const node = Socket.last.open(KEPT), joining = join(client);
  node.joins({ round: 1 });
  const room = await joining, heard = [];
  room.onStatus((status, { code, message }) => heard.push([status, code, message]));
  return { client, node, room, heard };
}

/** The next connection, once the client has begun it. */
async function next(old) {
  while (Socket.last === old) await new Promise(setImmediate);
  return Socket.last;
}

const joins = ({ sent }) => sent.filter(({ type }) => /join|create/.test(type));

/** Waits until the client has sent a number of joins. */
async function joined(node, count) {
  while (joins(node).length < count) await new Promise((done) => setTimeout(done, 1));
  return joins(node).at(-1);
}

const refuses = (node, code) =>
  node.says({ type: "error", request: joins(node).at(-1).request, code, text: code });

test("a session that is over is another player in the same room object", async (t) => {
  const { client, node, room, heard } = await start(t);
  const states = [], events = [];
  room.onState(({ round }) => states.push(round));
  room.onEvent("Dealt", (payload) => events.push(payload));
  const waits = room.request("Draw");
  node.onclose();
  assert.deepEqual([room.status, room.state], ["lost", { round: 1 }]);
  const second = await next(node);
  second.open();
  await assert.rejects(waits, { code: "connection_lost" });
  assert.equal(room.send("Draw"), false);
  // Requests wait for the room.
  const later = room.request("Draw");
  assert.equal((await joined(second, 1)).room, "r1");
  second.joins({ round: 2 });
  assert.equal(second.sent.at(-1).type, "request");
  second.says({ type: "reply", request: second.request("request"), payload: 3 });
  assert.equal(await later, 3);
  second.says({ type: "event", room: 1, sequence: 1, version: 1, message: "Dealt", payload: 7 });
  assert.deepEqual([room.status, room.left, states, events], ["joined", false, [2], [7]]);
  assert.deepEqual(heard.map(([status, code]) => [status, code]),
    [["lost", "connection_lost"], ["joined", ""]]);
  assert.deepEqual(room.reason, { code: "", message: "" });
  // The connection is there, but the page still knows why the room is not.
  assert.deepEqual([heard[0][2], heard[1][2]], ["disconnected; reconnecting", ""]);
  assert.equal(client.status, "connected");
});

test("a session that goes on brings the room back, and joins nothing", async (t) => {
  const { node, room, heard } = await start(t);
  node.onclose();
  const second = await next(node);
  second.open({ ...KEPT, resumed: { received: 1, lost: [] } });
  assert.deepEqual(heard.map(([status, code]) => [status, code]),
    [["lost", "connection_lost"], ["back", ""]]);
  assert.deepEqual([room.status, room.player, joins(second)], ["back", 1, []]);
});

test("a seat that was not kept for long enough is taken again at once", async (t) => {
  const { node, room, heard } = await start(t);
  node.says({ type: "left", room: 1, code: "connection_lost", text: "away for too long" });
  assert.equal((await joined(node, 2)).room, "r1");
  node.joins({ round: 2 });
  assert.deepEqual(heard, [
    ["lost", "connection_lost", "away for too long"], ["joined", "", ""],
  ]);
  assert.equal(room.state.round, 2);
});

test("a server that shuts down is asked nothing more; the next one is", async (t) => {
  const { node, room, heard } = await start(t);
  const why = { code: "shutting_down", text: "the server is shutting down" };
  node.says({ type: "left", room: 1, ...why });
  await new Promise((done) => setTimeout(done, 5));
  assert.equal(joins(node).length, 1);
  node.says({ type: "goodbye", ...why });
  const second = await next(node);
  second.open();
  assert.equal(room.reason.message, why.text, "being connected is no reason to forget this");
  // Its rooms are others.
  assert.equal(joins(second).at(-1).room, "r1");
  refuses(second, "room_not_found");
  assert.equal(joins(second).at(-1).type, "join_or_create");
  second.joins({ round: 2 });
  assert.deepEqual(heard.map(([status]) => status), ["lost", "joined"]);
});

test("a room that was created is looked for by its key, and one with a key there", async (t) => {
  const ways = [
    [(client) => client.create("lab", { key: "k" }), "join_or_create"],
    [(client) => client.create("lab"), "create"],
    [(client) => client.join("lab", "k"), "join_by_key"],
    [(client) => client.joinById("a ticket"), null],
  ];
  for (const [join, type] of ways) {
    const { node, room } = await start(t, {}, (client) => {
      const joining = join(client);
      Socket.last.key = joins(Socket.last).at(-1).key;
      return joining;
    });
    node.onclose();
    const second = await next(node);
    second.open();
    refuses(second, "room_not_found");
    if (type) {
      assert.equal(joins(second).at(-1).type, type);
      refuses(second, "room_not_found");
    }
    assert.deepEqual([room.status, room.reason.code], ["left", "room_not_found"]);
  }
});

test("a join that is refused for now is tried again, with other waits each time", async (t) => {
  const { node, room, heard } = await start(t);
  node.says({ type: "left", room: 1, code: "room_failed", text: "it panicked" });
  for (const code of ["busy", "room_full"]) {
    await joined(node, joins(node).length + (room.status === "lost" ? 1 : 0));
    refuses(node, code);
  }
  assert.deepEqual(heard.map(([status, code]) => [status, code]),
    [["lost", "room_failed"], ["lost", "busy"], ["left", "room_full"]]);
});

test("a room whose players it throws out again and again is given up", async (t) => {
  const { node, room } = await start(t, { backoffMsMax: 1 });
  let stays = 1;
  for (; !room.left; stays += 1) {
    node.says({ type: "left", room: 1, code: "room_failed", text: "it panicked" });
    if (room.left) break;
    await joined(node, stays + 1);
    node.joins({ round: stays });
  }
  assert.deepEqual([stays, room.status, room.reason.code], [30, "left", "room_failed"]);
});

test("it stays out where coming back makes no sense", async (t) => {
  for (const code of ["kicked", "room_closed", "taken_over", "forbidden", 1001]) {
    const { node, room, heard } = await start(t), lefts = [];
    room.onLeft((code) => lefts.push(code));
    node.says({ type: "left", room: 1, code, text: "bye" });
    assert.deepEqual([heard, lefts, room.left], [[["left", code, "bye"]], [code], true]);
    await assert.rejects(room.request("Draw"), { name: "PlayfieldError", code, message: "bye" });
    await room.leave();
  }
  // The page has closed the client, or has left the room while it is away.
  const closed = await start(t);
  closed.node.onclose();
  closed.client.close();
  assert.deepEqual(closed.heard.map(([status]) => status), ["lost", "left"]);
  const away = await start(t);
  away.node.onclose();
  (await next(away.node)).open();
  await joined(Socket.last, 1);
  await away.room.leave();
  assert.equal(away.room.status, "left");
  await assert.rejects(away.room.request("Draw"), {
    code: "left", message: "this client has left the room",
  });
  Socket.last.joins({ round: 2 });
  assert.ok(Socket.last.request("leave"), "a seat that comes too late is given back");
  // It is a wish.
  const no = await start(t, { again: false });
  no.node.says({ type: "left", room: 1, code: "connection_lost", text: "away" });
  assert.equal(no.room.status, "left");
});

test("a room says what was refused, and how many events were missed", async (t) => {
  const { node, room } = await start(t), heard = [];
  const off = room.onRefused((code, text) => heard.push([code, text]));
  room.onMissed((count) => heard.push(count));
  room.send("Draw");
  node.says({ type: "error", room: 1, code: "too_fast", text: "3 messages were refused" });
  node.onclose();
  const resumed = { received: 2, lost: [{ room: 1, messages: 2 }] };
  (await next(node)).open({ ...KEPT, resumed });
  Socket.last.says({ type: "event", room: 1, sequence: 3, version: 1, message: "Dealt" });
  assert.deepEqual(heard, [["too_fast", "3 messages were refused"], 2]);
  off();
  Socket.last.says({ type: "error", room: 1, code: "too_fast", text: "1 message was refused" });
  assert.equal(heard.length, 2);
});

test("a client says why there is no connection, whenever the reason is another", async (t) => {
  const ways = [
    [(node) => node.onclose({ code: 1006, reason: "" }), "no connection to ws://node/; "],
    [(node) => node.onerror({ message: "connect ECONNREFUSED ::1:7350" }), ": connect ECONN"],
    [(node) => node.onclose({ code: 1008, reason: "origin" }), ": closed with 1008, origin"],
    [
      (node) => {
        node.onerror({});
        node.onclose({ code: 1006, reason: "" });
      },
      "is a server there, is its certificate trusted",
    ],
  ];
  const client = new Client("ws://node", { format: "json", WebSocket: Socket, backoffMs: 1 });
  t.after(() => client.close());
  const texts = [];
  client.onStatus((status, text) => texts.push(`${status}: ${text}`));
  for (const [fails] of ways) {
    const node = Socket.last;
    fails(node);
    await next(node);
  }
  assert.equal(texts.length, ways.length);
  for (const [index, [, text]] of ways.entries()) {
    assert.ok(texts[index].startsWith("connecting: "), texts[index]);
    assert.ok(index === 0 || texts[index].includes(text), texts[index]);
  }
  // A reason that stays is said once.
  for (let count = 0; count < 3; count += 1) {
    const node = Socket.last;
    node.onclose({ code: 1006, reason: "" });
    await next(node);
  }
  assert.equal(texts.length, ways.length + 1);
  // A page from https:// may not make such a socket.
  const Forbidden = class { constructor() { throw new Error("an insecure connection"); } };
  const refused = new Client("ws://node", { WebSocket: Forbidden });
  const why = await new Promise((hears) => refused.onStatus((...how) => hears(how)));
  assert.deepEqual(why, ["ended", "no connection to ws://node/: an insecure connection"]);
});
