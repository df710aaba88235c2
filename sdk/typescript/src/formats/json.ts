/** Messages in `json`. */

import { isCode } from "../codes.js";
import { DecodeError } from "../error.js";
import { bytesOf, type Format, toJson } from "../format.js";
import { JsonCopy } from "../json.js";
import { decode, type Message, SERVER } from "../messages.js";

export const json: Format = {
  // Payloads are JSON, as the rest of the message.
  codec: {
    options: (value) => value,
    copy: () => new JsonCopy(),
    exchange: {
      message: (message, payload) => ({ message, payload }),
      reply: (_, payload) => payload,
      event: (message, payload) => [message as string, payload],
    },
  },
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
    if (!isObject(message)) throw new DecodeError("a message is not an object");
    return check(message);
  },
};

const isText = (item: unknown): boolean => typeof item === "string";
const isObject = (item: unknown): boolean => typeof item === "object" && item !== null;

/** Checks what the client relies on. What else a node may not send shows where it is used. */
function check(message: Message): Message {
  const { type } = message, [, fields] = SERVER.byName.get(type) ?? [];
  if (!fields) throw new DecodeError(`there is no message of type ${JSON.stringify(type)}`);
  const refuse = (text: string): never => {
    throw new DecodeError(`a message of type ${type} ${text}`);
  };
  for (const { name, of, isOption, isList } of fields) {
    const value = message[name];
    if (name === "room" && !isOption && !Number.isInteger(value)) refuse("names no room");
    if (of === "c" && !isCode(value)) refuse(`has the unknown code ${JSON.stringify(value)}`);
    const list = isList ? (value ?? []) : [];
    const isOne = of === "t" ? isText : isObject;
    if (!Array.isArray(list) || !list.every(isOne)) refuse(`has an invalid list of ${name}`);
  }
  return message;
}
