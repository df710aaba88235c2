// What no node may send, all vectors of it, to a whole client: it says why, and nothing hangs.
// Node's and the browser's runner fail a test with a rejection that nothing handles.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, PlayfieldError } from "../dist/index.js";
import { PackedSocket, schemaOf, Socket } from "./node.mjs";
import { bytes, protocol, stories } from "./vectors.mjs";

const SCHEMA = stories()[0].schema;

/** A client in a room, for which everything that can wait does. */
function start(format, story) {
  const ended = [], reports = [];
  const on = { ended: (code, text) => ended.push([code, text]) };
  const WebSocket = format === "json" ? Socket : PackedSocket;
  const client = new Client("ws://node", { format, on, reconnectTimeoutMs: 0, WebSocket });
  const { connection } = client, node = Socket.last.open();
  const room = connection.join("lab");
  room.onOutOfStep((error) => reports.push(error));
  const { schema = SCHEMA, viewer = 1, first } = story ?? {};
  const { fingerprint } = schema,
    { request } = node.sent.findLast(({ type }) => type === "join_or_create");
  if (format === "packed") node.gives(schema);
  node.says({
    type: "joined",
    request,
    room: 1,
    player: viewer,
    id: "r1",
    room_type: "lab",
    epoch: 3,
    fingerprint,
    tick_hz: 0,
    sync_hz: 0,
    silence_ms: 0,
    grace_ms: 0,
  });
  const snapshot = { type: "snapshot", room: 1, epoch: 3, version: first?.version ?? 1 };
  if (format === "json") node.says({ ...snapshot, ops: [[[], {}]] });
  else if (first) node.says({ ...snapshot, body: bytes(first.packed) });
  const others = () => [
    connection.list(),
    connection.members("talk"),
    connection.history("talk"),
    connection.publish("talk", 1),
    connection.schema("other"),
    client.joinOrCreate("lab"),
  ];
  return { client, node, room, ended, reports, others };
}

/** After a message that is invalid: either the client has ended, or it asks for a snapshot. */
async function endsWell(format, send, why) {
  const { client, node, ended, reports, others } = start(format);
  const waiting = others();
  const results = Promise.allSettled(waiting);
  send(node);
  if (client.status !== "ended") {
    assert.ok(reports.length === 1 && node.sent.at(-1).type === "resync", `${why}: it was taken`);
    client.close();
  }
  assert.equal(ended.length, 1, why);
  for (const { status, reason } of await results) {
    assert.ok(status === "rejected" && reason instanceof PlayfieldError, `${why}: ${reason}`);
  }
}

for (const format of ["json", "packed"]) {
  test(`invalid messages in ${format} end the client, and all that waits fails`, async () => {
    const wrong = protocol("server").refused.filter((vector) => vector.format === format);
    assert.ok(wrong.length >= 5, `${wrong.length} vectors`);
    for (const { bytes: text, why } of wrong) {
      const send = (node) =>
        node.onmessage({ data: format === "json" ? text : bytes(text).buffer });
      await endsWell(format, send, why);
    }
  });

  test(`what is no message at all ends a client in ${format}`, async () => {
    const other = format === "json" ? bytes("ff").buffer : "{}";
    const texts = ["", "[", "7", "null", '{"type":"toString"}'];
    for (const data of [other, ...texts, new ArrayBuffer(0), undefined, 7]) {
      await endsWell(format, (node) => node.onmessage({ data }), String(data));
    }
  });

  test(`cut messages in ${format} end the client, or wait for what they name`, () => {
    for (const { json, packed, refused_cuts: cuts } of protocol("server").messages) {
      const whole = format === "json" ? JSON.stringify(json) : bytes(packed);
      const places = format === "json" ? whole.length : cuts;
      for (const cut of typeof places === "number" ? Array(places).keys() : places) {
        const { client, node } = start(format), data = whole.slice(0, cut);
        node.onmessage({ data: format === "json" ? data : data.buffer });
        assert.equal(client.status, "ended", `${json.type}, cut at ${cut}`);
      }
    }
  });
}

