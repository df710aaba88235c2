/**
 * Values that are read and written as a whole: messages, replies, events, options, and what is in
 * an enum (docs/state.md, "Reading by a schema").
 */

import { fromBase64, utf8 } from "../base64.js";
import { EncodeError } from "../error.js";
import type { EnumType, Field, Type, Word } from "../schema.js";
import { Writer } from "../writer.js";
import * as hash from "./hash.js";
import { member, type Members, put, readKey, TWICE } from "./map.js";
import { plain } from "./plain.js";
import { SHARED, Shape } from "./shape.js";
import { Walk } from "./walk.js";

/** Reads a value from bytes that hold nothing else. */
export function decodeValue(type: Type, bytes: Uint8Array): unknown {
  const walk = new Walk(bytes, ""), value = read(walk, type);
  walk.finish();
  return value;
}

/** Writes a value. `place` names it in errors. */
export function encodeValue(type: Type, value: unknown, place: string): Uint8Array {
  const writer = new Writer();
  write(writer, type, value, place);
  return writer.done();
}

export function read(walk: Walk, type: Type): unknown {
  if (typeof type === "string") return plain(type).whole(walk, SHARED);
  if ("option" in type) return walk.bool() ? read(walk, type.option) : null;
  if ("list" in type) return walk.many(walk.count(), () => read(walk, type.list));
  if ("array" in type) return walk.many(type.length, () => read(walk, type.array));
  if ("map" in type) {
    const members: Members = {};
    for (let left = walk.count(); left > 0; left--) {
      const { at } = walk, key = readKey(walk, type.key), value = read(walk, type.map);
      if (Object.hasOwn(members, key)) walk.refuse(TWICE, at);
      put(members, key, value);
    }
    return members;
  }
  if ("struct" in type) {
    const value = readFields(walk, type.fields);
    if (!type.fields.length) walk.zero("a struct without fields");
    return value;
  }
  // `checkWhole` has refused the others.
  const of = type as EnumType, { at } = walk, number = walk.varint(), variant = of.variants[number];
  if (!variant) return walk.refuse(`${number} is not a variant of ${of.enum}`, at);
  if (!variant.fields.length) return variant.name;
  return { [variant.name]: readFields(walk, variant.fields) };
}

/** How fields are in JSON: `null`, the one without a name, an array of those, or an object. */
const form = (fields: Field[]): "none" | "one" | "tuple" | "named" =>
  !fields.length
    ? "none"
    : fields[0].name !== "0"
      ? "named"
      : fields.length === 1
        ? "one"
        : "tuple";

const readFields = (walk: Walk, fields: Field[]): unknown =>
  formed(fields, fields.map(({ type }) => read(walk, type)));

/** The values of fields, as they are in JSON. */
export function formed(fields: Field[], values: unknown[]): unknown {
  switch (form(fields)) {
    case "none": return null;
    case "one": return values[0];
    case "tuple": return values;
    default: return Object.fromEntries(fields.map(({ name }, place) => [name, values[place]]));
  }
}

function refuse(place: string, value: unknown, wanted: string): never {
  let text;
  try {
    text = JSON.stringify(value) ?? String(value);
  } catch {
    text = String(value);
  }
  throw new EncodeError(
    `${place} is ${text.length > 60 ? `${text.slice(0, 60)}…` : text}; it must be ${wanted}`,
  );
}

function write(writer: Writer, type: Type, value: unknown, place: string): void {
  if (typeof type === "string") return writePlain(writer, type, value, place);
  if ("option" in type) {
    const isThere = value !== null && value !== undefined;
    writer.u8(isThere ? 1 : 0);
    if (isThere) write(writer, type.option, value, place);
  } else if ("list" in type || "array" in type) {
    const of = "list" in type ? type.list : type.array;
    const list = value == null && "list" in type ? [] : value;
    if (!Array.isArray(list)) return refuse(place, value, "an array");
    if ("list" in type) writer.varint(list.length);
    else if (list.length !== type.length) refuse(place, value, `an array of ${type.length}`);
    list.forEach((item, index) => write(writer, of, item, `${place}[${index}]`));
  } else if ("map" in type) {
    const members = value ?? {};
    if (typeof members !== "object" || Array.isArray(members))
      return refuse(place, value, "an object");
    const names = sorted(Object.keys(members), type.key);
    writer.varint(names.length);
    for (const name of names) {
      writePlain(writer, type.key, type.key === "text" ? name : decimal(name), `${place}, the key`);
      write(writer, type.map, (members as Members)[name], `${place}.${name}`);
    }
  } else if ("struct" in type) {
    if (!type.fields.length) writer.u8(0);
    writeFields(writer, type.fields, value, place);
  } else {
    const { enum: name, variants } = type as EnumType, isName = typeof value === "string",
      names = isName ? [value] : Object.keys(value ?? {});
    const number = variants.findIndex(({ name }) => name === names[0]), variant = variants[number];
    const wanted = `a variant of ${name}: ${variants.map(({ name }) => name).join(", ")}`;
    // An older page writes the name alone where a variant had no fields.
    if (names.length !== 1 || !variant || (!isName && !variant.fields.length))
      return refuse(place, value, wanted);
    writer.varint(number);
    writeFields(
      writer,
      variant.fields,
      isName ? null : (value as Members)[names[0]],
      `${place}.${names[0]}`,
    );
  }
}

