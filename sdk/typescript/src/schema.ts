/** Schemas, as a node sends them (docs/protocol.md, "Schemas"). */

import { utf8 } from "./base64.js";
import { DecodeError } from "./error.js";
import { type Integer64, integer } from "./reader.js";

export type Word =
  | "bool" | "u8" | "u16" | "u32" | "u64" | "i8" | "i16" | "i32" | "i64" | "f32" | "f64"
  | "text" | "bytes" | "player" | "unit";

export type Type =
  | Word
  | { option: Type }
  | { list: Type }
  | { array: Type; length: number }
  | { map: Type; key: Word }
  | { set: Word }
  | Quantized
  | { struct: string; fields: Field[] }
  | { enum: string; variants: Variant[] };

export type Quantized = { quantized: "f32" | "f64"; step: number; range?: [number, number]; angle?: boolean };
export type Field = { name: string; type: Type; policy?: "owner" | "view"; default_digest?: string };
export type Variant = { name: string; fields: Field[] };

export interface Schema {
  fingerprint: Integer64;
  state: Type;
  options: Type;
  messages: { name: string; type: Type; reply: Type }[];
  events: { name: string; type: Type }[];
}

const SCHEMA_BYTES_MAX = 2 ** 20, TYPE_DEPTH_MAX = 24;
const INTEGERS = ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"];
const WORDS = [...INTEGERS, "bool", "f32", "f64", "text", "bytes", "player", "unit"];
const KEYS = [...INTEGERS, "text", "player"];

type Json = Record<string, unknown>;

/**
 * Reads a schema from its JSON.
 *
 * @throws {DecodeError} If it is not a schema, exceeds a limit of docs/protocol.md, or its
 *   fingerprint does not match its content.
 */
export function readSchema(source: string | object): Schema {
  const text = typeof source === "string" ? source : JSON.stringify(source);
  const { length } = utf8(text);
  if (length > SCHEMA_BYTES_MAX) refuse("the schema", `has ${length} bytes, at most ${SCHEMA_BYTES_MAX}`);
  let schema: Schema;
  try {
    schema = JSON.parse(text);
  } catch (error) {
    throw new DecodeError(`a schema is not JSON: ${(error as Error).message}`);
  }
  const root = object(schema, "the schema");
  checkType(root.state, "state", 0);
  if (!isStruct(schema.state)) refuse("state", "is not a struct");
  checkType(root.options, "options", 0);
  named(root.messages, "messages", (message, place) => {
    checkType(message.type, place, 0);
    checkType(message.reply, `${place}, the reply`, 0);
  });
  named(root.events, "events", (event, place) => checkType(event.type, place, 0));
  const own = fingerprint(schema);
  if (String(own) !== String(root.fingerprint)) {
    refuse("fingerprint", `is ${root.fingerprint}, but that of the content is ${own}`);
  }
  return schema;
}

const isStruct = (type: Type): boolean => typeof type === "object" && "struct" in type;

function refuse(place: string, text: string): never {
  throw new DecodeError(`a schema can't be read: ${place} ${text}`);
}

function object(value: unknown, place: string): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) refuse(place, "is not an object");
  return value as Json;
}

function named(list: unknown, place: string, check: (item: Json, place: string) => void): void {
  if (!Array.isArray(list)) return refuse(place, "is not a list");
  const names = new Set();
  for (const item of list) {
    const { name } = object(item, place);
    if (typeof name !== "string") refuse(place, "has an item without a name");
    if (names.has(name)) refuse(place, `has two items with the name ${JSON.stringify(name)}`);
    names.add(name);
    check(item, `${place}.${name as string}`);
  }
}

function checkType(type: unknown, place: string, depth: number): void {
  if (depth === TYPE_DEPTH_MAX) refuse(place, `has types nested more than ${TYPE_DEPTH_MAX} deep`);
  if (typeof type === "string") {
    if (!WORDS.includes(type)) refuse(place, `has the unknown type ${JSON.stringify(type)}`);
    return;
  }
  const of = object(type, place), has = (name: string): boolean => Object.hasOwn(of, name);
  const within = (inner: unknown): void => checkType(inner, place, depth + 1);
  const key = (word: unknown): void => {
    if (!KEYS.includes(word as string)) refuse(place, `has the key ${JSON.stringify(word)}`);
  };
  const fields = (list: unknown): void =>
    named(list, place, ({ type, policy, default_digest: digest }, inner) => {
      if (policy !== undefined && policy !== "owner" && policy !== "view") refuse(inner, "has an unknown policy");
      const isDigest = typeof digest === "string" && /^[0-9a-f]{16}$/.test(digest);
      if (digest !== undefined && !(isDigest && policy)) refuse(inner, "has an invalid default_digest");
      checkType(type, inner, depth + 1);
    });
  if (has("option")) within(of.option);
  else if (has("list")) within(of.list);
  else if (has("array")) {
    const length = of.length as number;
    if (!Number.isInteger(length) || length < 1 || length >= 2 ** 32) refuse(place, "has an array without a length");
    within(of.array);
  } else if (has("map")) {
    key(of.key);
    within(of.map);
  } else if (has("set")) key(of.set);
  else if (has("quantized")) checkSteps(of as unknown as Quantized, place);
  else if (has("struct") && typeof of.struct === "string") fields(of.fields);
  else if (has("enum") && typeof of.enum === "string") {
    named(of.variants, place, (variant) => fields(variant.fields));
    if (!(of.variants as unknown[]).length) refuse(place, "has no variants");
  } else refuse(place, "is not a type");
}

