/**
 * The protocol's messages in `packed` (docs/protocol.md, "Messages"), as a table: kind, name, and
 * fields. A field is `name:type`. Types: `v` a varint of 64 bits, `u` of 32, `t` text, `b` bytes
 * (base64 in a message), `o` bool, `c` code, `d` digest, `m` pairs of texts, `x` raw bytes, `r` the
 * rest, `{name}` a struct; `?` before it is an option, and `*` a list.
 */

import { fromBase64 } from "./base64.js";
import { type Code, codeOf, numberOf } from "./codes.js";
import { DecodeError } from "./error.js";
import { Reader } from "./reader.js";
import { Writer } from "./writer.js";

/** A message: the object that it is in `json`, in which payloads and bodies are bytes. */
export type Message = { type: string; [member: string]: any };

type Field = { name: string; of: string; isOption: boolean; isList: boolean };
type Table = { byKind: Map<number, [string, Field[]]>; byName: Map<string, [number, Field[]]> };

const fieldsOf = (text: string): Field[] =>
  text.split(" ").filter(Boolean).map((field) => {
    const [, name, mark, of] = /^(\w+):([?*]?)(.+)$/.exec(field)!;
    return { name, of, isOption: mark === "?", isList: mark === "*" };
  });

const table = (text: string): Table => {
  const byKind: Table["byKind"] = new Map(), byName: Table["byName"] = new Map();
  // A line that is indented further continues the one before.
  for (const line of text.trim().split(/\n {2}(?! )/)) {
    const [kind, name, ...rest] = line.split(/\s+/), fields = fieldsOf(rest.join(" "));
    byKind.set(parseInt(kind, 16), [name, fields]);
    byName.set(name, [parseInt(kind, 16), fields]);
  }
  return { byKind, byName };
};

const STRUCTS = Object.fromEntries(
  Object.entries({
    resume: "token:b received:v rooms:*{copy}",
    copy: "room:u epoch:v version:v",
    schema: "room_type:t fingerprint:v",
    position: "epoch:v offset:v",
    resumed: "received:v lost:*{lost}",
    lost: "room:?u messages:v",
    listed: "id:t room_type:t key:?t players:v capacity:v locked:o metadata:m",
    member: "session:v user:?t name:t",
    publication: "offset:v user:?t payload:x",
  }).map(([name, fields]) => [`{${name}}`, fieldsOf(fields)]),
);

export const CLIENT = table(`
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
  10 subscribe request:u channel:t since:?{position} presence:o
  11 unsubscribe channel:v
  12 publish request:?u channel:t payload:r
  13 members request:u channel:t
  14 history request:u channel:t since:?{position} limit:u
  15 register request:u device:t metadata:m tags:*t
  16 report request:?u payload:r
  17 answer command:v error:?t payload:r
`);

export const SERVER = table(`
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
  50 subscribed request:u channel:v epoch:v offset:v recovered:o bytes:o members:v
  51 publication channel:v offset:v user:?t payload:r
  52 unsubscribed channel:v code:c text:t
  53 presence channel:v sequence:v joined:o session:v user:?t name:t
  54 published request:u offset:v
  55 members request:u sequence:v count:v members:*{member}
  56 history request:u epoch:v offset:v bytes:o publications:*{publication}
  57 registered request:u is_new:o bytes:o
  58 command command:?v payload:r
`);

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
    object[name] = isList ? each(reader, () => read(reader, of)) : read(reader, of);
  }
  return object;
}

function each<T>(reader: Reader, one: () => T): T[] {
  return Array.from({ length: reader.count() }, one);
}

function read(reader: Reader, of: string): unknown {
  const { at } = reader;
  switch (of) {
    case "v": return reader.unsigned64();
    case "u": return reader.varint32();
    case "t": return reader.text();
    case "b": return reader.base64();
    case "o": return reader.bool();
    case "8": return format(reader.u8(), at);
    case "x": return reader.blob();
    case "r": return reader.rest();
    case "m": return Object.fromEntries(each(reader, () => [reader.text(), reader.text()]));
    case "d": return reader.view.getBigUint64(reader.skip(8), true);
    case "c": return code(reader.varint(), at);
    default: return readFields(reader, STRUCTS[of]);
  }
}

function format(number: number, at: number): number {
  if (number > 2) throw new DecodeError(`there is no format ${number}`, at);
  return number;
}

function code(number: number, at: number): Code {
  try {
    return codeOf(number);
  } catch {
    throw new DecodeError(`there is no code ${number}`, at);
  }
}

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

function write(writer: Writer, of: string, value: any): void {
  switch (of) {
    case "v":
    case "u":
      return writer.varint(typeof value === "string" ? BigInt(value) : (value ?? 0));
    case "t":
      return writer.text(value ?? "");
    case "b":
      return writer.blob(fromBase64(value ?? ""));
    case "o":
    case "8":
      return writer.u8(Number(value ?? 0));
    case "x":
      return writer.blob(value);
    case "r":
      return writer.raw(value ?? new Uint8Array());
    case "d":
      return writer.u64(BigInt(value));
    case "c":
      return writer.varint(numberOf(value));
    case "m": {
      const pairs = Object.entries(value ?? {});
      writer.varint(pairs.length);
      for (const pair of pairs) for (const text of pair) writer.text(text as string);
      return;
    }
    default: return writeFields(writer, STRUCTS[of], value);
  }
}