/** Fields that are missing are empty: the page may be older than the node. */
function writeFields(writer: Writer, fields: Field[], value: unknown, place: string): void {
  const values = ((): unknown[] => {
    switch (form(fields)) {
      case "none": return [];
      case "one": return [value];
      case "tuple":
        if (!Array.isArray(value)) return [value];
        return value.length <= fields.length
          ? value
          : refuse(place, value, `an array of ${fields.length}`);
      default: {
        const members = value ?? {};
        if (typeof members !== "object" || Array.isArray(members))
          return refuse(place, value, "an object");
        return fields.map(({ name }) => member(members as Members, name));
      }
    }
  })();
  const isNamed = form(fields) === "named";
  fields.forEach(({ name, type }, index) =>
    write(writer, type, values[index], isNamed ? `${place}.${name}` : place),
  );
}

function sorted(names: string[], key: Word): string[] {
  if (key !== "text") return names.sort((a, b) => (decimal(a) < decimal(b) ? -1 : 1));
  const compare = (a: Uint8Array, b: Uint8Array): number => {
    const place = a.findIndex((byte, index) => byte !== b[index]);
    return place < 0 ? a.length - b.length : a[place] - (b[place] ?? -1);
  };
  return names.sort((a, b) => compare(utf8(a), utf8(b)));
}

/** An integer in its decimal form; anything else stays what it is, to be refused. */
function decimal(value: unknown): bigint {
  return typeof value === "string" && /^-?\d+$/.test(value) ? BigInt(value) : (value as bigint);
}

const FLOATS: Record<string, number> = { NaN: NaN, Infinity: Infinity, "-Infinity": -Infinity };

function writePlain(writer: Writer, word: Word, value: unknown, place: string): void {
  switch (word) {
    case "bool":
      if (typeof value !== "boolean") refuse(place, value, "true or false");
      return writer.u8(value ? 1 : 0);
    case "text":
      if (typeof value !== "string") refuse(place, value, "a text");
      return writer.text(value as string);
    case "bytes": return writer.blob(value instanceof Uint8Array ? value : bytesOf(value, place));
    case "unit":
      if (value !== undefined && value !== null) refuse(place, value, "null");
      return writer.u8(0);
    case "f32": case "f64": {
      const number = typeof value === "string" && value in FLOATS ? FLOATS[value] : value;
      if (typeof number !== "number") return refuse(place, value, "a number");
      return word === "f32" ? writer.f32(number) : writer.f64(number);
    }
  }
  const isSigned = word[0] === "i",
    bits = word === "player" ? 64 : Number(word.slice(1));
  const whole = decimal(value);
  if (typeof whole !== "bigint" && !Number.isSafeInteger(whole))
    return refuse(place, value, `an integer, a ${word}`);
  const big = BigInt(whole);
  const fits = isSigned ? BigInt.asIntN(bits, big) === big : BigInt.asUintN(bits, big) === big;
  if (!fits) refuse(place, String(value), `a ${word}`);
  if (bits === 8) writer.u8(Number(big) & 0xff);
  else if (isSigned) writer.zigzag(big);
  else writer.varint(big);
}

function bytesOf(value: unknown, place: string): Uint8Array {
  try {
    if (typeof value === "string") return fromBase64(value);
  } catch {
    // Refused below.
  }
  return refuse(place, value, "a Uint8Array, or base64");
}

/** An enum in a state, which is compared and sent as a unit. */
export class EnumOf extends Shape {
  constructor(private readonly of: Type) {
    super();
  }

  whole(walk: Walk): unknown {
    return read(walk, this.of);
  }

  digest(value: unknown): void {
    hash.ofBytes(encodeValue(this.of, value, "the state"));
  }
}