function checkSteps({ quantized, step, range, angle }: Quantized, place: string): void {
  const isFinite = Number.isFinite;
  if (quantized !== "f32" && quantized !== "f64") refuse(place, "quantizes what is not a float");
  if (!(isFinite(step) && step > 0)) refuse(place, "has a step that is not greater than 0");
  if (range !== undefined) {
    const isRange = Array.isArray(range) && range.length === 2 && range.every(isFinite) && range[0] < range[1];
    if (!isRange) refuse(place, "has an invalid range");
  }
  if (angle !== undefined && (angle !== true || range)) refuse(place, "has an invalid angle");
}

/** FNV-1a with 64 bits of the canonical text. */
export function fingerprint(schema: Schema): Integer64 {
  let hash = 0xcbf29ce484222325n;
  for (const byte of utf8(canonicalText(schema))) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return integer(hash);
}

/** What is on the wire, as a text (docs/protocol.md). */
export function canonicalText({ state, options, messages, events }: Schema): string {
  const lines = [`state ${text(state, "")}`, `options ${text(options, "")}`];
  for (const { name, type, reply } of messages) {
    lines.push(`message ${quoted(name)} ${text(type, "")} -> ${text(reply, "")}`);
  }
  for (const { name, type } of events) lines.push(`event ${quoted(name)} ${text(type, "")}`);
  return lines.join("\n") + "\n";
}

function text(type: Type, indent: string): string {
  if (typeof type === "string") return type;
  const inner = `${indent}  `, of = (type: Type): string => text(type, indent);
  const fields = (list: Field[], indent: string): string => {
    const inner = `${indent}  `;
    const lines = list.map(({ name, policy, type, default_digest: digest }) => {
      const after = digest === undefined ? "" : ` default_digest ${digest}`;
      return `${inner}${policy ? `${policy} ` : ""}${quoted(name)} ${text(type, inner)}${after}\n`;
    });
    return `{\n${lines.join("")}${indent}}`;
  };
  if ("option" in type) return `option<${of(type.option)}>`;
  if ("list" in type) return `list<${of(type.list)}>`;
  if ("array" in type) return `array<${of(type.array)}, ${type.length}>`;
  if ("map" in type) return `map<${type.key}, ${of(type.map)}>`;
  if ("set" in type) return `set<${type.set}>`;
  if ("struct" in type) return fields(type.fields, indent);
  if ("enum" in type) {
    const lines = type.variants.map(({ name, fields: list }) => `${inner}${quoted(name)} ${fields(list, inner)}\n`);
    return `one of {\n${lines.join("")}${indent}}`;
  }
  const { quantized, step, range, angle } = type;
  const bounds = angle ? " angle" : range ? ` from ${decimal(range[0])} to ${decimal(range[1])}` : "";
  return `${quantized}${bounds} by ${decimal(step)}`;
}

/** A float as Rust's `{:?}` writes it: with a point, and with an exponent below 1e-5 or from 1e16. */
function decimal(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e16)) {
    return value.toExponential().replace("e+", "e");
  }
  const text = String(value);
  return text.includes(".") ? text : Object.is(value, -0) ? "-0.0" : `${text}.0`;
}

/** A name: quoted, unless it is a plain word. */
function quoted(name: string): string {
  if (/^\w+$/.test(name)) return name;
  const named: Record<string, string> = { "\0": "\\0", "\t": "\\t", "\n": "\\n", "\r": "\\r", '"': '\\"', "\\": "\\\\" };
  const escaped = name.replace(/["\\\p{C}\p{Zl}\p{Zp}]|[^\P{Z} ]/gu, (letter) =>
    named[letter] ?? `\\u{${letter.codePointAt(0)!.toString(16)}}`);
  return `"${escaped}"`;
}
