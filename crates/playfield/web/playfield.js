// A Playfield connection over the browser's own WebSocket, in the format `json`. No build step, no dependency.

/**
 * How often in a row something may come for the copy that it can't use, without a snapshot or a patch that it can. Past it the
 * connection is closed: a node that always sends the same wrong thing is not asked for ever.
 */
export const UNUSABLE_IN_A_ROW_MAX = 16;

/** Messages that are about one room. */
const OF_A_ROOM = ["joined", "snapshot", "patch", "check", "event", "left"];

/** The most steps of a path, as for the other clients. */
const PATH_STEPS_MAX = 128;

/**
 * How many elements one patch may move to make or fill a gap in arrays: what some tenths of a second are enough for. A node sends an
 * array whole long before.
 */
const MOVED_MAX = 2 ** 30;

/**
 * Why a copy fell out of step. `reason` is "base" or "patch" (a patch begins elsewhere or leads nowhere, or can't be applied), "epoch",
 * "older" or "snapshot" (a snapshot is of another room, of the past, or none), "message" (one that can't be read), "digest" (the copy is not what
 * the node has for it).
 */
export class OutOfStep extends Error {
  constructor(reason, text) {
    super(text);
    this.reason = reason;
  }
}

/**
 * Applies a patch's operations to a copy of a room's state (docs/state.md). One that doesn't fit the copy throws, and leaves it half
 * changed: throw it away then.
 */
export function apply(state, ops) {
  if (!Array.isArray(ops)) throw new Error("a patch is no list of operations");
  let moved = 0;
  for (const op of ops) {
    if (!Array.isArray(op)) throw new Error(`a patch has the operation ${JSON.stringify(op)}, which is no list`);
    const [path, ...rest] = op;
    if (!Array.isArray(path) || path.length < 1 || path.length > PATH_STEPS_MAX) {
      throw new Error(`a patch has an operation without a path of 1 to ${PATH_STEPS_MAX} steps`);
    }
    let at = state;
    for (const step of path.slice(0, -1)) at = within(at, step);
    const last = path.at(-1);
    if (Array.isArray(at) && rest.length !== 1 && (moved += at.length) > MOVED_MAX) {
      throw new Error(`a patch moves more than ${MOVED_MAX} elements of arrays`);
    }
    if (rest.length === 2) change(at, last, ...rest);
    else if (rest.length === 1) set(at, last, rest[0]);
    else if (rest.length > 2) throw new Error("a patch has an operation of more than three parts");
    else if (Array.isArray(at)) at.splice(index(last, at.length), 1);
    else delete object(at, last)[last];
  }
}

/** The copy that a snapshot's operations lead to: the first sets the whole. */
export function whole(ops) {
  const [first, ...own] = Array.isArray(ops) ? ops : [];
  const state = Array.isArray(first) && first.length === 2 && Array.isArray(first[0]) && first[0].length === 0 ? first[1] : null;
  if (typeof state !== "object" || state === null || Array.isArray(state)) throw new Error("a snapshot holds no state");
  apply(state, own);
  return state;
}

const float = new Float64Array(1);
const bits = new Uint32Array(float.buffer);
const LOW = new Uint8Array(Uint32Array.of(1).buffer)[0] ? 0 : 1; // which half of a float's bits is the lower one

const mix = (value) => {
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return value ^ (value >>> 16);
};
const digestOfText = (seed, text) => {
  for (let place = 0; place < text.length; place++) seed = Math.imul(seed ^ text.charCodeAt(place), 0x01000193);
  return mix(seed);
};
const digestOfNumber = (number) => {
  float[0] = number + 0; // of the two zeros the one
  return mix(mix(0x6e756d62 ^ bits[LOW]) ^ bits[1 - LOW]);
};
const inside = (place, step) => (mix(place ^ step) + place) | 0;

/**
 * The digest of a copy (docs/state.md), to be held against that of a `check`. Each value in it counts by itself, by what it is and where
 * it stands.
 */
