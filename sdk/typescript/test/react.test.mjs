// The hooks: what renders, and when.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createElement, StrictMode } from "react";
import { act, create } from "react-test-renderer";
import { Client } from "../dist/index.js";
import { useRoom, useRoomState, useStatus } from "../dist/react.js";
import { PackedSocket, Socket } from "./node.mjs";
import { BEFORE, joined, shows, SNAPSHOT, snapshot, switches } from "./upgraded.mjs";

globalThis.IS_REACT_ACT_ENVIRONMENT = true;
const quiet = console.error;
console.error = (text, ...rest) => String(text).includes("deprecated") || quiet(text, ...rest);

const players = (hp) => Object.fromEntries(Array.from({ length: 5 }, (_, id) => [id, { hp }]));

test("a component renders only when the part that it selects has changed", async () => {
  const client = new Client("ws://node", { format: "json", WebSocket: Socket });
  const node = Socket.last.open(), renders = {};
  const rendered = (what) => (renders[what] = (renders[what] ?? 0) + 1);
  const Player = ({ room, id }) => {
    rendered(id);
    return useRoomState(room, (state) => state.players[id].hp);
  };
  const Ids = ({ room }) => {
    rendered("ids");
    const ids = useRoomState(room, (state) => Object.keys(state.players)) ?? [];
    return ids.map((id) => createElement(Player, { room, id, key: id }));
  };
  const App = () => {
    const { room, error } = useRoom(client, "lab");
    return [`${useStatus(client)} `, error ? error.code : createElement(Ids, { room, key: "ids" })];
  };
  let tree;
  await act(async () => (tree = create(createElement(App))));
  const text = () => [tree.toJSON()].flat().join("");
  await act(async () => node.joins({ round: 1, players: players(9) }));
  assert.equal(text(), "connected 99999");
  for (const name of Object.keys(renders)) renders[name] = 0;
  await act(async () => node.patches([["players", "3", "hp"], 4], [["round"], 2]));
  assert.equal(text(), "connected 99949");
  assert.deepEqual(renders, { ids: 0, 0: 0, 1: 0, 2: 0, 3: 1, 4: 0 });
  await act(async () => node.says({ type: "left", room: 1, code: "kicked", text: "bye" }));
  assert.equal(text(), "connected kicked");
  await act(async () => tree.unmount());
  client.close();
});

test("a component that goes leaves its room, also in strict mode", async () => {
  const client = new Client("ws://node", { format: "json", WebSocket: Socket });
  const node = Socket.last.open();
  const App = () => useRoom(client, "lab", { key: "a" }).room?.id ?? "none";
  let tree;
  await act(async () => (tree = create(createElement(StrictMode, null, createElement(App)))));
  await act(async () => node.joins({}));
  assert.equal(tree.toJSON(), "r1");
  await act(async () => tree.unmount());
  const left = () => node.sent.filter(({ type }) => type === "leave").length;
  while (!left()) await new Promise(setImmediate);
  assert.equal(left(), 1);
  client.close();
});

test("a component made again in one turn keeps its seat; one that moves leaves first", async () => {
  const client = new Client("ws://node", { format: "json", WebSocket: Socket });
  const node = Socket.last.open(), rooms = [];
  const Seat = ({ room: key }) => {
    const { room } = useRoom(client, "lab", { key });
    if (room && !rooms.includes(room)) rooms.push(room);
    return room?.id ?? "none";
  };
  let tree;
  const show = (key, room) => createElement(Seat, { key, room });
  await act(async () => (tree = create(show("first", "a"))));
  await act(async () => node.joins({}));
  await act(async () => tree.update(show("second", "a")));
  await new Promise(setImmediate);
  assert.equal(tree.toJSON(), "r1");
  assert.equal(rooms.length, 1);
  const types = () =>
    node.sent.map(({ type }) => type).filter((type) => /join|leave/.test(type));
  assert.deepEqual(types(), ["join_or_create"]);
  await act(async () => tree.update(show("second", "b")));
  assert.deepEqual(types(), ["join_or_create", "leave", "join_or_create"]);
  await act(async () => tree.unmount());
  client.close();
});

test("a component joins again when the server was restarted, and not before", async () => {
  const client = new Client("ws://node", { format: "json", WebSocket: Socket, backoffMs: 1 });
  const shown = [];
  const App = () => {
    const { room, error } = useRoom(client, "lab", { key: "a" });
    const round = useRoomState(room, (state) => state.round);
    shown.push(error?.code ?? round ?? "none");
    return shown.at(-1);
  };
  let tree;
  await act(async () => (tree = create(createElement(App))));
  const joins = ({ sent }) => sent.filter(({ type }) => type.startsWith("join")).length;
  for (const round of [1, 2]) {
    const node = Socket.last;
    await act(async () => node.open({ resume: "t", grace_ms: 60_000 }));
    await act(async () => node.joins({ round }));
    assert.equal(tree.toJSON(), `${round}`);
    const why = { code: "shutting_down", text: "the server is shutting down" };
    await act(async () => node.says({ type: "left", room: 1, ...why }));
    // What is there stays to be seen.
    assert.deepEqual([tree.toJSON(), joins(node)], [`${round}`, 1]);
    await act(async () => node.says({ type: "goodbye", ...why }));
    while (Socket.last === node) await new Promise(setImmediate);
  }
  assert.deepEqual([...new Set(shown)], ["none", 1, 2]);
  await act(async () => client.close());
  assert.equal(tree.toJSON(), "left");
  await act(async () => tree.unmount());
});

