/** Compiles a schema's state for reading, and refuses what no state can be. */

import { DecodeError } from "../error.js";
import type { Field, Type, Word } from "../schema.js";
import { EnumOf, formed } from "./atomic.js";
import { ArrayOf, List, Option } from "./collections.js";
import * as hash from "./hash.js";
import { MapOf } from "./map.js";
import { plain, Present } from "./plain.js";
import type { Shape } from "./shape.js";
import { Steps } from "./steps.js";
import { type Access, type FieldShape, Struct } from "./struct.js";

const PARTIAL = "a value that is sent as a whole has";
const PLACES_MAX = 2 ** 20, PLACES_SUM_MAX = 2 ** 24, FIELDS_MAX = 64;

const refuse = (text: string): never => {
  throw new DecodeError(`a schema can't be read by: ${text}`);
};

/** The shape of a state. */
export function compile(type: Type): Shape {
  measure(type, false);
  return shape(type);
}

/** Refuses a type that no message, reply, event or options can have. */
export function checkWhole(type: Type): void {
  measure(type, true);
}

/** Counts the values that there are by a type alone. */
function measure(type: Type, isWhole: boolean): void {
  // Those of all types together.
  let sum = 0;
  const counted = (places: number): number => {
    if (places > PLACES_MAX || sum > PLACES_SUM_MAX) refuse("its types alone hold too many values");
    return places;
  };
  const each = (fields: Field[], isWhole: boolean): number => {
    let places = 1;
    for (const { name, policy, type } of fields) {
      // An assignment to it makes no member.
      if (name === "__proto__") refuse("a field is named __proto__");
      if (policy && isWhole) refuse(`${PARTIAL} the field ${name}, which has a policy`);
      places += count(type, isWhole);
    }
    return places;
  };
  const count = (type: Type, isWhole: boolean): number => {
    sum += 1;
    if (typeof type === "string") return 1;
    if ("array" in type) {
      const places = counted(count(type.array, isWhole) * type.length);
      sum += places;
      return places;
    }
    if ("struct" in type) {
      if (!isWhole && type.fields.length > FIELDS_MAX)
        refuse(`${type.struct} has more than ${FIELDS_MAX} fields`);
      return counted(each(type.fields, isWhole));
    }
    if ("enum" in type) {
      const [first, ...rest] = type.variants;
      for (const { fields } of rest) counted(each(fields, true));
      return counted(each(first.fields, true) + rest.length);
    }
    const inner =
      "option" in type ? type.option : "list" in type ? type.list : "map" in type && type.map;
    if (inner) counted(count(inner, isWhole));
    else if (isWhole) refuse(`${PARTIAL} a set or a quantized number`);
    return 1;
  };
  counted(count(type, isWhole));
}

function shape(type: Type): Shape {
  if (typeof type === "string") return plain(type);
  if ("option" in type) return new Option(shape(type.option));
  if ("list" in type) return new List(shape(type.list));
  if ("array" in type) return new ArrayOf(shape(type.array), type.length);
  if ("map" in type) return new MapOf(type.key, shape(type.map));
  if ("struct" in type) return struct(type.fields);
  if ("set" in type) return new MapOf(type.set, new Present());
  return "enum" in type ? new EnumOf(type) : new Steps(type);
}

function struct(fields: Field[]): Struct {
  return new Struct(
    fields.map((field): FieldShape => {
      const of = shape(field.type), { name, policy, default_digest: digest } = field;
      if (digest !== undefined)
        hash.set(parseInt(digest.slice(0, 8), 16), parseInt(digest.slice(8), 16));
      else if (policy) of.digest(defaultOf(field.type));
      return { name, access: accessOf(field), of, default: [hash.high, hash.low] };
    }),
  );
}

const DEFAULTS: Partial<Record<Word, unknown>> = { bool: false, text: "", bytes: "", unit: null };

/** What follows from a type alone: 0, empty, nothing, the first variant. */
function defaultOf(type: Type, isWhole = false): unknown {
  const of = (fields: Field[]): unknown[] => fields.map(({ type }) => defaultOf(type, isWhole));
  if (typeof type === "string") return type in DEFAULTS ? DEFAULTS[type] : 0;
  if ("option" in type) return null;
  if ("list" in type) return [];
  if ("array" in type) return new Array(type.length).fill(defaultOf(type.array, isWhole));
  if ("quantized" in type) return new Steps(type).zero();
  if ("enum" in type) {
    isWhole = true;
    const [{ name, fields }] = type.variants;
    return fields.length ? { [name]: formed(fields, of(fields)) } : name;
  }
  if (!("struct" in type)) return {};
  if (isWhole) return formed(type.fields, of(type.fields));
  const open = type.fields.filter(({ policy }) => !policy), values = of(open);
  return Object.fromEntries(open.map(({ name }, place) => [name, values[place]]));
}

function accessOf({ policy, type }: Field): Access {
  if (!policy) return "open";
  const map = typeof type === "object" && ("map" in type ? type.key : "set" in type && type.set);
  if (policy === "owner") return map === "player" ? "own entry" : "owner";
  return typeof type === "object" && "map" in type ? "viewed map" : "viewed";
}
