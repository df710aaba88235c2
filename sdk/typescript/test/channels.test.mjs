// Channels.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../dist/index.js";
import { Socket } from "./node.mjs";

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
