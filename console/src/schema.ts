/** The part of a room's schema (docs/protocol.md, "Schemas") that the page needs. */

import type { Json } from "./api.js";

export type Type =
  | string
  | { option: Type }
  | { list: Type }
  | { array: Type; length: number }
  | { map: Type; key: string }
  | { set: string }
  | { quantized: string }
  | { struct: string; fields: Field[] }
  | { enum: string; variants: { name: string; fields: Field[] }[] };

export interface Field {
  name: string;
  type: Type;
  policy?: "owner" | "view";
}

export interface Schema {
  state: Type;
  options: Type;
  messages: { name: string; type: Type; reply: Type }[];
  events: { name: string; type: Type }[];
}

export type Policy = "owner" | "view" | "hidden" | undefined;

const bare = (type: Type | undefined): Type | undefined =>
  typeof type === "object" && "option" in type ? bare(type.option) : type;

/** The members of a value as its type declares them. Hidden fields, which it does not have, follow. */
export function membersOf(value: object, type: Type | undefined): [string, Json][] {
  const all = Object.entries(value) as [string, Json][],
    of = bare(type);
  if (typeof of !== "object" || !("struct" in of)) return all;
  const place = (name: string): number => {
    const at = of.fields.findIndex((field) => field.name === name);
    return at < 0 ? of.fields.length : at;
  };
  return all.sort(([one], [other]) => place(one) - place(other));
}

/** A value with the members of its structs in the order in which they are declared. */
export function ordered(value: Json, type: Type | undefined): Json {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value))
    return value.map((item, at) => ordered(item, member(type, String(at)).type));
  return Object.fromEntries(
    membersOf(value, type).map(([name, inner]) => [name, ordered(inner, member(type, name).type)]),
  );
}

/** The type at a member of a value of this type, and who sees it. Hidden fields are in no schema. */
export function member(type: Type | undefined, name: string): { type?: Type; policy: Policy } {
  if (typeof type !== "object") return { policy: undefined };
  if ("option" in type) return member(type.option, name);
  if ("list" in type) return { type: type.list, policy: undefined };
  if ("array" in type) return { type: type.array, policy: undefined };
  if ("map" in type) return { type: type.map, policy: undefined };
  if ("struct" in type) {
    const field = type.fields.find((field) => field.name === name);
    return field ? { type: field.type, policy: field.policy } : { policy: "hidden" };
  }
  if ("enum" in type) {
    // Fields without names are a list, or alone.
    const fields = type.variants.find((variant) => variant.name === name)?.fields ?? [];
    const only = fields.length === 1 && fields[0]!.name === "0" ? fields[0]!.type : undefined;
    return { type: only ?? { struct: name, fields }, policy: undefined };
  }
  return { policy: undefined };
}

/** A value of this type to begin with. */
export function initial(type: Type): Json {
  if (typeof type === "string") {
    if (type === "text" || type === "bytes") return "";
    return type === "bool" ? false : type === "unit" ? null : 0;
  }
  if ("option" in type) return null;
  if ("list" in type) return [];
  if ("array" in type) return Array.from({ length: type.length }, () => initial(type.array));
  if ("map" in type || "set" in type) return {};
  if ("quantized" in type) return 0;
  if ("struct" in type) return ofFields(type.fields);
  const [first] = type.variants;
  return first ? variant(first) : null;
}

/** The value of a variant as it is written in JSON. */
export const variant = (of: { name: string; fields: Field[] }): Json =>
  of.fields.length ? { [of.name]: ofFields(of.fields) } : of.name;

function ofFields(fields: Field[]): Json {
  if (!fields.length) return null;
  if (fields[0]!.name !== "0")
    return Object.fromEntries(fields.map(({ name, type }) => [name, initial(type)]));
  return fields.length === 1 ? initial(fields[0]!.type) : fields.map(({ type }) => initial(type));
}
