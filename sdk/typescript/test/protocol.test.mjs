// The protocol's messages against the vectors, in both directions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../dist/error.js";
import { json } from "../dist/formats/json.js";
import { CLIENT, decode, encode, SERVER } from "../dist/messages.js";
import { packedBy } from "../dist/formats/packed.js";
import "./node.mjs"; // what only a node writes
import { bytes, hex, protocol } from "./vectors.mjs";

/** What packed messages have in their own form. */
const OWN = [
  "payload",
  "ops",
  "body",
  "options",
  "message",
  "schema",
  "digest",
  "advance",
  "publications",
  "format",
];
const common = (message) =>
  Object.fromEntries(Object.entries(message).filter(([name]) => !OWN.includes(name)));

for (const [name, table] of [["client", CLIENT], ["server", SERVER]]) {
  const { messages, refused } = protocol(name);

  test(`${name}: messages are what their bytes say, and are written as the same bytes`, () => {
    for (const { name, json, packed, refused_cuts: cuts } of messages) {
      const message = decode(table, bytes(packed));
      assert.deepEqual(common(message), common(json), name);
      assert.equal(hex(encode(table, message)), packed, name);
      for (const cut of cuts) {
        assert.throws(
          () => decode(table, bytes(packed).subarray(0, cut)),
          DecodeError,
          `${name}, cut at ${cut}`,
        );
      }
    }
  });

  test(`${name}: invalid messages are refused`, () => {
    // Which formats there are is for the node to say.
    const isKnown = ({ format, why }) => format === "packed" && !why.includes("not spoken");
    for (const { bytes: text, why } of refused.filter(isKnown)) {
      assert.throws(() => decode(table, bytes(text)), DecodeError, why);
    }
  });
}

test("a node's messages in JSON are read, and invalid messages are refused", () => {
  const { messages, refused } = protocol("server");
  for (const { json: message } of messages)
    assert.deepEqual(json.read(JSON.stringify(message)), message);
  // That a patch leads back is for the copy to say.
  const isOfMessage = ({ format, why }) => format === "json" && !why.includes("leads back");
  for (const { bytes: text, why } of refused.filter(isOfMessage)) {
    assert.throws(() => json.read(text), DecodeError, why);
  }
});

test("in JSON, rooms, codes and lists are checked where a message must have them", () => {
  const refused = new Set();
  for (const { json: message } of protocol("server").messages) {
    for (const [member, value] of Object.entries({ ...message, room: "1", code: "later" })) {
      const isList = Array.isArray(message[member]) && typeof value[0] === "object";
      if (!(member in message) || (value === message[member] && !isList)) continue;
      const wrong = JSON.stringify({ ...message, [member]: isList ? [7] : value });
      try {
        json.read(wrong);
      } catch (error) {
        assert.ok(error instanceof DecodeError, wrong);
        refused.add(error.message.replace("a message of type ", ""));
      }
    }
  }
  assert.deepEqual([...refused].sort(), [
    "check names no room",
    'error has the unknown code "later"',
    "event names no room",
    'goodbye has the unknown code "later"',
    "history has an invalid list of publications",
    "joined names no room",
    'left has the unknown code "later"',
    "left names no room",
    "listed has an invalid list of rooms",
    "members has an invalid list of members",
    "patch names no room",
    "snapshot names no room",
    'unsubscribed has the unknown code "later"',
  ]);
});

test("a message of the other kind is refused, but for what a node says before any message", () => {
  assert.throws(() => packedBy(CLIENT, SERVER).read("{}"), DecodeError);
  assert.throws(() => json.read(7), DecodeError);
  const goodbye = bytes("4c1700").buffer;
  assert.deepEqual(json.read(goodbye), { type: "goodbye", code: "shutting_down", text: "" });
});