for (const { name, schema, viewers } of stories()) {
  test(`${name}: a client asks for a snapshot after a body that does not fit`, () => {
    for (const { viewer, steps } of viewers) {
      steps.forEach(({ refused = [] }, place) => {
        for (const { packed, why } of refused) {
          const [first, ...later] = steps.slice(0, place).filter(({ kind }) => kind !== "refused");
          const { client, node, room, reports } = start("packed", { schema, viewer, first });
          for (const { kind, version, base = 0, packed } of later) {
            const body = bytes(packed),
              message = { type: kind, room: 1, epoch: 3, version, base, body };
            node.says({ ...message, advance: version - base });
          }
          assert.deepEqual(reports, [], `${why}: before`);
          const before = room.state, base = room.version;
          node.says({ type: "patch", room: 1, base, advance: 1, body: bytes(packed) });
          assert.deepEqual(
            reports.map(({ name, reason }) => [name, reason]),
            [["OutOfStep", "patch"]],
            why,
          );
          assert.deepEqual(node.sent.at(-1), { type: "resync", room: 1 }, why);
          assert.ok(
            room.version === null && room.state === before,
            `${why}: the last right state stays`,
          );
          node.says({
            type: "snapshot",
            room: 1,
            epoch: 3,
            version: base + 1,
            body: bytes(first.packed),
          });
          assert.equal(room.version, base + 1, why);
          client.close();
        }
      });
    }
  });
}

const struct = (...names) => ({ struct: "S", fields: names.map((name) => ({ name, type: "u8" })) });
const turns = async () => {
  for (let turn = 0; turn < 8; turn++) await null;
};

test("a command ends no process: without a device, without a handler, unreadable", async () => {
  for (const format of ["json", "packed"]) {
    const WebSocket = format === "json" ? Socket : PackedSocket;
    const client = new Client("ws://node", { format, WebSocket }), node = Socket.last.open();
    const payload = format === "json" ? 1 : new TextEncoder().encode("1");
    node.says({ type: "command", payload });
    node.says({ type: "command", command: 3, payload });
    const device = client.connection.register("d1");
    // Both arrive in one read, before anything that waits for the answer runs.
    node.says({ type: "registered", request: node.request("register"), is_new: true });
    node.says({ type: "command", command: 4, payload });
    await device.registered;
    await turns();
    const answers = node.sent.filter(({ type }) => type === "answer");
    assert.deepEqual(answers.map(({ command, error }) => [command, error]), [
      [3, "the device takes no commands"],
      [4, "the device takes no commands"],
    ]);
    assert.equal(client.status, "connected");
    client.close();
  }
  const ended = [], on = { ended: (code) => ended.push(code) };
  const client = new Client("ws://node", { format: "packed", on, WebSocket: PackedSocket });
  Socket.last.open().says({ type: "command", payload: bytes("ff") });
  await turns();
  assert.deepEqual([client.status, ended], ["ended", ["bad_message"]]);
});

test("after a session ends, options are written by the schema of the next node", async () => {
  const one = schemaOf(struct("v"), struct("bots", "lives"));
  const two = schemaOf(struct("v"), struct("lives", "bots"));
  const WebSocket = PackedSocket;
  const client = new Client("ws://node", { format: "packed", backoffMs: 0, WebSocket });
  const { connection } = client;
  const how = { create: true, options: { bots: 1, lives: 9 } };
  const created = (node) => [...node.sent.find(({ type }) => type === "create").options];
  let node = Socket.last.open({ resume: "AA==", grace_ms: 60_000 });
  connection.join("lab", how);
  node.gives(one);
  assert.deepEqual(created(node), [1, 9]);
  const lost = new Promise((resolve) => client.onStatus(resolve));
  node.says({ type: "goodbye", code: "shutting_down", text: "restart" });
  await lost;
  const before = node;
  while (Socket.last === before) await new Promise((done) => setTimeout(done));
  node = Socket.last.open({ resume: "AQ==", grace_ms: 60_000 });
  connection.join("lab", how);
  node.gives(two);
  assert.deepEqual(created(node), [9, 1]);
  client.close();
});

