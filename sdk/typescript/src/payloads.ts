/** The payloads of channels and devices: bytes, or JSON, which no schema describes. */

import { fromBase64, toBase64, utf8 } from "./base64.js";
import { DecodeError } from "./error.js";
import { type Format, toJson } from "./format.js";

const text = new TextDecoder("utf-8", { fatal: true });

/** A payload, to be written. */
export function free({ codec }: Format, payload: unknown, isBytes: boolean): unknown {
  if (codec || payload instanceof Uint8Array) return payload;
  return isBytes && typeof payload === "string"
    ? fromBase64(payload)
    : utf8(toJson(payload ?? null));
}

/** A payload, as it was read. */
export function freed({ codec }: Format, payload: unknown, isBytes: boolean): unknown {
  if (codec) return payload;
  if (isBytes) return toBase64(payload as Uint8Array);
  try {
    return JSON.parse(text.decode(payload as Uint8Array));
  } catch (error) {
    throw new DecodeError(`a payload is not JSON: ${(error as Error).message}`);
  }
}
