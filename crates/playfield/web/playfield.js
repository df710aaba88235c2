// A Playfield connection over the browser's own WebSocket, in the format `json`. No build step, no dependency.

/** Applies a patch's operations to a copy of a room's state (docs/state.md). */
export function apply(state, ops) {
  for (const [path, ...rest] of ops) {
    let at = state;
    for (const step of path.slice(0, -1)) at = at[step];
    const last = path.at(-1);
    if (rest.length === 2) change(at, last, ...rest);
    else if (rest.length === 1) set(at, last, rest[0]);
    else if (Array.isArray(at)) at.splice(last, 1);
    else delete at[last];
  }
}

function change(at, last, value, word) {
  if (word === "insert") at.splice(last, 0, value);
  else if (word === "move") at.splice(value, 0, ...at.splice(last, 1));
  else if (word === "order") {
    const list = at[last], old = list.slice();
    value.forEach((from, to) => (list[to] = old[from]));
  } else throw new Error(`a patch has the operation "${word}", which this client doesn't know`);
}

// An assignment to `__proto__` would not make a member of that name, and a map's keys may be players' words.
const set = (at, name, value) =>
  Object.defineProperty(at, name, { value, writable: true, enumerable: true, configurable: true });

/**
 * Connects, joins a room of the given type (or makes one), and keeps `room.state` in step.
 *
 * `on.change(room)` is called after each patch or snapshot, `on.event(name, payload)` for each event, `on.status(text)` when
 * the connection comes, goes, or is refused.
 */
export function join(roomType, name, on = {}) {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/`);
  const waiting = new Map();
  const room = { state: null, player: null, version: 0, number: null, bytes: 0, patches: 0, left: false };
  let requests = 0;

  const put = (message) => {
    const open = socket.readyState === WebSocket.OPEN;
    if (open) socket.send(JSON.stringify(message));
    return open;
  };
  const abandon = (why) => {
    for (const { reject } of waiting.values()) reject(new Error(why));
    waiting.clear();
  };
  /** Whether it was sent: not before the room is joined, nor after the connection is gone. */
  room.send = (message, payload) =>
    room.number !== null && put({ type: "send", room: room.number, message, payload });
  /** A promise of the reply. It is rejected with the server's reason, or because there is no connection. */
  room.request = (message, payload) =>
    new Promise((resolve, reject) => {
      if (room.number === null) return reject(new Error("not in the room yet"));
      const request = ++requests;
      if (!put({ type: "request", room: room.number, request, message, payload })) return reject(new Error("not connected"));
      waiting.set(request, { resolve, reject });
    });
  room.close = () => socket.close();

  const handlers = {
    welcome: () => put({ type: "join_or_create", request: ++requests, room_type: roomType }),
    joined: (message) => Object.assign(room, { number: message.room, player: message.player, id: message.id }),
    snapshot: (message) => {
      Object.assign(room, { state: message.state, version: message.version });
      on.change?.(room);
    },
    patch: (message) => {
      if (room.version === null) return; // a snapshot is on its way
      try {
        if (message.base !== room.version) throw new Error(`a patch of version ${message.base} came to one of ${room.version}`);
        apply(room.state, message.ops);
      } catch (error) {
        // The copy may be half changed: it is of no use before the snapshot.
        room.version = null;
        console.warn("playfield: a snapshot is asked for:", error);
        return put({ type: "resync", room: room.number });
      }
      room.version = message.version;
      room.patches += 1;
      on.change?.(room);
    },
    event: (message) => on.event?.(message.message, message.payload),
    reply: (message) => waiting.get(message.request)?.resolve(message.payload),
    error: (message) => {
      waiting.get(message.request)?.reject(new Error(message.text));
      on.status?.(message.text);
    },
    ping: (message) => put({ type: "pong", nonce: message.nonce }),
    left: (message) => {
      room.number = null;
      abandon(message.text);
      on.status?.(message.text);
    },
    goodbye: (message) => {
      room.left = true;
      on.status?.(message.text);
    },
  };
  socket.onopen = () => {
    on.status?.("connected");
    put({ type: "hello", protocol: 1, name });
  };
  socket.onmessage = ({ data }) => {
    room.bytes += data.length;
    const message = JSON.parse(data);
    handlers[message.type]?.(message);
    if (message.request !== undefined) waiting.delete(message.request);
  };
  socket.onclose = () => {
    room.number = null;
    abandon("disconnected");
    if (!room.left) on.status?.("disconnected");
  };
  return room;
}
