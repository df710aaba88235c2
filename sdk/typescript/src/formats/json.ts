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
    if (typeof message !== "object" || message === null)
      throw new DecodeError("a message is not an object");
    return check(message);
  },
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
