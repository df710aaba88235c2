// A world for the tests of the browser's client: a clock that only tests advance, a network that
// loses connections, and a node that keeps sessions as docs/protocol.md says, with rooms that count.

import { dice } from "./dice.mjs";

export * as playfield from "../../../../crates/web/dist/client/playfield.js";

/** Replaces the timers, the clocks, the window and the WebSocket. */
export class World {
  time = 0;
  timers = [];
  listeners = new Map();
  sockets = [];
  nextTimer = 1;
  constructor(seed = 1) {
    this.dice = dice(seed);
    this.delay = () => this.dice.roll() * 40;
    const world = this;
    Object.assign(globalThis, {
      setTimeout: (call, wait) => this.after(wait, call),
      clearTimeout: (timer) => (this.timers = this.timers.filter(({ id }) => id !== timer)),
      document: { hidden: false },
      location: { protocol: "http:", host: "here" },
      addEventListener: (type, call, { signal }) => {
        const listener = { type, call };
        this.listeners.set(listener, listener);
        signal.addEventListener("abort", () => this.listeners.delete(listener));
      },
      WebSocket: class extends Socket {
        static OPEN = 1;
        constructor() {
          super(world);
        }
      },
    });
    performance.now = Date.now = () => this.time;
    Math.random = this.dice.roll;
  }
  after(wait, call) {
    this.timers.push({ at: this.time + wait, id: this.nextTimer, call });
    return this.nextTimer++;
  }
  /** Lets time pass, and what is due happen. Promises are settled in between. */
  async advance(span) {
    const until = this.time + span;
    for (;;) {
      await settled();
      const due = this.timers.reduce((a, b) => (a && (a.at < b.at || (a.at === b.at && a.id < b.id)) ? a : b), null);
      if (!due || due.at > until) break;
      this.timers.splice(this.timers.indexOf(due), 1);
      this.time = Math.max(this.time, due.at);
      due.call();
    }
    this.time = until;
  }
  /** The device sleeps: the clocks go on, and timers fire late. */
  sleep(span) {
    this.time += span;
  }
  happens(type, event = {}) {
    for (const listener of [...this.listeners.values()]) if (listener.type === type) listener.call({ type, ...event });
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

/** A WebSocket of the page. What is under way arrives in order, unless the connection is cut. */
class Socket {
  readyState = 0;
  sent = [];
  constructor(world) {
    this.world = world;
    world.sockets.push(this);
    world.onsocket?.(this);
  }
  send(text) {
    if (this.readyState === 0) throw new Error("it is not open yet");
    if (this.readyState > 1) return;
    this.sent.push(JSON.parse(text));
    this.travel("up", () => this.node?.hears(this, JSON.parse(text)));
  }
  close() {
    if (this.readyState > 1) return;
    this.travel("up", () => this.node?.hangsUp(this));
    this.readyState = 3;
  }
  // Each way is a queue: later messages are never earlier.
  travel(way, call) {
    const { world } = this;
    const at = Math.max(world.time + world.delay(), this[way] ?? 0);
    this[way] = at;
    world.after(at - world.time, () => this.isCut || call());
  }
  open() {
    this.readyState = 1;
    this.onopen?.();
  }
  says(message) {
    this.data(JSON.stringify(message));
  }
  data(data) {
    if (this.readyState === 1) this.onmessage?.({ data });
  }
  /** What is under way is lost. The page is told, unless the connection dies in silence. */
  cut(isSilent = false) {
    this.isCut = true;
    if (!isSilent) this.ends();
  }
  ends() {
    if (this.readyState > 1) return;
    this.readyState = 3;
    this.onclose?.();
  }
}

const COUNTED_UP = ["join", "join_by_key", "create", "join_or_create", "list", "schema", "leave", "request", "send"];
const COUNTED_DOWN = ["joined", "listed", "schema", "left", "reply", "event", "error"];
const HISTORY = 20;

/** A node with one player, who may be in several rooms. */
export class ModelNode {
  grace = 10_000;
  /** How long a connection may be silent, as its rooms want it. */
  silence = undefined;
  /** How long rooms keep a seat. */
  seat = undefined;
  /** How often its rooms tick per second. */
  ticks = 0;
  /** The most messages in a session's log. */
  logMax = Infinity;
  generation = 0;
  session = null;
  rooms = [];
  faults = [];
  sessions = 0;
  constructor(world) {
    this.world = world;
    world.onsocket = (socket) => {
      socket.node = this;
      world.after(world.delay(), () => {
        if (this.isDown) socket.ends();
        else if (!socket.isCut) socket.open();
      });
    };
    const sync = () => {
      this.sync();
      world.after(50, sync);
    };
    world.after(50, sync);
  }
  /** Sends to the present connection, if there is one. */
  says(message) {
    const { session } = this;
    if (COUNTED_DOWN.includes(message.type)) {
      session.log.push(message);
      session.sent += 1;
      if (session.log.length > this.logMax) session.lost.push(session.log.shift());
    }
    this.transmit(session.socket, message);
  }
  transmit(socket, message) {
    const text = JSON.stringify(message);
    socket?.travel("down", () => socket.data(text));
  }
  hangsUp(socket) {
    if (this.session?.socket === socket) this.session.socket = null;
  }
  hears(socket, message) {
    if (message.type === "hello") return this.hello(socket, message);
    const { session } = this;
    if (!session || session.socket !== socket) return; // taken over
    session.confirmed = session.token;
    if (COUNTED_UP.includes(message.type)) {
      session.received += 1;
      this[message.type](message);
      if (session.received % 3 === 0) this.says({ type: "ack", received: session.received });
    } else if (message.type === "ack") {
      if (message.received > session.sent) this.faults.push(`an ack of ${message.received}, but ${session.sent} were sent`);
      this.trim(message.received);
    } else if (message.type === "ping") {
      this.says({ type: "pong", nonce: message.nonce, time_us: Math.round((this.world.time - 7_000_000) * 1000) + 9e9 });
    } else if (message.type === "goodbye") {
      this.session = null;
    } else if (message.type !== "pong") this.faults.push(message);
  }
  trim(received) {
    const { session } = this;
    const gone = session.sent - session.log.length;
    session.log.splice(0, Math.max(received - gone, 0));
    session.lost.splice(0, session.lost.length - Math.max(session.sent - session.log.length - received, 0));
  }
  hello(socket, { resume, resumable }) {
    if (!resumable) this.faults.push("not resumable");
    const token = `token ${++this.generation}`;
    const welcome = { type: "welcome", protocol: 1, session: "9007199254740993", resume: token, heartbeat_ms: 30_000, grace_ms: this.grace };
    const { session } = this;
    if (!session || !resume || ![session.token, session.previous].includes(resume.token)) {
      if (resume && session) this.faults.push(`an old token: ${resume.token}`);
      this.sessions += 1;
      this.session = { token, previous: null, log: [], lost: [], sent: 0, received: 0, rooms: new Map(), socket };
      this.rooms = [];
      return this.transmit(socket, welcome);
    }
    if (session.socket) {
      this.transmit(session.socket, { type: "goodbye", code: "taken_over", text: "taken over" });
    }
    // The token before stays valid until the client has spoken after this welcome.
    if (resume.token === session.token) session.previous = session.token;
    session.token = token;
    session.socket = socket;
    this.trim(resume.received);
    if (resume.received > session.sent) this.faults.push(`received ${resume.received} of ${session.sent}`);
    const lost = new Map();
    for (const message of session.lost) lost.set(message.room_lost ?? message.room ?? 0, (lost.get(message.room_lost ?? message.room ?? 0) ?? 0) + 1);
    const resumed = { received: session.received, lost: [...lost].map(([room, messages]) => (room ? { room, messages } : { messages })) };
    this.transmit(socket, { ...welcome, resumed });
    for (const { room: number, epoch, version } of resume.rooms) {
      const room = session.rooms.get(number);
      if (!room) continue;
      const old = epoch === room.epoch && room.history.get(version);
      if (old) this.patch(room, version, old);
      else this.snapshot(room);
    }
    for (const message of session.log) {
      this.transmit(socket, message);
      const room = session.rooms.get(message.room);
      if (message.type === "joined" && room) this.snapshot(room);
    }
  }
  join_or_create({ request, room_type }) {
    const number = this.rooms.length + 1;
    const state = { sum: 0, last: null, marks: {} };
    const room = { number, epoch: 70 + number, version: 1, state, history: new Map(), executed: [], events: 0, clientHas: 0 };
    room.history.set(1, structuredClone(state));
    this.rooms.push(room);
    this.session.rooms.set(number, room);
    this.says({ type: "joined", request, room: number, id: `r${number}`, room_type, player: 3, epoch: room.epoch, tick_hz: this.ticks, sync_hz: 20, fingerprint: "1", silence_ms: this.silence, grace_ms: this.seat ?? this.grace });
    this.snapshot(room);
  }
  leave({ request, room: number }) {
    if (this.session.rooms.delete(number)) this.says({ type: "left", request, room: number, code: "left", text: "" });
    else this.says({ type: "error", request, room: number, code: "not_joined", text: "you are not in the room" });
  }
  request(message) {
    const room = this.session.rooms.get(message.room);
    if (!room) return this.says({ type: "error", request: message.request, code: "not_joined", text: "you are not in the room" });
    this.execute(room, message);
    this.says({ type: "reply", request: message.request, payload: message.payload, room_lost: message.room });
  }
  send(message) {
    const room = this.session.rooms.get(message.room);
    if (room) this.execute(room, message);
  }
  execute(room, { payload }) {
    room.executed.push(payload);
    room.state.sum += payload;
    room.state.marks[payload % 7] = payload;
    this.event(room, payload);
  }
  event(room, payload) {
    this.says({ type: "event", room: room.number, sequence: ++room.events, version: room.version, message: "Did", payload });
  }
  sync() {
    for (const room of this.session?.rooms.values() ?? []) {
      const last = room.history.get(room.version);
      if (JSON.stringify(last) === JSON.stringify(room.state)) continue;
      room.version += 1;
      room.history.set(room.version, structuredClone(room.state));
      room.history.delete(room.version - HISTORY);
      const old = room.history.get(room.clientHas);
      if (this.session.socket && old) this.patch(room, room.clientHas, old);
    }
  }
  patch(room, base, old) {
    const now = room.history.get(room.version);
    room.clientHas = room.version;
    if (base === room.version) return;
    const ops = [];
    for (const name of ["sum", "last"]) if (now[name] !== old[name]) ops.push([[name], now[name]]);
    for (const mark of Object.keys(now.marks)) if (now.marks[mark] !== old.marks[mark]) ops.push([["marks", mark], now.marks[mark]]);
    this.says({ type: "patch", room: room.number, base, version: room.version, ops });
  }
  snapshot(room) {
    room.clientHas = room.version;
    const ops = [[[], structuredClone(room.history.get(room.version))]];
    this.says({ type: "snapshot", room: room.number, epoch: room.epoch, version: room.version, ops });
  }
}
