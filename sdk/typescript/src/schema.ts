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
  | EnumType;

export type EnumType = { enum: string; variants: Variant[] };
export type Quantized = {
  quantized: "f32" | "f64";
  step: number;
  range?: [number, number];
  angle?: boolean;
};
export type Field = {
  name: string;
  type: Type;
  policy?: "owner" | "view";
  default_digest?: string;
};
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
const KEYS = [...INTEGERS, "text", "player"];
const WORDS = [...KEYS, "bool", "f32", "f64", "bytes", "unit"];

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
  if (length > SCHEMA_BYTES_MAX) {
    refuse("the schema", `has ${length} bytes, at most ${SCHEMA_BYTES_MAX}`);
  }
  let schema: Schema;
  try {
    schema = JSON.parse(text);
  } catch (error) {
    throw new DecodeError(`a schema is not JSON: ${(error as Error).message}`);
  }
  const root = object(schema, "the schema"), own = hash(canonicalText(root));
  const { state } = schema;
  if (typeof state !== "object" || !("struct" in state)) refuse("state", "is not a struct");
  if (String(own) !== String(root.fingerprint)) {
    refuse("fingerprint", `is ${root.fingerprint}, but that of the content is ${own}`);
  }
  return schema;
}

function refuse(place: string, text: string): never {
  throw new DecodeError(`a schema can't be read: ${place} ${text}`);
}

function object(value: unknown, place: string): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    refuse(place, "is not an object");
  }
  return value as Json;
}

/** FNV-1a with 64 bits. */
function hash(text: string): Integer64 {
  let hash = 0xcbf29ce484222325n;
  for (const byte of utf8(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return integer(hash);
}

/** What is on the wire, as a text (docs/protocol.md). Refuses what is not a schema. */
function canonicalText({ state, options, messages, events }: Json): string {
  return [
    `state ${typeText(state, "state")}\noptions ${typeText(options, "options")}\n`,
    ...named(messages, "messages", ({ type, reply }, name, place) =>
      `message ${name} ${typeText(type, place)} -> ${typeText(reply, `${place}, the reply`)}\n`),
    ...named(events, "events", ({ type }, name, place) =>
      `event ${name} ${typeText(type, place)}\n`),
  ].join("");
}

/** The texts of a list's items, whose names differ. */
function named(
  list: unknown, place: string, text: (item: Json, name: string, place: string) => string,
): string[] {
  if (!Array.isArray(list)) return refuse(place, "is not a list");
  const names = new Set();
  return list.map((item) => {
    const { name } = object(item, place);
    if (typeof name !== "string") return refuse(place, "has an item without a name");
    if (names.has(name)) refuse(place, `has two items with the name ${JSON.stringify(name)}`);
    names.add(name);
    return text(item, quoted(name), `${place}.${name}`);
  });
}

function typeText(type: unknown, place: string, indent = "", depth = 0): string {
  if (depth === TYPE_DEPTH_MAX) refuse(place, `has types nested more than ${TYPE_DEPTH_MAX} deep`);
  if (typeof type === "string") {
    if (!WORDS.includes(type)) refuse(place, `has the unknown type ${JSON.stringify(type)}`);
    return type;
  }
  const of = object(type, place), has = (name: string): boolean => Object.hasOwn(of, name);
  const within = (type: unknown): string => typeText(type, place, indent, depth + 1);
  const key = (word: unknown): unknown => {
    if (!KEYS.includes(word as string)) refuse(place, `has the key ${JSON.stringify(word)}`);
    return word;
  };
  const fields = (list: unknown, indent: string): string => {
    const inner = `${indent}  `;
    const texts = named(list, place, ({ type, policy, default_digest: digest }, name, place) => {
      if (policy !== undefined && policy !== "owner" && policy !== "view") {
        refuse(place, "has an unknown policy");
      }
      const isDigest = typeof digest === "string" && /^[0-9a-f]{16}$/.test(digest);
      if (digest !== undefined && !(isDigest && policy)) {
        refuse(place, "has an invalid default_digest");
      }
      const text = typeText(type, place, inner, depth + 1);
      const after = digest === undefined ? "" : ` default_digest ${digest}`;
      return `${inner}${policy ? `${policy} ` : ""}${name} ${text}${after}\n`;
    });
    return `{\n${texts.join("")}${indent}}`;
  };
  if (has("option")) return `option<${within(of.option)}>`;
  if (has("list")) return `list<${within(of.list)}>`;
  if (has("array")) {
    const length = of.length as number;
    if (!Number.isInteger(length) || length < 1 || length >= 2 ** 32) {
      refuse(place, "has an array without a length");
    }
    return `array<${within(of.array)}, ${length}>`;
  }
  if (has("map")) return `map<${key(of.key)}, ${within(of.map)}>`;
  if (has("set")) return `set<${key(of.set)}>`;
  if (has("quantized")) return stepsText(of as unknown as Quantized, place);
  if (has("struct") && typeof of.struct === "string") return fields(of.fields, indent);
  if (!has("enum") || typeof of.enum !== "string") return refuse(place, "is not a type");
  const inner = `${indent}  `;
  const variants = named(of.variants, place, (variant, name) =>
    `${inner}${name} ${fields(variant.fields, inner)}\n`);
  if (!variants.length) refuse(place, "has no variants");
  return `one of {\n${variants.join("")}${indent}}`;
}

function stepsText(of: Quantized, place: string): string {
  const { quantized, step, range, angle } = of, { isFinite } = Number;
  const isRange = Array.isArray(range) && range.length === 2 && range.every(isFinite) &&
    range[0] < range[1];
  const isValid = (quantized === "f32" || quantized === "f64") && isFinite(step) && step > 0 &&
    (range === undefined || isRange) && (angle === undefined || (angle === true && !range));
  if (!isValid) refuse(place, `has the invalid quantized number ${JSON.stringify(of)}`);
  const ends = range ? ` from ${decimal(range[0])} to ${decimal(range[1])}` : "";
  return `${quantized}${angle ? " angle" : ends} by ${decimal(step)}`;
}

/**
 * A float as Rust's `{:?}` writes it: with a point, and with an exponent below 1e-5 or from 1e16.
 */
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
  const named: Record<string, string> = {
    "\0": "\\0",
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
  };
  const escaped = name.replace(
    /["\\\p{C}\p{Zl}\p{Zp}]|[^\P{Z} ]/gu,
    (letter) => named[letter] ?? `\\u{${letter.codePointAt(0)!.toString(16)}}`,
  );
  return `"${escaped}"`;
}
