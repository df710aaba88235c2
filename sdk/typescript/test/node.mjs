// The node's end of a client's WebSocket, played by a test.

import { NAMES } from "../dist/codes.js";
import { CLIENT, decode, encode, SERVER, WRITE } from "../dist/messages.js";
import { readSchema } from "../dist/schema.js";

// What only a node writes.
Object.assign(WRITE, {
  c: (writer, code) =>
    writer.varint(typeof code === "number" ? code : NAMES.indexOf(code) + 1),
  d: (writer, digest) => {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigUint64(0, BigInt(digest), true);
    writer.raw(bytes);
  },
  x: (writer, bytes) => writer.blob(bytes),
});

/** In `json`. */
export class Socket {
  static OPEN = 1;
  readyState = 0;
  sent = [];
  constructor() {
    Socket.last = this;
  }
  send(text) {
    this.sent.push(JSON.parse(text));
  }
  /** Connects, and welcomes the client. Without `how` it keeps no session. */
  open(how = {}) {
    this.readyState = 1;
    this.onopen();
    this.says({
      type: "welcome", heartbeat_ms: 30_000, resume: "", grace_ms: 0, max_message_bytes: 65_536,
      ...how,
    });
    return this;
  }
  says(message) {
    this.onmessage({ data: JSON.stringify(message) });
  }
  /** The answer to the last message of a type. */
  request(type) {
    return this.sent.findLast((message) => message.type === type)?.request;
  }
  /** Joins the client's last join, as room 1 of this state. */
  joins(state) {
    const { request } = this.sent.findLast(
      ({ type }) => type.includes("join") || type === "create",
    );
    this.says({
      type: "joined",
      request,
      room: 1,
      player: 1,
      id: "r1",
      key: this.key,
      room_type: "lab",
      epoch: 3,
    });
    this.version = 1;
    this.says({ type: "snapshot", room: 1, epoch: 3, version: 1, ops: [[[], state]] });
  }
  patches(...ops) {
    const base = this.version++;
    this.says({ type: "patch", room: 1, base, version: this.version, ops });
  }
  close() {
    this.readyState = 3;
  }
}

/** In `packed`. */
export class PackedSocket extends Socket {
  send(frame) {
    this.sent.push(decode(CLIENT, frame));
  }
  says(message) {
    this.hears(encode(SERVER, message));
  }
  hears(bytes) {
    this.onmessage({ data: bytes.slice().buffer });
  }
  /** Gives the schema that the client has asked for. */
  gives(schema) {
    this.saysSchema(schema, { request: this.request("schema") });
  }
  saysSchema(schema, how) {
    const text = new TextEncoder().encode(JSON.stringify(schema));
    this.says({ type: "schema", ...how, schema: text });
  }
}

/** A schema with the fingerprint of its content. */
export function schemaOf(state, options = "unit", messages = [], events = []) {
  const schema = { state, options, messages, events, fingerprint: 0 };
  try {
    readSchema(schema);
  } catch (error) {
    const [, own] = /content is (\d+)/.exec(error.message);
    return { ...schema, fingerprint: BigInt(own) <= Number.MAX_SAFE_INTEGER ? Number(own) : own };
  }
}
