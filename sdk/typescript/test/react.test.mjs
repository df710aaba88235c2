// The hooks: what renders, and when.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createElement, StrictMode } from "react";
import { act, create } from "react-test-renderer";
import { Client } from "../dist/index.js";
import { useRoom, useRoomState, useStatus } from "../dist/react.js";
import { Socket } from "./node.mjs";

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
  assert.equal(node.sent.filter(({ type }) => type === "leave").length, 1);
  client.close();
});