test("a path that the schema does not have is refused as it is given", (t) => {
  const { client, room } = start("packed", { schema: schemaOf(struct("hp", "x")) });
  t.after(() => client.close());
  for (const path of ["hq", ["hq"]])
    assert.throws(() => room.onChange(path, () => {}), /path "hq": .* it has hp, x$/);
  assert.throws(() => room.onEntries("hq", {}), /path "hq.\*": .* it has hp, x$/);
  room.onChange("hp", () => {});
});

test("a schema that is not the room's ends the client", async () => {
  const { client, node, room, ended } = start("packed", { schema: schemaOf(struct("a", "b")) });
  assert.equal(client.status, "connected");
  const other = connectionWith(client, node, schemaOf(struct("a")).fingerprint);
  assert.equal(other.left && room.left, true);
  assert.deepEqual(ended.map(([code]) => code), ["bad_message"]);
});

/** Joins another room, whose schema the node confuses with one of another fingerprint. */
function connectionWith(client, node, fingerprint) {
  const room = client.connection.join("other");
  const { request } = node.sent.findLast(({ type }) => type === "join_or_create");
  node.says({
    type: "joined", request, room: 2, player: 1, id: "r2", room_type: "other", epoch: 3,
    fingerprint, tick_hz: 0, sync_hz: 0, silence_ms: 0, grace_ms: 0,
  });
  node.gives(schemaOf(struct("b")));
  return room;
}

test("times that are no times, and longer ones than timers take, do no harm", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  for (const wait of ["x", -1e12, null, {}]) {
    const ended = [], on = { ended: (code) => ended.push(code) };
    const how = { format: "json", on, reconnectTimeoutMs: 500, WebSocket: Socket };
    const client = new Client("ws://node", how);
    for (let attempt = 0; attempt < 50 && client.status !== "ended"; attempt++) {
      const node = Socket.last;
      if (node.onopen) {
        node.onopen();
        node.says({ type: "error", code: "limit", text: "wait", retry_after_ms: wait });
        node.says({ type: "goodbye", code: "busy", text: "wait" });
      }
      t.mock.timers.tick(200);
    }
    assert.deepEqual(ended, ["busy"], JSON.stringify(wait));
  }
  const { client, node } = start("packed", { schema: SCHEMA });
  client.joinOrCreate("other", { options: { a: 1 } }).catch(() => {});
  const asked = () => node.sent.filter(({ type }) => type === "schema").length, before = asked();
  node.says({
    type: "error", request: node.request("schema"), code: "limit", text: "wait",
    retry_after_ms: 2 ** 33,
  });
  t.mock.timers.tick(60_000);
  assert.equal(asked(), before);
  client.close();
});

test("after a room was left in a callback, no other is called for the same patch", () => {
  const { client, node, room } = start("json"), calls = [];
  const stop = room.onChange("*", () => (stop(), calls.push("once")));
  room.onState(() => (calls.push("state"), room.close()));
  room.onState(() => calls.push("later"));
  room.onLeft(() => calls.push("left"));
  node.says({ type: "patch", room: 1, base: 1, version: 2, ops: [[["a"], 1], [["b"], 2]] });
  assert.deepEqual(calls, ["state", "left"]);
  client.close();

  const other = start("json"), changes = [];
  const end = other.room.onChange("*", ({ path }) => (end(), changes.push(path[0])));
  other.node.says({ type: "patch", room: 1, base: 1, version: 2, ops: [[["a"], 1], [["b"], 2]] });
  assert.deepEqual(changes, ["a"]);
  other.client.close();
});

test("a schema with a field that objects can't hold is refused", () => {
  const { client, room, ended } = start("packed", { schema: schemaOf(struct("__proto__")) });
  assert.ok(room.left && ended.length === 0);
  client.close();
});