test("a component joins again after a new session, and shows no error meanwhile", async () => {
  const client = new Client("ws://node", { format: "json", WebSocket: Socket, backoffMs: 1 });
  const shown = [];
  const App = () => {
    const { room, error } = useRoom(client, "lab", { key: "a" });
    const round = useRoomState(room, (state) => state.round);
    shown.push(error?.code ?? round ?? "none");
    return shown.at(-1);
  };
  let tree;
  await act(async () => (tree = create(createElement(App))));
  // The first node keeps no session: the room ends with the connection. The second one keeps it,
  // but the third one does not know it.
  for (const [round, graceMs] of [[1, 0], [2, 60_000], [3, 0]]) {
    const node = Socket.last;
    await act(async () => node.open({ resume: graceMs ? "t" : "", grace_ms: graceMs }));
    await act(async () => node.joins({ round }));
    assert.equal(tree.toJSON(), `${round}`);
    assert.equal(node.sent.filter(({ type }) => type.startsWith("join")).length, 1);
    if (round === 3) break;
    await act(async () => node.onclose());
    assert.equal(tree.toJSON(), `${round}`);
    while (Socket.last === node) await new Promise(setImmediate);
  }
  assert.deepEqual([...new Set(shown)], ["none", 1, 2, 3]);
  // A connection that has ended is another matter.
  await act(async () => client.close());
  assert.equal(tree.toJSON(), "left");
  await act(async () => tree.unmount());
});

test("a component is in a room at another node, and comes back to it", async () => {
  const client = new Client("ws://node", { format: "json", WebSocket: Socket, backoffMs: 1 });
  const first = Socket.last.open(), shown = [];
  const App = () => {
    const { room, error } = useRoom(client, "lab");
    const round = useRoomState(room, (state) => state.round);
    const status = useStatus(room);
    shown.push(error?.code ?? `${status ?? "none"} ${round ?? ""}`);
    return shown.at(-1);
  };
  let tree;
  await act(async () => (tree = create(createElement(App))));
  for (const round of [1, 2]) {
    while (!first.request("join_or_create")) await new Promise(setImmediate);
    const { request } = first.sent.findLast(({ type }) => type.startsWith("join"));
    const addresses = [`ws://n${round}`];
    await act(async () =>
      first.says({ type: "redirect", request, addresses, reservation: "seat" }));
    const other = Socket.last.open();
    await act(async () => other.joins({ round }));
    assert.equal(tree.toJSON(), `joined ${round}`);
    if (round === 2) break;
    const asked = first.sent.length;
    await act(async () =>
      other.says({ type: "left", room: 1, code: "shutting_down", text: "it is" }));
    assert.equal(tree.toJSON(), "lost 1");
    while (first.sent.length === asked) await new Promise((done) => setTimeout(done));
  }
  assert.deepEqual([...new Set(shown)], ["none ", "joined 1", "lost 1", "joined 2"]);
  await act(async () => client.close());
  assert.equal(tree.toJSON(), "left");
  await act(async () => tree.unmount());
});

test("a component goes on when a server is upgraded, and shows what is new", async () => {
  const client = new Client("ws://node", { format: "packed", WebSocket: PackedSocket });
  const node = Socket.last.open({ resume: "AA==", grace_ms: 60_000 }), shown = [];
  const App = () => {
    const { room, error } = useRoom(client, "lab");
    const text = useRoomState(room, ({ score, title = "" }) => `${score}${title}`);
    shown.push(error?.code ?? text ?? "none");
    return shown.at(-1);
  };
  let tree;
  await act(async () => (tree = create(createElement(App))));
  await act(async () => {
    node.gives(BEFORE);
    joined(node, 1, BEFORE);
    shows(node, 1, 1, snapshot.packed);
  });
  assert.equal(tree.toJSON(), "10");
  await act(async () => switches(node));
  assert.equal(tree.toJSON(), "10");
  await act(async () => shows(node, 1, 2, SNAPSHOT));
  assert.equal(tree.toJSON(), "10a");
  assert.deepEqual([...new Set(shown)], ["none", "10", "10a"]);
  await act(async () => tree.unmount());
  client.close();
});
