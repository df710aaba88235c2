// The Playfield client for browsers: one module, no build step, no dependencies. It speaks the
// format `json` over the browser's own WebSocket, to the host that served the page or to another.
// It also runs in Node.

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
 * Exports: `join` connects and joins one room; `connect` makes a connection for several. A lost
 * connection is restored, and the session goes on where it was (docs/protocol.md, "Resumption").
 * `apply`, `whole` and `digest` are the parts that maintain a copy of a state, for clients with a
 * transport of their own. `OutOfStep` and `UNUSABLE_IN_A_ROW_MAX` belong to the callback
 * `outOfStep`.
 */

/**
 * The callbacks of a room. All are optional.
 *
 * @typedef {object} RoomCallbacks
 * @property {(room: Room) => void} [change] After each snapshot or patch: `room.state` has changed.
 * @property {(name: string, payload: any) => void} [event] For each event of the room.
 * @property {(count: number) => void} [missed] Before an event, if the node had to forget this many
 *   events before it while the connection was lost.
 * @property {(text: string) => void} [status] With a text for people: why the node refused
 *   something, or why the stay in the room has ended.
 * @property {(code: string, text: string) => void} [left] The stay in the room has ended, or the
 *   node refused the join: with the code of docs/protocol.md, "Errors". After a lost connection
 *   whose session the node did not keep, it is "connection_lost".
 * @property {(error: OutOfStep) => void} [outOfStep] When the copy can't use a message. The client
 *   then asks for a snapshot. Until it comes, `room.version` is `null`, and so is `room.state` if
 *   it was half changed.
 */

/**
 * The callbacks of a connection. All are optional.
 *
 * @typedef {object} ConnectionCallbacks
 * @property {(text: string) => void} [status] With a text for people: "connected", or why not; also
 *   when an attempt to connect has failed for another reason than the one before.
 * @property {(text: string) => void} [lost] The connection was lost. The client connects again by
 *   itself. Rooms stay as they are, and what is sent meanwhile waits.
 * @property {(how: { away: number, lost: { room: ?Room, messages: number }[] }) => void} [resumed]
 *   The connection is restored after `away` milliseconds, and the session goes on. `lost` is what
 *   the node had to forget, by room: events, which `missed` reports, and answers, whose requests
 *   fail. Empty if nothing is missing.
 * @property {(how: { away: number, unconfirmed: number }) => void} [newSession] The connection is
 *   restored, but the node no longer had the session. All rooms have ended, and all requests have
 *   failed. Join again. `unconfirmed` is how many messages of `send` the node has not confirmed: whether
 *   they were handled is unknown.
 * @property {(code: string, text: string, how: { unconfirmed: number }) => void} [ended] The
 *   connection has ended for good. After `close` on a connection that is there, what is not
 *   confirmed is on its way.
 */

/**
 * A connection, as `connect` returns it. All fields are read-only.
 *
 * @typedef {object} Connection
 * @property {"connecting" | "connected" | "lost" | "ended"} status
 * @property {?number} roundTrip The shortest round trip of the last eight pings, in milliseconds;
 *   `null` until the first answer on the present connection.
 * @property {?number} clockOffset The node's clock, in milliseconds since it started, minus
 *   `performance.now()`. It is off by at most half the round trip.
 * @property {number} bytes The length of all messages received.
 * @property {(roomType: string, on?: RoomCallbacks, how?: How) => Room} join Joins a room: one of
 *   the type that is not full, or a new one, unless `how` says otherwise.
 * @property {(channel: string, on?: ChannelCallbacks, how?: ChannelHow) => Subscription} subscribe
 *   Subscribes to a channel, and again on each new connection, with the position it has reached.
 *   Throws if this connection subscribes to it already.
 * @property {(channel: string, payload: any) => Promise<number>} publish Publishes to a channel.
 *   Resolves to the publication's offset, or rejects with the node's reason.
 * @property {(channel: string, payload: any) => boolean} publishUnconfirmed Publishes without an
 *   answer. Returns `false` if too much waits.
 * @property {(channel: string) => Promise<{ sequence: number, count: number, members: Member[] }>}
 *   members Who subscribes to a channel: how many, those that the node lists, and the number of the
 *   last `presence` before the answer.
 * @property {(channel: string, how?: { since?: Position, limit?: number }) => Promise<History>}
 *   history Publications of a channel after `since`, the oldest first.
 * @property {(id: string, on?: DeviceCallbacks, how?: DeviceHow) => Device} register Registers as a
 *   device, and again in each new session.
 * @property {() => void} ping Measures the round trip now. The client does so from time to time.
 * @property {() => void} close Says goodbye, and so leaves all rooms.
 */

/** @typedef {{ epoch: number | string, offset: number }} Position A place in a channel. */
/** @typedef {{ session: number | string, user?: string, name: string }} Member */
/** @typedef {{ offset: number, user?: string, payload: any }} Publication */
/**
 * The place of a channel's last publication, and some publications. With `bytes`, their payloads are
 * base64.
 *
 * @typedef {Position & { bytes: boolean, publications: Publication[] }} History
 */

/**
 * The callbacks of a subscription. All are optional.
 *
 * @typedef {object} ChannelCallbacks
 * @property {(payload: any, publication: Publication) => void} [publication] For each publication:
 *   once, in order. A channel of bytes has base64.
 * @property {(how: { recovered: boolean, missed: number, members: number }) => void} [subscribed]
 *   The node has answered, on this connection. `recovered` says whether everything since the
 *   position follows; `missed` counts what does not, as far as is known. `members` is 0 if this
 *   client may not know how many there are.
 * @property {(count: number) => void} [missed] Before a publication: the node has dropped this many
 *   before it, because this client was too slow.
 * @property {(member: Member & { joined: boolean, sequence: number }) => void} [presence] Another
 *   session subscribes, or does no longer. After a gap in `sequence`, ask for `members`.
 * @property {(code: string, text: string) => void} [unsubscribed] The node refused the
 *   subscription, or has ended it, or the connection has ended.
 */

