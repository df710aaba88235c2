/**
 * The protocol's messages in `packed` (docs/protocol.md, "Messages"), by the tables in tables.ts:
 * names and fields, in the order of kinds. A field is `name:type`. Types: `v` a varint of 64 bits,
 * `u` of 32, `t` text, `b` bytes (base64 in a message), `o` bool, `8` a byte, `c` code, `d` digest,
 * `m` pairs of texts, `x` raw bytes, `r` the rest, `{0}` a struct of a line above; `?` before it is
 * an option, and `*` a list.
 */

import { fromBase64 } from "./base64.js";
import { codeOf } from "./codes.js";
import { DecodeError } from "./error.js";
import { Reader } from "./reader.js";
import { MORE_CLIENT, MORE_SERVER, NODES_SERVER, ROOMS_CLIENT, ROOMS_SERVER } from "./tables.js";
import { Writer } from "./writer.js";

/** A message: the object that it is in `json`, in which payloads and bodies are bytes. */
export type Message = { type: string; [member: string]: any };

type Field = { name: string; of: string | Field[]; isOption: boolean; isList: boolean };
export interface Table {
  byKind: Map<number, [name: string, Field[]]>;
  byName: Map<string, [kind: number, Field[]]>;
}

/** Reads tables; before a table, the kind of its first message, if it does not follow the last. */
export function table(kind: number, ...parts: (number | string)[]): Table {
  const byKind: Table["byKind"] = new Map(), byName: Table["byName"] = new Map();
  const structs: Record<string, Field[]> = {};
  const field = (text: string): Field => {
    const [, name, mark, of] = /^(\w+):([?*]?)(.+)$/.exec(text)!;
    return { name, of: structs[of] ?? of, isOption: mark === "?", isList: mark === "*" };
  };
  // A line that is indented further continues the one before.
  for (const line of parts.join("\n  ").trim().split(/\s*\n {2}(?! )/)) {
    const [name, ...rest] = line.split(/\s+/), fields = rest.map(field);
    if (name[0] === "{") structs[name] = fields;
    else if (+name) kind = +name;
    else {
      byKind.set(kind, [name, fields]);
      byName.set(name, [kind++, fields]);
    }
  }
  return { byKind, byName };
}

/** All messages, those of channels and devices too. */
export const CLIENT = /* @__PURE__ */ table(0x01, ROOMS_CLIENT, MORE_CLIENT);
export const SERVER = /* @__PURE__ */ table(0x41, ROOMS_SERVER, MORE_SERVER, NODES_SERVER);

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
