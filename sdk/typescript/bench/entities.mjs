// The page that `react.mjs` measures: a component for each of 1,000 entities. Patches come as a
// node sends them, in `packed`.

import { createElement } from "react";
import { createRoot } from "react-dom/client";
import { Client } from "../dist/index.js";
import { CLIENT, decode, encode, SERVER } from "../dist/messages.js";
import { useRoom, useRoomState } from "../dist/react.js";

const bytes = (hex) => Uint8Array.from(hex.match(/../g), (byte) => parseInt(byte, 16));
const renders = { entities: 0, all: 0 };

/** The node's end of the client's connection. */
class Socket {
  static last;
  readyState = 1;
  constructor() {
    Socket.last = this;
    queueMicrotask(() => this.onopen());
  }
  says(message) {
    this.onmessage({ data: encode(SERVER, message).slice().buffer });
  }
  send(frame) {
    setTimeout(() => this.answers(frame));
  }
  answers(frame) {
    const { type, request, room_type } = decode(CLIENT, frame),
      { schema, viewer, snapshot } = globalThis.sent;
    if (type === "hello") {
      this.says({
        type: "welcome", protocol: 1, session: 1, heartbeat_ms: 30_000, max_message_bytes: 65_536,
      });
    }
    if (type === "schema") {
      this.says({
        type: "schema",
        request,
        room_type,
        schema: new TextEncoder().encode(JSON.stringify(schema)),
      });
    }
    if (type !== "join_or_create") return;
    const { fingerprint } = schema;
    this.says({
      type: "joined",
      request,
      room: 1,
      id: "r",
      room_type,
      player: viewer,
      epoch: 1,
      fingerprint,
    });
    this.says({ type: "snapshot", room: 1, epoch: 1, version: 1, body: bytes(snapshot) });
  }
  close() {}
}

const Entity = ({ room, id }) => {
  renders.entities++;
  const { x, y, hp } = useRoomState(room, ({ entities }) => entities[id]);
  return createElement("li", null, `${id}: ${x}, ${y}, ${hp}`);
};
const Entities = ({ room }) => {
  renders.all++;
  const ids = useRoomState(room, ({ entities }) => Object.keys(entities)) ?? [];
  return createElement("ul", null, ids.map((id) => createElement(Entity, { room, id, key: id })));
};

const client = new Client("ws://node", { WebSocket: Socket });
const App = () => {
  const { room } = useRoom(client, "entities");
  return room && createElement(Entities, { room });
};

const frames = globalThis.sent.patches.map((patch, index) => {
  const message = { type: "patch", room: 1, base: index + 1, advance: 1, body: bytes(patch) };
  return encode(SERVER, message).slice().buffer;
});

/** Shows all entities. */
export async function show() {
  createRoot(document.body).render(createElement(App));
  while (document.querySelectorAll("li").length < 1000)
    await new Promise((done) => setTimeout(done, 10));
}

/** Takes some of the patches, at 20 Hz. Returns how many renders there were. */
export function take(from, to) {
  Object.assign(renders, { entities: 0, all: 0 });
  return new Promise((done) => {
    const timer = setInterval(() => {
      if (from < to) return Socket.last.onmessage({ data: frames[from++] });
      clearInterval(timer);
      done(renders);
    }, 50);
  });
}

/** What the page shows. */
export const shown = () => [...document.querySelectorAll("li")].map((li) => li.textContent);
