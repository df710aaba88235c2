/**
 * The client of Playfield for browsers and Node.
 *
 * `Client` connects, joins rooms and lists them, with promises. A lost connection is restored, and
 * the session goes on where it was. `apply`,
 * `whole`, `digest`, `PackedCopy` and `readSchema` are the parts that maintain a copy of a state,
 * for clients with a transport of their own.
 *
 * @module playfield
 */

export * from "./core.js";
export { readSchema } from "./schema.js";
export { PackedCopy } from "./state/copy.js";
