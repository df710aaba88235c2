// The conformance vectors, and values in their JSON form.

import { readdirSync, readFileSync } from "node:fs";

const folder = new URL("../../../conformance/vectors/", import.meta.url);

export const protocol = (name) =>
  JSON.parse(readFileSync(new URL(`protocol/${name}.json`, folder), "utf8"));

export const stories = () =>
  readdirSync(new URL("state/", folder))
    .filter((name) => name.endsWith(".json"))
    .map((name) => ({
      name,
      ...JSON.parse(readFileSync(new URL(`state/${name}`, folder), "utf8")),
    }));

export const bytes = (hex) =>
  Uint8Array.from(hex.replaceAll(" ", "").match(/../g) ?? [], (byte) => parseInt(byte, 16));
export const hex = (bytes) =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The shortest decimal that reads back as the same 32-bit float. */
function short(number) {
  for (let digits = 1; digits < 10; digits++) {
    const text = Number(number.toPrecision(digits));
    if (Math.fround(text) === number) return text;
  }
  return number;
}

const float = (value, of) => {
  if (typeof value !== "number" || !Number.isFinite(value)) return String(value);
  return of === "f32" ? short(value) : value;
};

/** A value of a type in its JSON form: that of a copy in `packed`, whose floats are numbers. */
export function jsonForm(type, value, isAtomic = false) {
  if (value === null || value === undefined) return value;
  const of = (type) => (value) => jsonForm(type, value, isAtomic);
  if (typeof type === "string")
    return type === "f32" || type === "f64" ? float(value, type) : value;
  if (type.quantized) return float(value, type.quantized);
  if (type.option) return of(type.option)(value);
  if (type.list || type.array) return value.map(of(type.list ?? type.array));
  const members = (entries) => Object.fromEntries(entries);
  if (type.map)
    return members(Object.entries(value).map(([name, value]) => [name, of(type.map)(value)]));
  if (type.set) return value;
  const fields = (list, value) => {
    if (isAtomic && list[0]?.name === "0") {
      return list.length === 1
        ? of(list[0].type)(value)
        : list.map(({ type }, place) => of(type)(value[place]));
    }
    return members(
      list
        .filter(({ name }) => name in value)
        .map(({ name, type }) => [name, of(type)(value[name])]),
    );
  };
  if (type.struct !== undefined) return fields(type.fields, value);
  if (typeof value === "string") return value;
  const [name] = Object.keys(value),
    variant = type.variants.find((variant) => variant.name === name);
  isAtomic = true;
  return { [name]: fields(variant.fields, value[name]) };
}
