/**
 * The protocol's messages in `packed` (docs/protocol.md, "Messages"), as a table: kind, name, and
 * fields. A field is `name:type`. Types: `v` a varint of 64 bits, `u` of 32, `t` text, `b` bytes
 * (base64 in a message), `o` bool, `c` code, `d` digest, `m` pairs of texts, `x` raw bytes, `r` the
 * rest, `{name}` a struct of a line above; `?` before it is an option, and `*` a list.
 */

import { fromBase64 } from "./base64.js";
import { codeOf } from "./codes.js";
import { DecodeError } from "./error.js";
import { Reader } from "./reader.js";
import { Writer } from "./writer.js";

/** A message: the object that it is in `json`, in which payloads and bodies are bytes. */
export type Message = { type: string; [member: string]: any };

type Field = { name: string; of: string | Field[]; isOption: boolean; isList: boolean };
export interface Table {
  byKind: Map<number, [name: string, Field[]]>;
  byName: Map<string, [kind: number, Field[]]>;
}

/** Reads tables. */
export function table(...texts: string[]): Table {
  const byKind: Table["byKind"] = new Map(), byName: Table["byName"] = new Map();
  const structs: Record<string, Field[]> = {};
  const field = (text: string): Field => {
    const [, name, mark, of] = /^(\w+):([?*]?)(.+)$/.exec(text)!;
    return { name, of: structs[of] ?? of, isOption: mark === "?", isList: mark === "*" };
  };
  // A line that is indented further continues the one before.
  for (const line of texts.join("").trim().split(/\n+ {2}(?! )/)) {
    const [first, second, ...rest] = line.split(/\s+/), fields = rest.map(field);
    if (first[0] === "{") {
      structs[first] = [field(second), ...fields];
      continue;
    }
    const kind = parseInt(first, 16);
    byKind.set(kind, [second, fields]);
    byName.set(second, [kind, fields]);
  }
  return { byKind, byName };
}

/** What a client sends about connections and rooms. */
export const ROOMS_CLIENT = `
  {copy} room:u epoch:v version:v
  {resume} token:b received:v rooms:*{copy}
  {schema} room_type:t fingerprint:v
  01 hello protocol:v format:8 name:t token:b resumable:o resume:?{resume} schemas:*{schema}
  02 join request:u room:t
  0F join_by_key request:u room_type:t key:t
  03 create request:u room_type:t private:o code:o key:?t options:r
  04 join_or_create request:u room_type:t key:?t options:r
  05 list request:u room_type:?t filter:m limit:u
  06 leave request:u room:u
  07 request room:u request:u message:v payload:r
  08 send room:u message:v payload:r
  09 ack received:v
  0A resync room:u
  0B ping nonce:v
  0C pong nonce:v
  0D goodbye
  0E schema request:u room_type:t
`;

/** What a node says of them. */
export const ROOMS_SERVER = `
  {lost} room:?u messages:v
  {resumed} received:v lost:*{lost}
  {listed} id:t room_type:t key:?t players:v capacity:v locked:o metadata:m
  41 welcome protocol:v session:v resume:b heartbeat_ms:v max_message_bytes:v grace_ms:v
     resumed:?{resumed}
  42 joined request:u room:u id:t room_type:t key:?t player:v epoch:v
     tick_hz:v sync_hz:v fingerprint:v silence_ms:v grace_ms:v
  43 listed request:u rooms:*{listed}
  4E schema request:?u room_type:t schema:r
  44 left request:?u room:u code:c text:t
  45 reply request:u payload:r
  46 event room:u sequence:v version:v message:v payload:r
  47 snapshot room:u epoch:v version:v body:r
  48 patch room:u base:v advance:v body:r
  4D check room:u version:v digest:d
  49 ping nonce:v
  4A pong nonce:v time_us:v
  4F ack received:v
  4B error request:?u room:?u code:c text:t retry_after_ms:?v
  4C goodbye code:c text:t
`;

const MORE_CLIENT = `
  {position} epoch:v offset:v
  10 subscribe request:u channel:t since:?{position} presence:o
  11 unsubscribe channel:v
  12 publish request:?u channel:t payload:r
  13 members request:u channel:t
  14 history request:u channel:t since:?{position} limit:u
  15 register request:u device:t metadata:m tags:*t
  16 report request:?u payload:r
  17 answer command:v error:?t payload:r
`;

