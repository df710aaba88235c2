// The file that nodes serve, which loads its reader of `packed` while a node is upgraded.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PackedSocket, Socket } from "../node.mjs";
import { AFTER, BEFORE, joined, shows, SNAPSHOT, snapshot, switches } from "../upgraded.mjs";
import { Client } from "../../../../crates/web/dist/client/playfield.js";

test("of two schemas that come before their reader, the later one counts", async (t) => {
  const client = new Client("ws://node", { format: "packed", WebSocket: PackedSocket });
  t.after(() => client.close());
  const node = Socket.last.open(), how = { timeoutMs: 20_000 };
  const joining = client.joinOrCreate("lab", how);
  node.gives(BEFORE);
  joined(node, 1, BEFORE);
  shows(node, 1, 1, snapshot.packed);
  switches(node);
  shows(node, 1, 5, SNAPSHOT);
  const room = await joining;
  assert.deepEqual(room.state, { ...snapshot.state, wishes: {}, title: "a" });
  assert.deepEqual([room.version, client.status], [5, "connected"]);
});
