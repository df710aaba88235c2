/** Paths of changes, checked by the schema of a state. */

import type { Type } from "../schema.js";

/** @throws {TypeError} If no value of the state can ever be at the path. */
export function checkPath(state: Type, steps: readonly string[]): void {
  const why = fault(state, steps, 0);
  if (why) throw new TypeError(`no change has the path "${steps.join(".")}": ${why}`);
}

/** Why nothing is at the steps from `depth` on. What is in an enum is not looked at. */
function fault(type: Type, steps: readonly string[], depth: number): string | undefined {
  const step = steps[depth], place = steps.slice(0, depth).join(".") || "the state";
  if (step === undefined) return;
  if (typeof type === "string" || "quantized" in type)
    return `${place} has nothing below it`;
  if ("option" in type) return fault(type.option, steps, depth);
  if ("struct" in type || "enum" in type) {
    const isStruct = "struct" in type, all = isStruct ? type.fields : type.variants;
    const found = all.filter(({ name }) => step === "*" || step === name);
    const faults = found.map((member) =>
      "type" in member ? fault(member.type, steps, depth + 1) : undefined);
    if (found.length || step === "*") return faults.includes(undefined) ? undefined : faults[0];
    const names = all.map(({ name }) => name).join(", ");
    return `${place} has no ${isStruct ? "field" : "variant"} "${step}"; it has ${names || "none"}`;
  }
  const [of, key] =
    "map" in type ? [type.map, type.key]
    : "set" in type ? ["bool" as const, type.set]
    : ["list" in type ? type.list : type.array, "u32"];
  if (step !== "*" && key !== "text" && !/^-?\d+$/.test(step))
    return `a step below ${place} is a number (${key}) or *, not "${step}"`;
  return fault(of, steps, depth + 1);
}
