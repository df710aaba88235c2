// The Playfield client for browsers: one module, no build step, no dependencies. It speaks the
// format `json` over the browser's own WebSocket, to the host that served the page.

/**
 * @module playfield
 *
 * @example
 * import { join } from "/playfield.js";
 *
 * const room = join("counter", "Ann", {
 *   change: (room) => (output.textContent = room.state.value),
 *   event: (name, payload) => console.log(name, payload),
 *   status: (text) => (status.textContent = text),
 * });
 * button.onclick = () => room.request("Add", 1).catch((error) => alert(error.message));
 *
 * Exports: `join` connects and joins a room. `apply`, `whole` and `digest` are the parts that
 * maintain a copy of a state, for clients with a transport of their own. `OutOfStep` and
 * `UNUSABLE_IN_A_ROW_MAX` belong to `join`'s callback `outOfStep`.
 */

/**
 * The callbacks of `join`. All are optional.
 *
 * @typedef {object} Callbacks
 * @property {(room: Room) => void} [change] After each snapshot or patch: `room.state` has changed.
 * @property {(name: string, payload: any) => void} [event] For each event of the room.
 * @property {(count: number) => void} [missed] Before an event, if this many events before it were
 *   lost in unreadable messages.
 * @property {(text: string) => void} [status] With a text for people: "connected", "disconnected",
 *   or why the node refused something or ended the connection.
 * @property {(error: OutOfStep) => void} [outOfStep] When the copy can't use a message. The client
 *   then asks for a snapshot. Until it comes, `room.version` is `null`, and so is `room.state` if
 *   it was half changed.
 */

/**
 * A room, as `join` returns it. All fields are read-only.
 *
 * @typedef {object} Room
 * @property {any} state The copy of the room's state; `null` before the first snapshot.
 * @property {?number} version The version of the copy; 0 before the room is joined, `null` while a
 *   snapshot is awaited.
 * @property {?number} player This client's player number; `null` before the room is joined.
 * @property {?number} number The room's number in this session; `null` while not in the room.
 * @property {string} [id] The room's id, once it is joined.
 * @property {?string} key The room's key or code; `null` if it has none, or is not joined.
 * @property {boolean} left The node said goodbye, or this client gave up: it will not reconnect.
 * @property {number} bytes The length of all messages received.
 * @property {number} patches The number of patches applied.
 * @property {(message: string, payload: any) => boolean} send Sends a message without a reply.
 *   Returns whether it was sent: `false` while not in the room.
 * @property {(message: string, payload: any) => Promise<any>} request Sends a message and resolves
 *   to its reply. Rejects with the node's reason, or when the connection or the room ends.
 * @property {() => void} close Closes the connection, and so leaves the room.
 */

/**
 * The most messages in a row that the copy may be unable to use, without a usable snapshot or patch
 * between them. Past it the client closes the connection.
 */
export const UNUSABLE_IN_A_ROW_MAX = 16;

/** The messages about one room. */
const OF_A_ROOM = ["joined", "snapshot", "patch", "check", "event", "left"];

/** The most steps of a path, as in the other clients. */
const PATH_STEPS_MAX = 128;

/**
 * The most elements that one patch may move to make or fill a gap in arrays: some tenths of a
 * second of work. A node sends a whole array long before that.
 */
const MOVED_MAX = 2 ** 30;

/**
 * Why a copy fell out of step. `reason` is one of:
 *
 * - "base": a patch starts at another version than the copy's, or does not advance it;
 * - "patch": a patch can't be applied;
 * - "epoch": a snapshot is of another room;
 * - "older": a snapshot is older than the copy;
 * - "snapshot": a snapshot can't be read;
 * - "message": a message can't be read;
 * - "digest": the copy's digest differs from the node's.
 */
export class OutOfStep extends Error {
  constructor(reason, text) {
    super(text);
    this.reason = reason;
  }
}

/**
 * Applies a patch's operations to a copy of a room's state (docs/state.md).
 *
 * @param {any} state The copy, which is changed.
 * @param {any[]} ops The operations: the field `ops` of a patch.
 * @throws {Error} If an operation does not fit the copy. The copy is then half changed: discard it.
 */