/** @typedef {{ since?: Position }} ChannelHow From which publication on; new ones without it. */

/**
 * A subscription, as `subscribe` returns it. All fields are read-only.
 *
 * @typedef {object} Subscription
 * @property {Connection} connection
 * @property {string} channel The channel's name.
 * @property {?Position} position The last publication that was reported, or before which it began.
 * @property {boolean} ended Nothing more comes.
 * @property {() => void} unsubscribe Ends it.
 */

/**
 * The callbacks of a device. All are optional.
 *
 * @typedef {object} DeviceCallbacks
 * @property {(payload: any) => any} [command] For each command. What it returns, or its promise
 *   resolves to, is the answer, if one is wanted; what it throws is the reason why there is none.
 * @property {(how: { isNew: boolean, bytes: boolean }) => void} [registered] The device is
 *   registered. `isNew` says whether no other was under the id, `bytes` that commands, reports and
 *   their replies are base64.
 * @property {(code: string, text: string) => void} [unregistered] The node refused, now or in a new
 *   session, or the connection has ended.
 */

/** @typedef {{ metadata?: Object<string, string>, tags?: string[] }} DeviceHow */

/**
 * A device, as `register` returns it. All fields are read-only.
 *
 * @typedef {object} Device
 * @property {Connection} connection
 * @property {string} id
 * @property {Promise<Device>} registered Resolves once it is registered; rejects if it is refused.
 * @property {(payload: any) => Promise<any>} report Sends a report, and resolves to the reply.
 * @property {(payload: any) => boolean} reportUnanswered Sends a report without a reply. Returns
 *   `false` if too much waits.
 */

/**
 * A room, as `join` returns it. All fields are read-only.
 *
 * @typedef {object} Room
 * @property {Connection} connection
 * @property {any} state The copy of the room's state; `null` before the first snapshot.
 * @property {?number} version The version of the copy; 0 before the room is joined, `null` while a
 *   snapshot is awaited.
 * @property {?number} player This client's player number; `null` before the room is joined.
 * @property {?number} number The room's number in this session; `null` while not in the room.
 * @property {string} [id] The room's id, once it is joined.
 * @property {?string} key The room's key or code; `null` if it has none, or is not joined.
 * @property {Promise<Room>} joined Resolves to the room once it is joined and its state is there.
 *   Rejects with the node's reason if it is not joined; the error has its `code`.
 * @property {boolean} left The stay in the room has ended: nothing more comes.
 * @property {number} patches The number of patches applied.
 * @property {(message: string, payload: any) => boolean} send Sends a message without a reply.
 *   While the connection is lost, it waits. Returns `false` if it can't be sent: not in the room,
 *   or not yet, or too much waits.
 * @property {(message: string, payload: any) => Promise<any>} request Sends a message and resolves
 *   to its reply. Waits until the room is joined. Rejects with the node's reason, or when the room
 *   ends; the error has its `code`.
 *   "connection_lost" means that it is unknown whether the room has handled the request.
 * @property {() => Promise<void>} leave Leaves the room. The connection stays.
 * @property {() => void} close Closes the connection, and so leaves the room.
 */

/**
 * The most messages in a row that the copy may be unable to use, without a usable snapshot or patch
 * between them. Past it the client closes the connection.
 */
export const UNUSABLE_IN_A_ROW_MAX = 16;

/** The messages about one room. */
const OF_A_ROOM = ["joined", "snapshot", "patch", "check", "event", "left"];

/** The messages that arrive exactly once, over however many connections. */
const COUNTED = [
  "joined", "listed", "schema", "left", "reply", "event", "error",
  "published", "members", "history", "registered", "command",
];

/** Acknowledges them after this many messages, this many characters, or this long. */
const ACK_EVERY = 32, ACK_LENGTH = 16384, ACK_DELAY_MS = 1000;

/**
 * The most characters of messages that may wait for the node's confirmation. Past it `send` returns
 * `false`, and requests fail. The message that reaches it is still taken.
 */
export const UNCONFIRMED_LENGTH_MAX = 2 ** 20;

/** The most channels that one connection may subscribe to. */
export const SUBSCRIPTIONS_MAX = 1024;

/** Refusals that pass; what was granted before is asked for again after this time. */
const PASSING = ["limit", "too_fast", "busy"], RETRY_MS = 1000;

/** A message that counts comes again if it can't be read. After more in a row the client stops. */
export const UNREADABLE_IN_A_ROW_MAX = 2;

/**
 * Before each attempt to connect again the client waits for a random part of a time that doubles
 * (M. Brooker, "Exponential Backoff And Jitter", 2015), until a connection has lasted, or has brought
 * the session forward. The first and the longest are `how.backoffMs` and `how.backoffMsMax`.
 */
const BACKOFF_MS = 100, BACKOFF_MS_MAX = 5000, LASTING_MS = 5000;

/**
 * An attempt to connect that takes longer has failed. While the node still keeps the session, an
 * attempt takes at most a third of that time, or the shorter limit: one that hangs leaves time for
 * others.
 */
const ATTEMPT_MS_MAX = 10_000, ATTEMPT_MS = 3000;

/** How long a connection that may be dead, as after a sleep, has to show that it is not. */
const DOUBT_MS = 5000;

/** A timer that fires later than this stood still, as in a background tab or in a device asleep. */
const LATE_MS = 1000;

/** How many answered pings are remembered, and how many may wait. */
const SAMPLES_MAX = 8, PINGS_MAX = 64;

