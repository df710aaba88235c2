/** What the two formats that messages are written in have in common. */

import { toBase64, utf8 } from "./base64.js";
import { DecodeError } from "./error.js";
import type { RoomCodec } from "./links.js";
import type { Message } from "./messages.js";
import { integer } from "./reader.js";

export type FormatName = "packed" | "json";
export type Frame = string | Uint8Array;

/** A format. Payloads and bodies are left to their readers. */
export interface Format {
  /** How rooms are read, if that does not need their schemas. */
  readonly codec?: RoomCodec;
  write(message: Message): Frame;
  /** @throws {DecodeError} If it is not a message of a node. */
  read(data: unknown): Message;
}

/** JSON, with bytes in base64, and what JSON has no numbers for as texts. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_, value) => {
    if (value instanceof Uint8Array) return toBase64(value);
    if (typeof value === "bigint") return integer(value);
    return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
  });
}

/** Whether a frame has more bytes than this. */
export const isLonger = (frame: Frame, bytes: number): boolean =>
  (typeof frame === "string" ? utf8(frame) : frame).length > bytes;

/** The bytes of a message: sockets are asked for an ArrayBuffer. */
export function bytesOf(data: unknown): Uint8Array {
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  throw new DecodeError("a message is not an ArrayBuffer");
}
