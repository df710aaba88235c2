// Every method that waits for the node ends: by a time limit, by a signal, or with the connection.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, PlayfieldError } from "../dist/index.js";
import { Socket } from "./node.mjs";

/** What all methods that return a promise are called with. */
const WAITING = {
  client: {
    join: (client, how) => client.join("lab", "key", how),
    joinById: (client, how) => client.joinById("r9", how),
    joinOrCreate: (client, how) => client.joinOrCreate("lab", how),
    create: (client, how) => client.create("lab", how),
    list: (client, how) => client.list(how),
  },
  connection: {
    schema: (connection, how) => connection.schema("lab", how),
    list: (connection, how) => connection.list(how),
    publish: (connection, how) => connection.publish("talk", 1, how),
    members: (connection, how) => connection.members("talk", how),
    history: (connection, how) => connection.history("talk", how),
  },
  room: {
    request: (room, how) => room.request("Draw", null, how),
    leave: (room, how) => room.leave(how),
  },
  device: { report: (device, how) => device.report(1, how) },
};

/** The other methods: they return at once. */
const AT_ONCE = {
  client: ["onStatus", "close"],
  connection: ["join", "subscribe", "publishUnconfirmed", "register", "onStatus", "ping", "close"],
  room: [
    "send", "onState", "onChange", "onEntries", "onEvent", "onStatus",
    "onRefused", "onMissed", "onOutOfStep", "onLeft", "close",
  ],
  device: ["reportUnconfirmed"],
};

async function start(t, options = {}) {
  const client = new Client("ws://node", { format: "json", WebSocket: Socket, ...options });
  t.after(() => client.close());
  const node = Socket.last.open(), { connection } = client;
  const joining = client.joinOrCreate("lab");
  node.joins({});
  return { client, connection, node, room: await joining, device: connection.register("d") };
}

const each = async (t, work) => {
  for (const [owner, methods] of Object.entries(WAITING)) {
    for (const [name, method] of Object.entries(methods)) {
      const world = await start(t), before = world.node.sent.length;
      await work(`${owner}.${name}`, (how) => method(world[owner], how), { ...world, before });
    }
  }
};

test("the lists here have all methods", async (t) => {
  const world = await start(t);
  const methods = (object) => {
    const names = new Set(Object.keys(object));
    let at = Object.getPrototypeOf(object);
    for (; at !== Object.prototype; at = Object.getPrototypeOf(at))
      for (const name of Object.getOwnPropertyNames(at)) names.add(name);
    const isMethod = (name) => name !== "constructor" && typeof object[name] === "function";
    return [...names].filter(isMethod).sort();
  };
  for (const owner of Object.keys(WAITING)) {
    const known = [...Object.keys(WAITING[owner]), ...AT_ONCE[owner]].sort();
    assert.deepEqual(methods(world[owner]).filter((name) => name !== "enter"), known, owner);
  }
});

test("a time limit ends each with the code \"timeout\"", (t) =>
  each(t, async (name, call) => {
    await assert.rejects(call({ timeoutMs: 1 }), { name: "PlayfieldError", code: "timeout" }, name);
  }));

test("a limit of any length is a limit, and no other value is", (t) =>
  each(t, async (name, call, { client }) => {
    for (const timeoutMs of [-1, NaN]) {
      await assert.rejects(call({ timeoutMs }), TypeError, `${name}, ${timeoutMs}`);
    }
    let error = null;
    call({ timeoutMs: 2 ** 40 }).catch((caught) => (error = caught));
    await new Promise((done) => setTimeout(done, 5));
    assert.equal(error, null, name);
    client.close();
  }));

test("a signal ends each with its reason, and one that was aborted sends nothing", (t) =>
  each(t, async (name, call, { node, before }) => {
    const early = new AbortController(), late = new AbortController(), why = new Error("enough");
    early.abort(why);
    await assert.rejects(call({ signal: early.signal }), (error) => error === why, name);
    assert.equal(node.sent.length, before, name);
    const waiting = call({ signal: late.signal });
    await Promise.resolve();
    late.abort(why);
    await assert.rejects(waiting, (error) => error === why, name);
  }));

test("the end of the connection ends each, and each fails after it", (t) =>
  each(t, async (name, call, { client }) => {
    const isLeave = name === "room.leave",
      how = () => ({ timeoutMs: 60_000, signal: new AbortController().signal });
    const waiting = call(how());
    await Promise.resolve();
    client.close();
    // Whoever leaves has left by then.
    if (isLeave) return assert.equal(await waiting, undefined);
    await assert.rejects(waiting, PlayfieldError, name);
    await assert.rejects(call(how()), PlayfieldError, name);
  }));

test("one who no longer waits to leave leaves all the same", async (t) => {
  const { node, room } = await start(t);
  await assert.rejects(room.leave({ timeoutMs: 1 }), { code: "timeout" });
  assert.equal(room.left, false);
  node.says({ type: "left", request: node.request("leave"), room: 1, code: "left", text: "" });
  assert.equal(room.left, true);
});