export function digest(value, place = 0x726f6f74) {
  let sum = 0, what;
  if (value === null) what = 0x6e756c6c;
  else if (typeof value === "number") what = digestOfNumber(value);
  else if (typeof value === "string") what = digestOfText(0x74657874, value);
  else if (typeof value === "boolean") what = value ? 0x74727565 : 0x66616c73;
  else if (Array.isArray(value)) {
    value.forEach((element, index) => (sum = (sum + digest(element, inside(place, mix(0x656c656d ^ index)))) | 0));
    what = mix(0x61727261 ^ value.length);
  } else {
    for (const name of Object.keys(value)) sum = (sum + digest(value[name], inside(place, digestOfText(0x6d656d62, name)))) | 0;
    what = 0x6f626a65;
  }
  return (sum + mix(place ^ what)) >>> 0;
}

function change(at, last, value, word) {
  if (word === "order") {
    const list = within(at, last);
    if (!Array.isArray(list) || !Array.isArray(value) || value.length !== list.length || new Set(value).size !== list.length) {
      throw new Error(`a patch has an order that isn't one of what stands at ${JSON.stringify(last)}`);
    }
    const old = list.slice();
    value.forEach((from, to) => (list[to] = old[index(from, old.length)]));
  } else if (!Array.isArray(at)) throw new Error(`a patch has the operation "${word}" for what is no array`);
  else if (word === "insert") at.splice(index(last, at.length + 1), 0, value);
  else if (word === "move") at.splice(index(value, at.length), 0, ...at.splice(index(last, at.length), 1));
  else throw new Error(`a patch has the operation "${word}", which this client doesn't know`);
}

/** What stands there: only members and elements of the copy's own, never what JavaScript gives to every object. */
function within(at, step) {
  if (Array.isArray(at)) return at[index(step, at.length)];
  if (!Object.hasOwn(object(at, step), step)) throw new Error(`a patch leads to ${JSON.stringify(step)}, which isn't there`);
  return at[step];
}

function index(step, length) {
  if (Number.isInteger(step) && step >= 0 && step < length) return step;
  throw new Error(`a patch has the index ${JSON.stringify(step)} in an array of ${length}`);
}

/** A room that makes a version a millisecond comes to the largest after 285,000 years. */
const isVersion = (version) => Number.isSafeInteger(version) && version >= 0;

function object(at, name) {
  if (typeof at === "object" && at !== null && typeof name === "string") return at;
  throw new Error(`a patch has the member ${JSON.stringify(name)} of what has none`);
}

function set(at, last, value) {
  if (Array.isArray(at)) at[index(last, at.length)] = value;
  // An assignment to `__proto__` would not make a member of that name, and a map's keys may be players' words.
  else Object.defineProperty(object(at, last), last, { value, writable: true, enumerable: true, configurable: true });
}

/**
 * Connects, joins a room of the given type (or makes one), and keeps `room.state` in step.
 *
 * `on.change(room)` is called after each patch or snapshot, `on.event(name, payload)` for each event, `on.missed(count)` before an event if so many were lost
 * in messages that could not be read, `on.status(text)` when
 * the connection comes, goes, or is refused, `on.outOfStep(error)` with an `OutOfStep` when what came can't be used. A snapshot is asked
 * for by itself then; until it comes `room.version` is `null`, and so is `room.state` if it would be half changed.
 */
