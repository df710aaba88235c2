// A Colyseus server with the rooms of `playfield-bench bench rooms`. Its arguments are the players of
// a room and the rate in Hz. It prints its port, and ends when standard input is closed.

import { Room, Server } from "@colyseus/core";
import { WebSocketTransport } from "@colyseus/ws-transport";
import { empty, seat, step } from "./table.mjs";

const [players, hz] = process.argv.slice(2).map(Number);
const SHARE = 0.2;

class Bench extends Room {
  onCreate() {
    this.maxClients = players;
    this.autoDispose = false;
    this.state = empty();
    this.ids = [];
    // Patches leave with the step that made them. With a timer of their own, which is the default,
    // some would have two steps, and some none.
    this.patchRate = null;
    this.setTimestep(() => this.tick(), 1000 / hz);
  }

  onJoin(client) {
    client.view = seat(this.state, client.sessionId, this.ids.length);
    this.ids.push(client.sessionId);
  }

  tick() {
    // Nothing moves until all have joined, so that each round is known.
    if (this.ids.length === players) step(this.state, this.ids, true, SHARE);
    this.broadcastPatch();
  }
}

const transport = new WebSocketTransport({});
const server = new Server({ transport, greet: false });
server.define("bench", Bench);
await server.listen(0, "127.0.0.1");
console.log(transport.server.address().port);
process.stdin.on("end", () => process.exit()).resume();
