// What a patch does to a browser's copy. Run by `make test` where Node is there.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const source = readFileSync(new URL("./playfield.js", import.meta.url), "utf8");
const { apply, join } = await import(`data:text/javascript,${encodeURIComponent(source)}`);

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

const vectors = new URL("../../../conformance/vectors/state/", import.meta.url);

test("what a node writes leads to the state that its player sees", () => {
  for (const name of readdirSync(vectors).filter((name) => name.endsWith(".json"))) {
    const story = JSON.parse(readFileSync(new URL(name, vectors), "utf8"));
    for (const { viewer, steps } of story.viewers) {
      let state;
      for (const step of steps.filter((step) => step.kind !== "refused")) {
        if (step.kind === "snapshot") state = structuredClone(step.json);
        else apply(state, step.json);
        assert.deepEqual(state, step.state, `${name}, player ${viewer}: ${step.what}`);
      }
    }
  }
});

/** A WebSocket that the test speaks for. */
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
  ends() {
    this.readyState = 3;
    this.onclose();
  }
}

function connected() {
  Object.assign(globalThis, { WebSocket: Socket, location: { protocol: "http:", host: "here" } });
  const room = join("table", "Ann");
  const socket = Socket.last;
  socket.open();
  socket.says({ type: "welcome" });
  return { room, socket };
}

test("a request before the room is joined is refused, and nothing is sent", async () => {
  const { room, socket } = connected();
  await assert.rejects(room.request("Draw"), /not in the room yet/);
  assert.equal(room.send("Wave"), false);
  assert.deepEqual(socket.sent.map(({ type }) => type), ["hello", "join_or_create"]);
});

test("what is unanswered when the connection or the room ends is refused", async () => {
  const { room, socket } = connected();
  const joined = { type: "joined", request: 1, room: 1, player: 7, id: "a" };
  socket.says(joined);
  const one = room.request("Draw");
  socket.says({ type: "left", room: 1, code: "kicked", text: "out with you" });
  await assert.rejects(one, /out with you/);
  socket.says({ ...joined, room: 2 });
  const two = room.request("Draw");
  socket.ends();
  await assert.rejects(two, /disconnected/);
  await assert.rejects(room.request("Draw"), /not in the room yet|not connected/);
});