export function apply(state, ops) {
  if (!Array.isArray(ops)) throw new Error("a patch is not a list of operations");
  let moved = 0;
  for (const op of ops) {
    if (!Array.isArray(op)) {
      throw new Error(`a patch has the operation ${JSON.stringify(op)}, which is not a list`);
    }
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

/**
 * The state that a snapshot's operations make: the first sets the whole, the rest change it.
 *
 * @param {any[]} ops The operations: the field `ops` of a snapshot.
 * @returns {object} The state.
 * @throws {Error} If they are invalid.
 */
export function whole(ops) {
  const [first, ...own] = Array.isArray(ops) ? ops : [];
  const setsWhole = Array.isArray(first) && first.length === 2 && Array.isArray(first[0]);
  const state = setsWhole && first[0].length === 0 ? first[1] : null;
  if (typeof state !== "object" || state === null || Array.isArray(state)) {
    throw new Error("a snapshot has no state");
  }
  apply(state, own);
  return state;
}

const float = new Float64Array(1);
const bits = new Uint32Array(float.buffer);
// Which half of a float's bits is the lower one.
const LOW = new Uint8Array(Uint32Array.of(1).buffer)[0] ? 0 : 1;

const mix = (value) => {
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return value ^ (value >>> 16);
};
const digestOfText = (seed, text) => {
  for (let place = 0; place < text.length; place++) {
    seed = Math.imul(seed ^ text.charCodeAt(place), 0x01000193);
  }
  return mix(seed);
};
const digestOfNumber = (number) => {
  float[0] = number + 0; // -0 counts as 0
  return mix(mix(0x6e756d62 ^ bits[LOW]) ^ bits[1 - LOW]);
};
const inside = (place, step) => (mix(place ^ step) + place) | 0;

/**
 * The digest of a copy (docs/state.md), to compare with the digest of a `check`. It is the sum over
 * all values, of which each is hashed with its place.
 *
 * @param {any} value The copy.
 * @returns {number} An unsigned integer of 32 bits.
 */
export function digest(value, place = 0x726f6f74) {
  let sum = 0, what;
  if (value === null) what = 0x6e756c6c;
  else if (typeof value === "number") what = digestOfNumber(value);
  else if (typeof value === "string") what = digestOfText(0x74657874, value);
  else if (typeof value === "boolean") what = value ? 0x74727565 : 0x66616c73;
  else if (Array.isArray(value)) {
    value.forEach((element, index) => {
      sum = (sum + digest(element, inside(place, mix(0x656c656d ^ index)))) | 0;
    });
    what = mix(0x61727261 ^ value.length);
  } else {
    for (const name of Object.keys(value)) {
      sum = (sum + digest(value[name], inside(place, digestOfText(0x6d656d62, name)))) | 0;
    }
    what = 0x6f626a65;
  }
  return (sum + mix(place ^ what)) >>> 0;
}

function change(at, last, value, word) {
  if (word === "order") {
    const list = within(at, last);
    const isOrder = Array.isArray(list) && Array.isArray(value) && value.length === list.length;
    if (!isOrder || new Set(value).size !== list.length) {
      throw new Error(`a patch has an invalid order of the elements of ${JSON.stringify(last)}`);
    }
    const old = list.slice();
    value.forEach((from, to) => (list[to] = old[index(from, old.length)]));
  } else if (!Array.isArray(at)) {
    throw new Error(`a patch has the operation "${word}" for a value that is not an array`);
  } else if (word === "insert") {
    at.splice(index(last, at.length + 1), 0, value);
  } else if (word === "move") {
    at.splice(index(value, at.length), 0, ...at.splice(index(last, at.length), 1));
  } else {
    throw new Error(`a patch has the unknown operation "${word}"`);
  }
}

/** The value at a step: a member or element of the copy itself, never an inherited property. */
function within(at, step) {
  if (Array.isArray(at)) return at[index(step, at.length)];
  if (!Object.hasOwn(object(at, step), step)) {
    throw new Error(`a patch names ${JSON.stringify(step)}, which does not exist`);
  }
  return at[step];
}

function index(step, length) {
  if (Number.isInteger(step) && step >= 0 && step < length) return step;
  throw new Error(`a patch has the index ${JSON.stringify(step)} in an array of ${length}`);
}

/** At one version per millisecond, a room reaches the largest after 285,000 years. */
const isVersion = (version) => Number.isSafeInteger(version) && version >= 0;

function object(at, name) {
  if (typeof at === "object" && at !== null && typeof name === "string") return at;
  throw new Error(`a patch names the member ${JSON.stringify(name)} of a value without members`);
}

function set(at, last, value) {
  if (Array.isArray(at)) at[index(last, at.length)] = value;
  else {
    // An assignment to `__proto__` would not make a member, and players may choose a map's keys.
    const member = { value, writable: true, enumerable: true, configurable: true };
    Object.defineProperty(object(at, last), last, member);
  }
}

/**
 * Which room to join, as whom, and what a new room is like. All are optional.
 *
 * @typedef {object} How
 * @property {string} [id] The id of the room to join, or a reservation for a seat in it.
 * @property {string} [key] The key of the room to join or create, or the code of the one to join.
 * @property {boolean} [create] `false` joins a room only if it exists, which needs its `id` or
 *   `key`; `true` creates a new one. Without it, either will do.
 * @property {boolean} [code] With `create: true`, the node picks a short code as the key.
 * @property {boolean} [private] With `create: true`, the room is neither listed nor found by chance.
 * @property {any} [options] The options of a new room, which may be criteria for the one to join.
 * @property {string | Uint8Array} [token] For the node's authenticator.
 */

/** The first message about a room. */
function entrance(request, roomType, { id, key, create, code, private: isPrivate, options }) {
  if (id !== undefined) return { type: "join", request, room: id };
  const made = { request, room_type: roomType, key, options };
  if (create) return { type: "create", ...made, code, private: isPrivate };
  if (create === false) return { type: "join_by_key", request, room_type: roomType, key };
  return { type: "join_or_create", ...made };
}

/** A token in base64. */
function base64(token) {
  const bytes = typeof token === "string" ? new TextEncoder().encode(token) : token;
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/**
 * Connects to the host that served the page, joins a room and keeps a copy of its state: a room of
 * the type that is not full, or a new one, unless `how` says otherwise.
 *
 * @param {string} roomType The room type's name at the node.
 * @param {string} name The player's display name; may be empty.
 * @param {Callbacks} [on] The callbacks.
 * @param {How} [how] Which room, and as whom.
 * @returns {Room} The room, which fills as messages come.
 */
export function join(roomType, name, on = {}, how = {}) {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const socket = new WebSocket(`${scheme}://${location.host}/`);
  const waiting = new Map();
  const room = { state: null, player: null, key: null, version: 0, number: null, left: false };
  Object.assign(room, { bytes: 0, patches: 0 });
  let requests = 0;
  // Of the room: its epoch, the copy's last version, how many messages and snapshots in a row could
  // not be used, and the last event's number.
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
  room.send = (message, payload) =>
    room.number !== null && put({ type: "send", room: room.number, message, payload });
  room.request = (message, payload) =>
    new Promise((resolve, reject) => {
      if (room.number === null) return reject(new Error("not in the room yet"));
      const request = ++requests;
      const isSent = put({ type: "request", room: room.number, request, message, payload });
      if (!isSent) return reject(new Error("not connected"));
      waiting.set(request, { resolve, reject });
    });
  room.close = () => socket.close();

  const giveUp = (text) => {
    on.status?.(text);
    room.left = true;
    socket.close();
  };
  /** The copy can't use a message: asks for a snapshot, but not forever. */
  const fellOut = (reason, text) => {
    room.version = null;
    on.outOfStep?.(new OutOfStep(reason, text));
    // After two unreadable snapshots in a row, a third would be the same.
    if (++unusable > UNUSABLE_IN_A_ROW_MAX || (reason === "snapshot" && ++snapshots > 1)) {
      const failed = `the server sent ${unusable} messages in a row that this page can't use`;
      return giveUp(`${failed}: ${text}; reload the page`);
    }
    console.warn("playfield: asking for a snapshot:", text);
    put({ type: "resync", room: room.number });
  };
  const isAt = (version) => {
    Object.assign(room, { version });
    newest = version;
    unusable = snapshots = 0;
    on.change?.(room);
  };

  const handlers = {
    welcome: () => put(entrance(++requests, roomType, how)),
    joined: (message) => {
      const { room: number, player, id, key = null } = message;
      Object.assign(room, { number, player, id, key, version: null });
      ({ epoch } = message);
      newest = unusable = snapshots = events = 0;
    },
    snapshot: (message) => {
      if (message.room !== room.number) return;
      if (message.epoch !== epoch) {
        return fellOut("epoch", `a snapshot is of epoch ${message.epoch}, the room of ${epoch}`);
      }
      const text = `a snapshot is of version ${message.version}`;
      if (!isVersion(message.version)) return fellOut("snapshot", text);
      if (message.version < newest) {
        return fellOut("older", `${text}, but the copy is at ${newest}`);
      }
      try {
        room.state = whole(message.ops);
      } catch (error) {
        return fellOut("snapshot", error.message);
      }
      isAt(message.version);
    },
    check: (message) => {
      if (message.room !== room.number || message.version !== room.version) return;
      if (digest(room.state) !== Number(message.digest)) {
        fellOut("digest", `the copy's digest at version ${room.version} differs from the server's`);
      }
    },
    patch: ({ room: number, base, version, ops }) => {
      if (number !== room.number || room.version === null) return; // a snapshot is on its way
      if (base !== room.version) {
        const text = `a patch starts at version ${base}, but the copy is at ${room.version}`;
        return fellOut("base", text);
      }
      if (!isVersion(version) || version <= base) {
        const text = `a patch from version ${base} to ${version} does not advance the copy`;
        return fellOut("base", text);
      }
      try {
        apply(room.state, ops);
      } catch (error) {
        // It may be half changed.
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
    // Answers to requests that this client never makes.
    listed: () => {},
    schema: () => {},
    pong: () => {},
  };
  socket.onopen = () => {
    on.status?.("connected");
    const token = how.token === undefined ? undefined : base64(how.token);
    put({ type: "hello", protocol: 1, name, token });
  };
  socket.onmessage = ({ data }) => {
    room.bytes += data.length;
    let message;
    try {
      message = JSON.parse(data);
      const type = message?.type;
      if (!Object.hasOwn(handlers, type)) {
        throw new Error(`there is no message of type ${JSON.stringify(type)}`);
      }
      if (OF_A_ROOM.includes(type) && !Number.isInteger(message.room)) {
        throw new Error(`a message of type ${type} names no room`);
      }
    } catch (error) {
      const text = `a message can't be read: ${error.message}`;
      // Before a room is joined there is no copy to repair.
      if (room.number === null) return giveUp(`${text}; reload the page`);
      // It may have been a patch, or the answer to a request.
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