export function join(roomType, name, on = {}) {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/`);
  const waiting = new Map();
  const room = { state: null, player: null, version: 0, number: null, bytes: 0, patches: 0, left: false };
  let requests = 0;
  let epoch, newest = 0, unusable = 0, snapshots = 0, events = 0;

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

  const giveUp = (text) => {
    on.status?.(text);
    room.left = true;
    socket.close();
  };
  /** What came can't be used: a snapshot is asked for, but not without end. */
  const fellOut = (reason, text) => {
    room.version = null;
    on.outOfStep?.(new OutOfStep(reason, text));
    // A third snapshot would be no better than two that can't be read.
    if (++unusable > UNUSABLE_IN_A_ROW_MAX || (reason === "snapshot" && ++snapshots > 1)) {
      return giveUp(`the server sent ${unusable} things in a row that this page can't use: ${text}; reload it`);
    }
    console.warn("playfield: a snapshot is asked for:", text);
    put({ type: "resync", room: room.number });
  };
  const isAt = (version) => {
    Object.assign(room, { version });
    newest = version;
    unusable = snapshots = 0;
    on.change?.(room);
  };

  const handlers = {
    welcome: () => put({ type: "join_or_create", request: ++requests, room_type: roomType }),
    joined: (message) => {
      Object.assign(room, { number: message.room, player: message.player, id: message.id, version: null });
      ({ epoch } = message);
      newest = unusable = snapshots = events = 0;
    },
    snapshot: (message) => {
      if (message.room !== room.number) return;
      if (message.epoch !== epoch) return fellOut("epoch", `a snapshot is of epoch ${message.epoch}, the room was joined in ${epoch}`);
      if (!isVersion(message.version)) return fellOut("snapshot", `a snapshot is of version ${message.version}`);
      if (message.version < newest) return fellOut("older", `a snapshot is of version ${message.version}, the copy is at ${newest}`);
      try {
        room.state = whole(message.ops);
      } catch (error) {
        return fellOut("snapshot", error.message);
      }
      isAt(message.version);
    },
    check: (message) => {
      if (message.room !== room.number || message.version !== room.version) return;
      if (digest(room.state) !== Number(message.digest)) fellOut("digest", `the copy is not what it is to be at version ${room.version}`);
    },
    patch: ({ room: number, base, version, ops }) => {
      if (number !== room.number || room.version === null) return; // a snapshot is on its way
      if (base !== room.version) return fellOut("base", `a patch begins at version ${base}, the copy is at ${room.version}`);
      if (!isVersion(version) || version <= base) return fellOut("base", `a patch leads from version ${base} to ${version}`);
      try {
        apply(room.state, ops);
      } catch (error) {
        // It may be half changed, and nobody is to read that.
        room.state = null;
        return fellOut("patch", error.message);
      }
      room.patches += 1;
      isAt(version);
    },
    event: (message) => {
      if (message.room !== room.number) return;
      const missed = message.sequence - events - 1;
      events = message.sequence;
      if (missed > 0) on.missed?.(missed);
      on.event?.(message.message, message.payload);
    },
    reply: (message) => waiting.get(message.request)?.resolve(message.payload),
    error: (message) => {
      waiting.get(message.request)?.reject(new Error(message.text));
      on.status?.(message.text);
    },
    ping: (message) => put({ type: "pong", nonce: message.nonce }),
    left: (message) => {
      if (message.room !== room.number) return;
      room.number = null;
      abandon(message.text);
      on.status?.(message.text);
    },
    goodbye: (message) => {
      room.left = true;
      on.status?.(message.text);
    },
    // What this client never asks for.
    listed: () => {},
    schema: () => {},
    pong: () => {},
  };
  socket.onopen = () => {
    on.status?.("connected");
    put({ type: "hello", protocol: 1, name });
  };
  socket.onmessage = ({ data }) => {
    room.bytes += data.length;
    let message;
    try {
      message = JSON.parse(data);
      if (!Object.hasOwn(handlers, message?.type)) throw new Error(`there is no message of type ${JSON.stringify(message?.type)}`);
      if (OF_A_ROOM.includes(message.type) && !Number.isInteger(message.room)) throw new Error(`a ${message.type} says no room`);
    } catch (error) {
      const text = `a message can't be read: ${error.message}`;
      // Before a room is joined there is nothing to mend.
      if (room.number === null) return giveUp(`${text}; reload the page`);
      // It may have been a patch, or the answer that someone waits for.
      abandon(`the answer may have been lost: ${text}`);
      return fellOut("message", text);
    }
    handlers[message.type](message);
    if (message.request !== undefined) waiting.delete(message.request);
  };
  socket.onclose = () => {
    room.number = null;
    abandon("disconnected");
    if (!room.left) on.status?.("disconnected");
  };
  return room;
}