const MORE_SERVER = `
  {member} session:v user:?t name:t
  {publication} offset:v user:?t payload:x
  50 subscribed request:u channel:v epoch:v offset:v recovered:o bytes:o members:v
  51 publication channel:v offset:v user:?t payload:r
  52 unsubscribed channel:v code:c text:t
  53 presence channel:v sequence:v joined:o session:v user:?t name:t
  54 published request:u offset:v
  55 members request:u sequence:v count:v members:*{member}
  56 history request:u epoch:v offset:v bytes:o publications:*{publication}
  57 registered request:u is_new:o bytes:o
  58 command command:?v payload:r
`;

/** All messages, those of channels and devices too. */
export const CLIENT = /* @__PURE__ */ table(ROOMS_CLIENT, MORE_CLIENT);
export const SERVER = /* @__PURE__ */ table(ROOMS_SERVER, MORE_SERVER);

/** Reads a message. Absent options are absent members. */
export function decode(table: Table, bytes: Uint8Array): Message {
  const reader = new Reader(bytes), kind = reader.u8(), found = table.byKind.get(kind);
  if (!found) throw new DecodeError(`there is no message of kind ${kind}`, 0);
  const message: Message = { type: found[0], ...readFields(reader, found[1]) };
  reader.finish();
  if (message.type === "patch") {
    message.version = message.base + message.advance;
    if (message.version > Number.MAX_SAFE_INTEGER) {
      throw new DecodeError("a patch leads past the last version");
    }
  }
  return message;
}

/** Writes a message. Absent members are those of docs/protocol.md that may be absent. */
export function encode(table: Table, message: Message): Uint8Array {
  const found = table.byName.get(message.type);
  if (!found) throw new Error(`there is no message of type ${message.type}`);
  const writer = new Writer();
  writer.u8(found[0]);
  writeFields(writer, found[1], message);
  return writer.done();
}

function readFields(reader: Reader, fields: Field[]): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (const { name, of, isOption, isList } of fields) {
    if (isOption && !reader.bool()) continue;
    const one = (): unknown => read(reader, of);
    object[name] = isList ? reader.many(reader.count(), one) : one();
  }
  return object;
}

function read(reader: Reader, of: Field["of"]): unknown {
  return typeof of === "string" ? READ[of](reader) : readFields(reader, of);
}

/** How each type is read. */
const READ: Record<string, (reader: Reader) => unknown> = {
  v: (reader) => reader.unsigned64(),
  u: (reader) => reader.varint32(),
  t: (reader) => reader.text(),
  b: (reader) => reader.base64(),
  o: (reader) => reader.bool(),
  8: (reader) => reader.u8(),
  x: (reader) => reader.blob(),
  r: (reader) => reader.rest(),
  m: (reader) =>
    Object.fromEntries(reader.many(reader.count(), () => [reader.text(), reader.text()])),
  d: (reader) => reader.view.getBigUint64(reader.skip(8), true),
  c: (reader) => {
    const { at } = reader, number = reader.varint();
    return codeOf(number) ?? reader.refuse(`there is no code ${number}`, at);
  },
};

function writeFields(writer: Writer, fields: Field[], object: any): void {
  for (const { name, of, isOption, isList } of fields) {
    const value = object[name], isThere = value !== undefined && value !== null;
    if (isOption) writer.u8(isThere ? 1 : 0);
    if (isOption && !isThere) continue;
    if (!isList) write(writer, of, value);
    else {
      writer.varint(value?.length ?? 0);
      for (const one of value ?? []) write(writer, of, one);
    }
  }
}

function write(writer: Writer, of: Field["of"], value: any): void {
  if (typeof of === "string") WRITE[of](writer, value);
  else writeFields(writer, of, value);
}

/** How each type is written that is in a client's messages. */
export const WRITE: Record<string, (writer: Writer, value: any) => void> = {
  v: (writer, value) => writer.varint(typeof value === "string" ? BigInt(value) : (value ?? 0)),
  u: (writer, value) => writer.varint(value ?? 0),
  t: (writer, value) => writer.text(value ?? ""),
  b: (writer, value) => writer.blob(fromBase64(value ?? "")),
  o: (writer, value) => writer.u8(Number(value ?? 0)),
  8: (writer, value) => writer.u8(value ?? 0),
  r: (writer, value) => writer.raw(value ?? new Uint8Array()),
  m: (writer, value) => {
    const pairs = Object.entries<string>(value ?? {});
    writer.varint(pairs.length);
    for (const pair of pairs) for (const text of pair) writer.text(text);
  },
};