/** The state of a WebSocket that is open; later ones have larger numbers. */
const OPEN = 1;

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
 * all values, each hashed with its place.
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
 * Which room to join, and what a new room is like. All are optional.
 *
 * @typedef {object} How
 * @property {string} [id] The id of the room to join, or a reservation or a ticket for a seat in
 *   it. It says which room it is, so the room type and the other members are ignored.
 * @property {string} [key] The key of the room to join or create, or the code of the one to join.
 * @property {boolean} [create] `false` joins a room only if it exists, which needs its `id` or
 *   `key`; `true` creates a new one. Without it, either will do.
 * @property {boolean} [code] With `create: true`, the node picks a short code as the key.
 * @property {boolean} [private] With `create: true`, the room is neither listed nor found by
 *   chance.
 * @property {any} [options] The options of a new room, which may be criteria for the one to join.
 */

/** @typedef {string | Uint8Array} Token */

/**
 * How to connect. All are optional.
 *
 * @typedef {object} ConnectHow
 * @property {Token | (() => Token | Promise<Token>)} [token] For the node's authenticator. A
 *   function is called for each connection, as a token may have expired by then. If it fails, or
 *   takes longer than an attempt to connect may, the attempt has failed. If the node refuses the
 *   token of a client that comes back, the function is called once more.
 * @property {number} [reconnectForMs] How long to try to connect, at first and after each lost
 *   connection. The time during which the page is hidden, or the device asleep, does not count.
 *   60,000 without it; with 0 the first failure is the end.
 * @property {number} [backoffMs] The wait before the first attempt to restore a lost connection,
 *   which doubles with each attempt. The client waits for a random part of it, and less while the
 *   node still keeps the session. 100 without it.
 * @property {number} [backoffMsMax] The most that it grows to. 5,000 without it.
 * @property {string} [url] The node: `wss://…`, `https://…`, or a path at the host that served the
 *   page. Without it, the path `/` there.
 * @property {typeof WebSocket} [WebSocket] The class of sockets, where there is none of the
 *   platform's: in Node before 22, that of the package `ws`.
 */

/** The first message about a room. */
function entrance(roomType, { id, key, create, code, private: isPrivate, options }) {
  if (id !== undefined) return { type: "join", room: id };
  const made = { room_type: roomType, key, options };
  if (create) return { type: "create", ...made, code, private: isPrivate };
  if (create === false) return { type: "join_by_key", room_type: roomType, key };
  return { type: "join_or_create", ...made };
}

