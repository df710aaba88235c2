// Channels and devices.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../dist/index.js";
import { PackedSocket, Socket } from "./node.mjs";

test("how many publications a restart of the node lost is not known", async (t) => {
  const client = new Client("ws://node", { format: "json", WebSocket: Socket, backoffMs: 1 });
  t.after(() => client.close());
  const first = Socket.last.open(), heard = [];
  client.connection.subscribe("talk", { subscribed: (how) => heard.push(how) });
  const begins = (node, epoch, offset) => node.says({
    type: "subscribed", request: node.request("subscribe"), channel: 1, epoch, offset, members: 1,
  });
  begins(first, 9, 5);
  first.onclose();
  while (Socket.last === first) await new Promise(setImmediate);
  begins(Socket.last.open(), 10, 0);
  assert.deepEqual(heard, [
    { recovered: true, missed: 0, members: 1 }, { recovered: false, missed: null, members: 1 },
  ]);
});

test("the payloads of a fleet of bytes are base64 here", async (t) => {
  const client = new Client("ws://node", { format: "packed", WebSocket: PackedSocket });
  t.after(() => client.close());
  const node = Socket.last.open(), commands = [], payload = Uint8Array.of(0, 255);
  const device = client.connection.register("meter", {
    command: (payload) => (commands.push(payload), payload),
  });
  node.says({ type: "registered", request: node.request("register"), is_new: true, bytes: true });
  await device.registered;
  const reported = device.report("AP8=");
  assert.deepEqual([...node.sent.at(-1).payload], [...payload]);
  node.says({ type: "reply", request: node.request("report"), payload });
  assert.equal(await reported, "AP8=");
  node.says({ type: "command", command: 5, payload });
  while (node.sent.at(-1).type !== "answer") await new Promise(setImmediate);
  assert.deepEqual([commands, [...node.sent.at(-1).payload]], [["AP8="], [...payload]]);
});
