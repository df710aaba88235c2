/** The two formats that messages are written in. Payloads and bodies are left to their readers. */

import { fromBase64, toBase64, utf8 } from "./base64.js";
import { isCode } from "./codes.js";
import { DecodeError } from "./error.js";
import { CLIENT, decode, encode, type Message, SERVER } from "./messages.js";

export type FormatName = "packed" | "json";
export type Frame = string | Uint8Array;

export interface Format {
  readonly isPacked: boolean;
  write(message: Message): Frame;
  /** @throws {DecodeError} If it is not a message of a node. */
  read(data: unknown): Message;
  /** The payload of a channel or a device, to be written. */
  free(payload: unknown, isBytes: boolean): unknown;
  /** The payload of a channel or a device, as it was read. */
  freed(payload: unknown, isBytes: boolean): unknown;
}

/** JSON, with bytes in base64, and what JSON has no numbers for as texts. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_, value) => {
    if (value instanceof Uint8Array) return toBase64(value);
    if (typeof value === "bigint")
      return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
    return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
  });
}

/** Whether a frame has more bytes than this. */
export const isLonger = (frame: Frame, bytes: number): boolean =>
  // A character of a text has at most three.
  frame.length * (typeof frame === "string" ? 3 : 1) > bytes &&
  (typeof frame === "string" ? new TextEncoder().encode(frame).length : frame.length) > bytes;

const bytesOf = (data: unknown): Uint8Array => {
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data))
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw new DecodeError("a message is neither text nor bytes");
};

const OF_A_ROOM = ["joined", "snapshot", "patch", "check", "event", "left"];
const WITH_CODES = ["error", "goodbye", "left", "unsubscribed"];

/** Checks what the client relies on. What else a node may not send shows where it is used. */
function check(message: Message): Message {
  const { type } = message;
  if (!SERVER.byName.has(type))
    throw new DecodeError(`there is no message of type ${JSON.stringify(type)}`);
  if (OF_A_ROOM.includes(type) && !Number.isInteger(message.room)) {
    throw new DecodeError(`a message of type ${type} names no room`);
  }
  if (WITH_CODES.includes(type) && !isCode(message.code)) {
    throw new DecodeError(
      `a message of type ${type} has the unknown code ${JSON.stringify(message.code)}`,
    );
  }
  const lists = { listed: "rooms", members: "members", history: "publications" } as Record<
    string,
    string
  >;
  const list = message[lists[type]] ?? [];
  const isObject = (item: unknown): boolean => typeof item === "object" && item !== null;
  if (!Array.isArray(list) || !list.every(isObject)) {
    throw new DecodeError(`a message of type ${type} has an invalid list of ${lists[type]}`);
  }
  return message;
}

export const json: Format = {
  isPacked: false,
  write: toJson,
  read(data) {
    // What a node sends before any message has arrived is `packed`.
    if (typeof data !== "string") return decode(SERVER, bytesOf(data));
    let message;
    try {
      message = JSON.parse(data);
    } catch (error) {
      throw new DecodeError((error as Error).message);
    }
    if (typeof message !== "object" || message === null)
      throw new DecodeError("a message is not an object");
    return check(message);
  },
  free: (payload) => payload,
  freed: (payload) => payload,
};

const text = new TextDecoder("utf-8", { fatal: true });

export const packed: Format = {
  isPacked: true,
  write: (message) => encode(CLIENT, message),
  read(data) {
    if (typeof data === "string")
      throw new DecodeError("a message is text, where bytes were agreed");
    return decode(SERVER, bytesOf(data));
  },
  free(payload, isBytes) {
    if (payload instanceof Uint8Array) return payload;
    return isBytes && typeof payload === "string"
      ? fromBase64(payload)
      : utf8(toJson(payload ?? null));
  },
  freed(payload, isBytes) {
    if (isBytes) return toBase64(payload as Uint8Array);
    try {
      return JSON.parse(text.decode(payload as Uint8Array));
    } catch (error) {
      throw new DecodeError(`a payload is not JSON: ${(error as Error).message}`);
    }
  },
};
