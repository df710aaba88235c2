// What the compiler accepts and refuses of a room whose types were generated. A line that must not
// compile and does fails the test.

import { Client, type Room } from "playfield";
import { useRoom, useRoomState } from "playfield/react";
import { Client as RoomsOnly } from "playfield/rooms";
import type { Card, Duel } from "./duel.js";

const client = new Client("wss://game.example", { name: "Ann" });
const room: Room<Duel> = await client.joinOrCreate<Duel>("duel", { key: "a" });

// In Node.js before 22, sockets come from the package `ws`.
declare const { WebSocket }: typeof import("ws");
new Client("wss://game.example", { WebSocket });
new Client("wss://game.example", { WebSocket: globalThis.WebSocket });

const round: number = room.state.round;
const hand: readonly Card[] | undefined = room.state.hands[String(room.player)];
const left: number = await room.request(
  "Play",
  { cards: hand ?? [], face_down: false },
  { timeoutMs: 100 },
);
const sent: boolean = room.send("Yield");
const nothing: null = await room.request("Yield", null, { signal: AbortSignal.timeout(9) });
room.onEvent("Dealt", ({ to, count }) => console.log(to, count + round + left, sent, nothing));
room.onEntries<{ hp: number }>("players", { entered: (key, { hp }) => console.log(key, hp) });
const { phase } = room.state;
if (phase !== "Waiting" && "Turn" in phase) console.log(phase.Turn.left_ms);

// A status is another at a later look: one comparison does not decide the next.
if (room.status === "joined" && client.status === "connected") {
  await room.request("Yield");
  if (room.status === "lost" || client.status === "ended") console.log(room.reason.message);
}
if (room.status !== "back") {
  await room.request("Yield");
  if (room.status === "back") console.log("back");
}
room.onStatus((status) => status satisfies "joining" | "joined" | "lost" | "back" | "weak" | "left");
// @ts-expect-error There is no such status.
room.onStatus((status) => status === "joint");

// @ts-expect-error There is no such room type among these types.
await client.joinOrCreate<Duel>("dual");
// @ts-expect-error
await client.create<Duel>("dual", { key: "a" });
// @ts-expect-error
await client.join<Duel>("dual", "a");
// @ts-expect-error
export const Misspelled = () => useRoom<Duel>(client, "dual");
// Types without a name are of any room type.
await client.joinOrCreate<Omit<Duel, "type">>("dual");
// @ts-expect-error The state has no such field.
room.state.rounds;
// @ts-expect-error A state is never changed by a client.
room.state.round = 2;
// @ts-expect-error There is no such message.
room.send("Plai", { cards: [], face_down: true });
// @ts-expect-error A field is missing.
room.send("Play", { cards: [] });
// @ts-expect-error The payload is missing.
room.send("Play");
// @ts-expect-error There is no such event.
room.onEvent("Dealed", () => {});
// @ts-expect-error A reply is a number.
const text: string = await room.request("Play", { cards: [], face_down: true });
// @ts-expect-error What only its owner sees may not be there.
room.state.players["1"].notes.length;

// Without types everything goes.
const any = await client.join("duel", "a");
any.send("Anything", { what: any.state.ever });
room.onEvent("*", (payload, name) => name satisfies "Dealt");
// @ts-expect-error Rooms are joined by the client.
client.connection.join("duel");

// The client for rooms alone has rooms with the same types, and no channels or devices.
const roomsOnly = new RoomsOnly("wss://game.example", { name: "Ann" });
const its = await roomsOnly.create<Duel>("duel");
its.state.round satisfies number;
its.connection.ping();
// @ts-expect-error Channels are in the whole client.
its.connection.subscribe("chat");
// @ts-expect-error It speaks `packed` alone.
new RoomsOnly("wss://game.example", { format: "json" });
// @ts-expect-error There is no such message.
its.send("Plai");
export const ItsRound = (): number => {
  const { room } = useRoom<Duel>(roomsOnly, "duel");
  return useRoomState(room, ({ round }) => round) ?? useRoomState(its, ({ round }) => round) ?? 0;
};
client.connection.subscribe("chat");
room.connection.register("device");

export const Round = (): number => {
  const { room } = useRoom<Duel>(client, "duel");
  return useRoomState(room, ({ round }) => round) ?? 0;
};
export { text };
