// The client for rooms alone: what it does over a connection in `packed`, and what it leaves out.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PlayfieldError } from "../dist/error.js";
import { Client } from "../dist/rooms.js";
import { PackedSocket } from "./node.mjs";
import { bytes, jsonForm, stories } from "./vectors.mjs";

function start(t) {
  const client = new Client("ws://node", { name: "Ann", WebSocket: PackedSocket });
  t.after(() => client.close());
  return { client, node: PackedSocket.last.open() };
}

for (const { name, schema, viewers: [{ viewer, steps }] } of stories()) {
  test(`${name}: it joins, and its state is what the player sees`, async (t) => {
    const { client, node } = start(t), joining = client.joinOrCreate("lab");
    const request = node.request("join_or_create"), { fingerprint } = schema;
    node.gives(schema);
    node.says({
      type: "joined", request, room: 1, id: "r1", room_type: "lab", player: viewer, epoch: 3,
      fingerprint,
    });
    let room, version = 0;
    for (const { kind, packed, state, digests, what } of steps) {
      const body = bytes(packed ?? ""), digest = BigInt(`0x${digests?.packed ?? 0}`);
      if (kind === "snapshot")
        node.says({ type: "snapshot", room: 1, epoch: 3, version: ++version, body });
      else if (kind === "patch")
        node.says({ type: "patch", room: 1, base: version++, advance: 1, body });
      else continue;
      room ??= await joining;
      node.says({ type: "check", room: 1, version, digest });
      assert.deepEqual(jsonForm(schema.state, room.state), state, what);
    }
    assert.ok(!node.sent.some(({ type }) => type === "resync"), "the digests are the node's");
  });
}

test("it says hello, lists rooms and is refused a join, as the whole client", async (t) => {
  const { client, node } = start(t);
  assert.equal(node.sent[0].type, "hello");
  assert.equal(client.status, "connected");
  const listing = client.list();
  node.says({ type: "listed", request: node.request("list"), rooms: [] });
  assert.deepEqual(await listing, []);
  const joining = client.join("lab", "key");
  const request = node.request("join_by_key");
  node.says({ type: "error", request, code: "room_not_found", text: "no such room" });
  await assert.rejects(joining, (error) =>
    error instanceof PlayfieldError && error.code === "room_not_found");
});

test("it has no channels and no devices, and ends if a node speaks of them", async (t) => {
  const { client, node } = start(t);
  for (const name of ["subscribe", "publish", "history", "register", "schema"])
    assert.equal(client.connection[name], undefined, name);
  node.hears(bytes("5101010100"));
  assert.equal(client.status, "lost");
});

test("a join that needs a schema fails at once where too much waits to be sent", async (t) => {
  const client = new Client("ws://node", { WebSocket: PackedSocket });
  t.after(() => client.close());
  const waits = client.list({ filter: { all: "x".repeat(2 ** 20) } });
  waits.catch(() => {});
  await assert.rejects(client.create("lab", { options: { pace: 1 } }), { code: "limit" });
  await assert.rejects(client.create("lab"), { code: "limit" });
  client.close();
  await assert.rejects(client.list(), { code: "connection_lost" });
});