/** A token in base64, if there is one. */
function base64(token) {
  if (token === undefined) return undefined;
  const bytes = typeof token === "string" ? new TextEncoder().encode(token) : token;
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** The URL of the node's WebSocket. A path is at the host that served the page. */
function address(url = "/") {
  const { protocol, host, href = protocol && `${protocol}//${host}/` } = globalThis.location ?? {};
  let at;
  try {
    at = new URL(url, href);
  } catch {
    throw new Error(`url is ${JSON.stringify(url)}, which names no host, and no page does`);
  }
  const scheme = { "http:": "ws:", "https:": "wss:" }[at.protocol] ?? at.protocol;
  if (!["ws:", "wss:"].includes(scheme)) {
    const uses = "use wss://, ws://, https://, http:// or a path";
    throw new Error(`url is ${JSON.stringify(url)}; ${uses}`);
  }
  return `${scheme}//${at.host}${at.pathname}${at.search}`;
}

const now = () => performance.now();
const isHidden = () => globalThis.document?.hidden ?? false;

/** An error with one of the protocol's codes. */
const failure = (code, text) => Object.assign(new Error(text), { code });

/** Calls a callback. What it throws is reported as uncaught, and stops nothing here. */
const call = (on, name, ...values) => {
  try {
    on[name]?.(...values);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
};

const LOST = "the answer was lost with the connection: it is unknown whether this was done";
const TOO_MUCH = "too much was sent that the server has not confirmed; try again when it has";
const NEW_SESSION =
  "the node no longer had the session when the connection was restored; join the room again";

/** What each set of callbacks was last told: those of a room and its connection may be the same. */
const told = new WeakMap();
/** Calls `status` with how things stand, unless it knows. */
const tell = (on, text) => {
  if (told.get(on) === text) return;
  told.set(on, text);
  call(on, "status", text);
};

/**
 * Connects to a node, and joins a room: `connect`, and its `join`, in one.
 *
 * @param {string} roomType The room type's name at the node.
 * @param {string} name The player's display name; may be empty.
 * @param {RoomCallbacks & ConnectionCallbacks} [on] The callbacks.
 * @param {How & ConnectHow} [how] Which room, and how to connect.
 * @returns {Room} The room, which fills as messages come.
 */
export function join(roomType, name, on = {}, how = {}) {
  return connect(name, on, how).join(roomType, on, how);
}

/**
 * Connects to the host that served the page, or to `how.url`, for several rooms. If that fails, or
 * the connection is lost, the client connects again by itself. After a loss the session goes on: no
 * event is missed, and nothing is done twice.
 *
 * @param {string} name The player's display name; may be empty.
 * @param {ConnectionCallbacks} [on] The callbacks.
 * @param {ConnectHow} [how] How to connect.
 * @returns {Connection} The connection.
 */
export function connect(name, on = {}, how = {}) {
  const url = address(how.url), Socket = how.WebSocket ?? globalThis.WebSocket;
  if (!Socket) throw new Error("there is no WebSocket here: pass a class of them as how.WebSocket");
  const connection = { status: "connecting", roundTrip: null, clockOffset: null, bytes: 0 };
  const rooms = new Map(); // by number, once joined
  let device = null; // what this client is registered as
  let session = 0; // counts the sessions
  const waiting = new Map(); // what waits for an answer, by the request's number
  let requests = 0;
  // Of the session: its token, "" if the node does not keep it; the messages that the node has not
  // confirmed, their length, and how many were sent; how many of the node's were handled.
  let token = "", log = [], logLength = 0, sent = 0, received = 0;
  // How many messages without an answer it had not confirmed at its end.
  let unconfirmed = 0;
  // What was not acknowledged of the node's, and how many messages in a row were unreadable.
  let behind = 0, behindLength = 0, unreadable = 0;
  // Of the present connection, or the attempt at one.
  let socket, began, isWelcome = false, isHeard = false, pings = new Map(), samples = [];
  // How many attempts there were, how long they took, and since when the connection is lost.
  let attempts = 0, tried = 0, lostAt = null, wasWelcome = false;
  // How long the node keeps the session after a lost connection.
  let graceMs = 0;
  // What the node said on this connection: how long to wait; and whether it refused a token that
  // was renewed.
  let retryAfter = 0, isRenewed = false;
  // Whether this connection has resumed the session, and brought it forward.
  let isResumed = false, hasProgress = false;
  let heartbeat, nonce = 0, ackTimer, watchTimer, openTimer;
  const wakes = new AbortController();

  const put = (message) => isWelcome && socket.send(JSON.stringify(message));
  /** Sends a message that counts, now or when it can. Returns its count, or 0 if too much waits. */
  const post = (message) => {
    if (connection.status === "ended" || logLength >= UNCONFIRMED_LENGTH_MAX) return 0;
    const text = JSON.stringify(message);
    if (token || !isWelcome) {
      log.push(text);
      logLength += text.length;
    }
    if (isWelcome) socket.send(text);
    return ++sent;
  };
  /** The node has handled `count` messages. Returns whether that is possible. */
  const confirm = (count) => {
    const news = count - (sent - log.length);
    if (!Number.isInteger(news) || news < 0 || news > log.length) return false;
    for (const text of log.splice(0, news)) logLength -= text.length;
    return true;
  };
  const acknowledge = () => {
    clearTimeout(ackTimer);
    behind = behindLength = 0;
    ackTimer = undefined;
    if (token) put({ type: "ack", received });
  };
  /** Sends a request, whose answer `entry` waits for. */
  const ask = (message, entry) => {
    const request = ++requests;
    const count = post({ ...message, request });
    if (count) waiting.set(request, { ...entry, count });
    return count > 0;
  };
  /** Fails the requests that `which` selects. */
  const fail = (which, code, text) => {
    for (const [request, entry] of waiting) {
      if (which(entry) && waiting.delete(request)) entry.reject(code, text);
    }
  };
  /** The session is over, and with it all rooms and requests. */
  const forget = (code, text) => {
    const over = [...rooms.values()], failed = [...waiting.values()];
    // Requests fail; the others have no other way to say so.
    unconfirmed += log.filter((text) => !("request" in JSON.parse(text))).length;
    rooms.clear();
    waiting.clear();
    log = [];
    logLength = sent = received = behind = behindLength = 0;
    token = "";
    session += 1;
    // From here on the callbacks may join again.
    for (const inside of over) inside.end(code, text);
    for (const entry of failed) entry.reject(code, text);
  };

  const ping = () => {
    pings.set(++nonce, now());
    if (pings.size > PINGS_MAX) pings.delete(pings.keys().next().value);
    put({ type: "ping", nonce });
  };
  /** How often the connection is checked: rooms may want to notice a lost one sooner. */
  const beat = () => {
    const wishes = [...rooms.values()].map((inside) => inside.silence / 2);
    return Math.min(heartbeat, ...wishes);
  };
  /** Checks that the node answers a ping within `limit`, and again from time to time. */
  const watch = (limit, isLast = false) => {
    isHeard = false;
    ping();
    const until = now() + limit;
    const tick = () => {
      clearTimeout(watchTimer);
      const wait = Math.min(DOUBT_MS, until - now()), due = Date.now() + wait;
      watchTimer = setTimeout(() => {
        // Timers stand still in a background tab and in a device asleep. The connection may be
        // dead, or what came may not have been read yet.
        if (!isLast && Date.now() > due + LATE_MS) watch(DOUBT_MS, true);
        else if (now() < until) tick();
        else if (isHeard) watch(beat());
        else lose("the server does not answer");
      }, wait);
    };
    tick();
  };

  /** Drops the present connection, or the attempt at one. */
  const drop = () => {
    for (const timer of [ackTimer, watchTimer, openTimer]) clearTimeout(timer);
    ackTimer = openTimer = undefined;
    isWelcome = false;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    // In some libraries an error that nobody hears ends the process.
    socket.onerror = () => {};
    socket.close();
    socket = undefined;
  };
  /** The connection has ended for good. */
  const end = (code, text) => {
    if (connection.status === "ended") return;
    drop();
    wakes.abort();
    connection.status = "ended";
    forget(code, text);
    channels.end(code, text);
    if (device) call(device.on, "unregistered", code, text);
    tell(on, text);
    call(on, "ended", code, text, { unconfirmed });
  };
  /** How long the node keeps the session or the next seat, as it said; 0 after all of them. */
  const grace = () => {
    if (lostAt === null || !graceMs) return 0;
    const graces = [graceMs, ...[...rooms.values()].map((inside) => inside.grace)];
    return graces.filter((ms) => lostAt + ms > now()).sort((a, b) => a - b)[0] ?? 0;
  };
  /** The connection is lost, or the attempt at one has failed. */
  const lose = (text, code = "connection_lost") => {
    const wasConnected = isWelcome, took = now() - began;
    drop();
    if (wasConnected) {
      lostAt = now();
      // A node that takes the session back and ends at once is not asked ever faster.
      if (took > LASTING_MS || (isResumed && hasProgress)) attempts = 0;
    } else if (!isHidden()) tried += Math.min(took, ATTEMPT_MS_MAX);
    const left = (how.reconnectForMs ?? 60_000) - tried;
    if (left <= 0) return end(code, wasWelcome ? `${text}; it could not be reached again` : text);
    const first = how.backoffMs ?? BACKOFF_MS, last = how.backoffMsMax ?? BACKOFF_MS_MAX;
    const kept = grace() && lostAt + grace() - now(), most = first * 2 ** attempts++;
    // The last attempt within the grace comes shortly before its end.
    const keptMost = kept > 0 ? Math.max(kept / 2, Math.min(first, BACKOFF_MS)) : Infinity;
    const wish = Math.random() * Math.min(Math.max(first, last), most, keptMost);
    // There is time for one attempt at least.
    const wait = Math.min(retryAfter + wish, left);
    retryAfter = 0;
    if (!isHidden()) tried += wait;
    connection.status = wasWelcome ? "lost" : "connecting";
    openTimer = setTimeout(open, wait);
    if (!wasConnected) return tell(on, `${text}; trying again`);
    if (!token) forget("connection_lost", text);
    if (connection.status === "ended") return; // by a callback
    tell(on, `${text}; reconnecting`);
    call(on, "lost", text);
  };
  /** The device woke up, the page is shown again, or the network has changed. */
  const wake = ({ type }) => {
    if (isHidden()) return;
    // A page that was stored away may not have heard of the end.
    if (isWelcome && socket.readyState > OPEN) lose("disconnected");
    if (isWelcome) watch(DOUBT_MS);
    else if (type === "offline" || connection.status === "ended") return;
    else if (openTimer || now() - began > DOUBT_MS) open();
  };

  /** Leaves a room that the node has this client in, but that it does not know, or can't use. */
  const leave = (room) => post({ type: "leave", request: ++requests, room });

  const isReady = () => isWelcome;
  const channels = makeChannels(connection, { put, next: () => ++requests, isReady });
  /** Registers the device again in a new session. */
  const renew = () => {
    const inside = device;
    if (!inside || !isWelcome) return;
    const reject = (code, text, retryMs = RETRY_MS) => {
      if (device !== inside || code === "connection_lost") return;
      if (PASSING.includes(code)) return (inside.timer = setTimeout(renew, retryMs));
      device = null;
      call(inside.on, "unregistered", code, text);
    };
    const resolve = (how) => call(inside.on, "registered", how);
    if (!ask(inside.message, { resolve, reject })) inside.timer = setTimeout(renew, RETRY_MS);
  };
  const obey = async ({ command, payload }) => {
    const now = session;
    let answer;
    try {
      if (!device?.on.command) throw new Error("the device takes no commands");
      answer = { payload: await device.on.command(payload) };
    } catch (error) {
      if (command === undefined) throw error; // It is reported as uncaught.
      answer = { error: String(error?.message ?? error) };
    }
    if (command !== undefined && session === now) post({ type: "answer", command, ...answer });
  };

  const handlers = {
    ...channels.handlers,
    welcome: ({ resume = "", grace_ms: grace, heartbeat_ms, resumed }) => {
      const wasLost = lostAt !== null, away = wasLost ? now() - lostAt : 0;
      if (resumed) {
        if (!token || !confirm(resumed.received)) return end("bad_message", "a welcome is wrong");
      } else {
        if (token) forget("connection_lost", NEW_SESSION);
        if (connection.status === "ended") return; // by a callback
        sent = log.length;
      }
      graceMs = grace;
      token = grace > 0 ? resume : "";
      heartbeat = heartbeat_ms || 30_000;
      isWelcome = wasWelcome = true;
      isRenewed = hasProgress = false;
      isResumed = resumed !== undefined;
      tried = 0;
      lostAt = null;
      began = now();
      connection.status = "connected";
      for (const text of log) socket.send(text);
      if (!token) [log, logLength] = [[], 0];
      watch(beat());
      const lost = (resumed?.lost ?? []).map(({ room: number, messages }) => {
        const inside = rooms.get(number);
        // With an unknown room, it was the answer to a join; without one, to something else too.
        const isOf = ({ inside: of, isJoin }) =>
          inside ? of === inside : isJoin || (!number && !of);
        fail((entry) => isOf(entry) && entry.count <= resumed.received, "connection_lost", LOST);
        received += messages;
        if (inside) inside.missing += messages;
        else if (number) leave(number);
        return { room: inside?.room ?? null, messages };
      });
      if (!resumed) renew();
      channels.subscribe();
      tell(on, "connected");
      if (resumed) call(on, "resumed", { away, lost });
      else if (wasLost) call(on, "newSession", { away, unconfirmed });
      unconfirmed = 0;
    },
    ack: ({ received: count }) => {
      hasProgress ||= count > sent - log.length;
      if (!confirm(count)) end("bad_message", "the node confirmed messages that were not sent");
    },
    joined: (message) => {
      const entry = waiting.get(message.request);
      if (!entry?.isJoin) return leave(message.room);
      entry.inside.joined(message);
      if (message.silence_ms) watch(beat());
    },
    reply: ({ request, payload }) => waiting.get(request)?.resolve?.(payload),
    published: ({ request, offset }) => waiting.get(request)?.resolve?.(offset),
    members: ({ request, type, ...answer }) => waiting.get(request)?.resolve?.(answer),
    history: ({ request, type, bytes = false, ...answer }) =>
      waiting.get(request)?.resolve?.({ ...answer, bytes }),
    registered: ({ request, is_new, bytes = false }) =>
      waiting.get(request)?.resolve?.({ isNew: is_new, bytes }),
    command: obey,
    error: ({ request, room, code, text, retry_after_ms: retryMs }) => {
      // A goodbye follows.
      if (!isWelcome) return void (retryAfter = retryMs ?? 0);
      if (channels.refused(request, code, text, retryMs)) return;
      const entry = waiting.get(request);
      // The request no longer waits: the answer came too late.
      if (request !== undefined && !entry) return;
      const inside = entry?.inside ?? rooms.get(room);
      // A join that fails says so at its end.
      if (!entry?.isJoin) call(inside?.on ?? on, "status", text);
      entry?.reject(code, text, retryMs);
      // Its `left` is among what the node had to forget.
      if (entry && code === "not_joined") inside.end(code, text);
    },
    ping: (message) => put({ type: "pong", nonce: message.nonce }),
    pong: (message) => {
      const at = pings.get(message.nonce), roundTrip = now() - at;
      if (!pings.delete(message.nonce)) return;
      // The node answered when half the round trip had passed.
      samples.push({ roundTrip, clockOffset: message.time_us / 1000 - at - roundTrip / 2 });
      if (samples.length > SAMPLES_MAX) samples.shift();
      const best = samples.reduce((best, one) => (one.roundTrip <= best.roundTrip ? one : best));
      Object.assign(connection, best);
    },
    goodbye: ({ code, text }) => {
      // The node has waited long enough for a device asleep, it is restarted, it is too busy just
      // now, or the token has expired. A first hello past a limit that is no rate stays past it.
      const renews = wasWelcome && typeof how.token === "function" && !isRenewed;
      const isPassing = ["timeout", "shutting_down"].includes(code) ||
        (!isWelcome && ["busy", "internal"].includes(code)) ||
        (!isWelcome && code === "limit" && (wasWelcome || retryAfter > 0)) ||
        (!isWelcome && code === "unauthorized" && renews);
      if (!isPassing) return end(code, text);
      if (code === "unauthorized") isRenewed = true;
      if (code === "shutting_down") graceMs = 0;
      lose(text, code);
    },
    // Answers to requests that this client never makes.
    listed: () => {},
    schema: () => {},
  };
  for (const type of ["snapshot", "patch", "check", "event", "left"]) {
    handlers[type] = (message) => rooms.get(message.room)?.[type](message);
  }

  const read = ({ data }) => {
    connection.bytes += data.length;
    isHeard = true;
    let message, type;
    try {
      message = JSON.parse(data);
      type = message?.type;
      if (!Object.hasOwn(handlers, type)) {
        throw new Error(`there is no message of type ${JSON.stringify(type)}`);
      }
      if (OF_A_ROOM.includes(type) && !Number.isInteger(message.room)) {
        throw new Error(`a message of type ${type} names no room`);
      }
    } catch (error) {
      const text = `a message can't be read: ${error.message}`;
      if (++unreadable <= UNREADABLE_IN_A_ROW_MAX && wasWelcome) return lose(text);
      return end("bad_message", `${text}; reload the page`);
    }
    // What comes before the welcome belongs to no session.
    if (isWelcome && COUNTED.includes(type)) {
      unreadable = 0;
      hasProgress = true;
      received += 1;
      behindLength += data.length;
      if (++behind >= ACK_EVERY || behindLength >= ACK_LENGTH) acknowledge();
      else if (token) ackTimer ??= setTimeout(acknowledge, ACK_DELAY_MS);
    }
    handlers[type](message);
    if (message.request !== undefined) waiting.delete(message.request);
  };
  /** Connects, and asks for the session if there is one. */
  const open = () => {
    drop();
    began = now();
    connection.roundTrip = connection.clockOffset = null;
    pings.clear();
    samples = [];
    retryAfter = 0;
    const mine = (socket = new Socket(url));
    openTimer = undefined;
    const share = grace() ? Math.max(grace() / 3, ATTEMPT_MS) : Infinity;
    const limit = Math.min(share, ATTEMPT_MS_MAX);
    // The token and the socket are awaited at the same time.
    let given, isOpen = false;
    const greet = () => {
      if (!given || !isOpen || socket !== mine) return;
      const copies = [...rooms.values()].map((inside) => inside.copy());
      const resume = token ? { token, received, rooms: copies } : undefined;
      behind = behindLength = 0;
      const hello = { type: "hello", protocol: 1, name, ...given };
      mine.send(JSON.stringify({ ...hello, resumable: true, resume }));
    };
    const take = (token) => {
      given = { token: base64(token) };
      greet();
    };
    const noToken = (error) => {
      if (socket === mine) lose(`there is no token: ${error?.message ?? error}`);
    };
    watchTimer = setTimeout(() => {
      if (given) lose("the server does not answer");
      else noToken(`its function gave none within ${Math.round(limit)} ms`);
    }, limit);
    // A function may fail, at once or later.
    if (typeof how.token !== "function") take(how.token);
    else new Promise((gives) => gives(how.token())).then(take).catch(noToken);
    socket.onopen = () => {
      isOpen = true;
      greet();
    };
    socket.onmessage = read;
    socket.onerror = socket.onclose = () => lose("disconnected");
  };

  connection.join = (roomType, onRoom = {}, howRoom = {}) => {
    const progress = () => (hasProgress = true);
    const links = { put, post, ask, fail, end, leave, progress, rooms };
    const inside = makeRoom(connection, onRoom, links);
    const entry = { isJoin: true, inside, reject: inside.end };
    const isEnded = connection.status === "ended";
    if (isEnded || !ask(entrance(roomType, howRoom), entry)) {
      const why = isEnded ? ["connection_lost", "the connection has ended"] : ["limit", TOO_MUCH];
      queueMicrotask(() => inside.end(...why));
    }
    return inside.room;
  };
  /** A request that concerns no room. */
  const request = (message) =>
    new Promise((resolve, reject) => {
      const refuse = (code, text) => reject(failure(code, text));
      if (connection.status === "ended") refuse("connection_lost", "the connection has ended");
      else if (!ask(message, { resolve, reject: refuse })) refuse("limit", TOO_MUCH);
    });
  connection.subscribe = channels.add;
  connection.publish = (channel, payload) => request({ type: "publish", channel, payload });
  connection.publishUnconfirmed = (channel, payload) =>
    post({ type: "publish", channel, payload }) > 0;
  connection.members = (channel) => request({ type: "members", channel });
  connection.history = (channel, { since, limit } = {}) =>
    request({ type: "history", channel, since, limit });
  connection.register = (id, onDevice = {}, { metadata, tags } = {}) => {
    const handle = { connection, id };
    const inside = { on: onDevice, message: { type: "register", device: id, metadata, tags } };
    handle.report = (payload) => request({ type: "report", payload });
    handle.reportUnanswered = (payload) => post({ type: "report", payload }) > 0;
    handle.registered = request(inside.message).then(
      (how) => {
        clearTimeout(device?.timer);
        device = inside;
        call(onDevice, "registered", how);
        return handle;
      },
      (error) => {
        call(onDevice, "unregistered", error.code, error.message);
        throw error;
      },
    );
    // `unregistered` says so too.
    handle.registered.catch(() => {});
    return handle;
  };
  connection.ping = () => isWelcome && ping();
  connection.close = () => {
    put({ type: "goodbye" });
    end("left", "disconnected");
  };
  const { signal } = wakes;
  for (const type of ["online", "offline", "pageshow", "visibilitychange"]) {
    globalThis.addEventListener?.(type, wake, { signal });
  }
  // A page that is gone for good keeps no seat.
  const gone = ({ persisted }) => persisted || connection.close();
  globalThis.addEventListener?.("pagehide", gone, { signal });
  open();
  return connection;
}

/** The subscriptions of a connection, over however many sockets and sessions. */
function makeChannels(connection, { put, next, isReady }) {
  const all = new Map(); // by name
  // Of the present connection: by the channel's number; those that wait for an answer, and the
  // names of those that were ended before it, by request.
  const numbers = new Map(), asked = new Map(), dropped = new Map();

  const ask = (inside) => {
    const { channel, position } = inside.subscription;
    const request = next();
    asked.set(request, inside);
    const since = position ?? undefined, presence = inside.on.presence !== undefined;
    put({ type: "subscribe", request, channel, since, presence });
  };
  /** Forgets a subscription. Returns whether it was there. */
  const remove = (inside) => {
    const { subscription } = inside;
    if (subscription.ended) return false;
    subscription.ended = true;
    clearTimeout(inside.timer);
    numbers.delete(inside.number);
    return all.delete(subscription.channel);
  };
  const end = (inside, code, text) => remove(inside) && call(inside.on, "unsubscribed", code, text);

  return {
    add: (channel, on = {}, { since = null } = {}) => {
      if (all.has(channel)) throw new Error(`this connection subscribes to ${channel} already`);
      const subscription = { connection, channel, position: since && { ...since }, ended: false };
      const inside = { subscription, on, isBegun: false };
      subscription.unsubscribe = () => {
        if (!remove(inside) || !isReady()) return;
        const { number } = inside;
        if (number !== undefined) return put({ type: "unsubscribe", channel: number });
        for (const [request, of] of asked) {
          if (of === inside && asked.delete(request)) dropped.set(request, channel);
        }
      };
      const isOver = connection.status === "ended";
      const isFull = all.size + dropped.size >= SUBSCRIPTIONS_MAX;
      if (isOver || isFull) {
        const most = `this connection subscribes to ${all.size} channels, which is the most`;
        const why = isOver ? ["connection_lost", "the connection has ended"] : ["limit", most];
        subscription.ended = true;
        queueMicrotask(() => call(on, "unsubscribed", ...why));
        return subscription;
      }
      all.set(channel, inside);
      if (isReady()) ask(inside);
      return subscription;
    },
    /** Subscribes on a new connection. */
    subscribe: () => {
      for (const map of [numbers, asked, dropped]) map.clear();
      for (const inside of all.values()) {
        clearTimeout(inside.timer);
        inside.number = undefined;
        ask(inside);
      }
    },
    end: (code, text) => {
      for (const inside of [...all.values()]) end(inside, code, text);
    },
    /** The node refused a request. Returns whether it was a subscription. */
    refused: (request, code, text, retryMs = RETRY_MS) => {
      if (dropped.delete(request)) return true;
      const inside = asked.get(request);
      if (!asked.delete(request)) return false;
      if (inside.isBegun && PASSING.includes(code)) {
        inside.timer = setTimeout(() => isReady() && ask(inside), retryMs);
      } else end(inside, code, text);
      return true;
    },
    handlers: {
      subscribed: ({ request, channel, epoch, offset, recovered = false, members = 0 }) => {
        const name = dropped.get(request);
        if (dropped.delete(request)) {
          // A later subscription to it has taken the place of this one.
          if (!all.has(name)) put({ type: "unsubscribe", channel });
          return;
        }
        const inside = asked.get(request);
        if (!asked.delete(request)) return;
        const { subscription, on } = inside, { position } = subscription;
        const isSame = position?.epoch === epoch;
        const missed = isSame ? Math.max(offset - position.offset, 0) : position ? offset : 0;
        const at = isSame ? Math.max(offset, position.offset) : offset;
        subscription.position = { epoch, offset: at };
        Object.assign(inside, { number: channel, isBegun: true });
        numbers.set(channel, inside);
        recovered &&= position !== null && missed === 0;
        call(on, "subscribed", { recovered, missed, members });
      },
      publication: ({ channel, offset, user, payload = null }) => {
        const inside = numbers.get(channel);
        // It was unsubscribed from, or is known.
        if (!inside || !(offset > inside.subscription.position.offset)) return;
        const { subscription, on } = inside;
        const missed = offset - subscription.position.offset - 1;
        subscription.position = { ...subscription.position, offset };
        if (missed > 0) call(on, "missed", missed);
        if (!subscription.ended) call(on, "publication", payload, { offset, user, payload });
      },
      unsubscribed: ({ channel, code, text }) => {
        const inside = numbers.get(channel);
        if (inside) end(inside, code, text);
      },
      presence: ({ channel, type, ...member }) => {
        const inside = numbers.get(channel);
        if (inside) call(inside.on, "presence", member);
      },
    },
  };
}

/** A room of a connection, and the functions that the connection calls. */
function makeRoom(connection, on, links) {
  const { put, post, ask, fail, end, leave, progress, rooms } = links;
  const room = { connection, state: null, player: null, key: null, version: 0, number: null };
  Object.assign(room, { left: false, patches: 0 });
  // The room's epoch, the copy's last version, how many messages and snapshots in a row could not
  // be used, and the last event's number.
  let epoch, newest = 0, unusable = 0, snapshots = 0, events = 0;
  // Requests made before the room is joined, and their length.
  let early = [], earlyLength = 0, settle;
  room.joined = new Promise((resolve, reject) => (settle = { resolve, reject }));
  // `left` says so too.
  room.joined.catch(() => {});

  const asks = (message) =>
    new Promise((resolve, reject) => {
      const refuse = (code, text) => reject(failure(code, text));
      const start = (message) => {
        const entry = { inside, resolve, reject: refuse };
        if (!ask({ ...message, room: room.number }, entry)) refuse("limit", TOO_MUCH);
      };
      if (room.number !== null) return start(message);
      if (room.left) return refuse("not_joined", "not in the room");
      if (earlyLength >= UNCONFIRMED_LENGTH_MAX) return refuse("limit", TOO_MUCH);
      // As it is now, whatever becomes of the payload.
      const text = JSON.stringify(message);
      earlyLength += text.length;
      early.push({ start: () => start(JSON.parse(text)), refuse });
    });
  room.send = (message, payload) =>
    room.number !== null && post({ type: "send", room: room.number, message, payload }) > 0;
  room.request = (message, payload) => asks({ type: "request", message, payload });
  // Whatever the answer: the stay is over.
  room.leave = () => asks({ type: "leave" }).catch((error) => {
    if (error.code === "limit") throw error;
    inside.end("left", "");
  });
  room.close = () => connection.close();

  /** The copy can't use a message: asks for a snapshot, but not forever. */
  const fellOut = (reason, text) => {
    room.version = null;
    call(on, "outOfStep", new OutOfStep(reason, text));
    // After two unreadable snapshots in a row, a third would be the same.
    if (reason === "snapshot" && ++snapshots > 1) {
      leave(room.number);
      return inside.end("bad_message", `two snapshots in a row can't be read: ${text}`);
    }
    if (++unusable > UNUSABLE_IN_A_ROW_MAX) {
      const failed = `the server sent ${unusable} messages in a row that this page can't use`;
      return end("bad_message", `${failed}: ${text}; reload the page`);
    }
    console.warn("playfield: asking for a snapshot:", text);
    put({ type: "resync", room: room.number });
  };
  const isAt = (version) => {
    progress();
    Object.assign(room, { version });
    newest = version;
    unusable = snapshots = 0;
    settle.resolve(room);
    call(on, "change", room);
  };

  const inside = {
    room,
    on,
    /** How long the connection may be silent while this client is in the room. */
    silence: Infinity,
    /** How long the room keeps the player's seat after the connection is lost, in ms. */
    grace: Infinity,
    /** How many messages the node had to forget since the last event. */
    missing: 0,
    /** The copy, as a client that resumes states it. */
    copy: () => ({ room: room.number, epoch, version: room.version ?? 0 }),
    end: (code, text) => {
      if (room.left) return;
      rooms.delete(room.number);
      room.number = null;
      room.left = true;
      for (const { refuse } of early.splice(0)) refuse(code, text);
      settle.reject(failure(code, text));
      fail((entry) => entry.inside === inside, code, text);
      tell(on, text);
      call(on, "left", code, text);
    },
    joined: (message) => {
      const { room: number, player, id, key = null } = message;
      Object.assign(room, { number, player, id, key, version: null });
      ({ epoch } = message);
      inside.silence = message.silence_ms || Infinity;
      inside.grace = message.grace_ms ?? Infinity;
      rooms.set(number, inside);
      for (const { start } of early.splice(0)) start();
    },
    snapshot: (message) => {
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
      if (message.version !== room.version) return;
      if (digest(room.state) !== Number(message.digest)) {
        fellOut("digest", `the copy's digest at version ${room.version} differs from the server's`);
      }
    },
    patch: ({ base, version, ops }) => {
      if (room.version === null) return; // a snapshot is on its way
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
    event: ({ sequence, message, payload }) => {
      const missed = sequence - events - 1;
      if (!(missed >= 0 && missed <= inside.missing)) {
        return end("bad_message", `event ${sequence} came after event ${events}`);
      }
      events = sequence;
      inside.missing = 0;
      if (missed > 0) call(on, "missed", missed);
      call(on, "event", message, payload);
    },
    left: ({ code, text }) => inside.end(code, text),
  };
  return inside;
}
