// Decodes what clients of `rooms.mjs` received with @colyseus/schema, and compares each copy with the
// model after every patch. Its arguments are the players of a room and the file: of each client its
// session and its messages, each with its length before it. Prints how many patches were compared.

import { readFileSync } from "node:fs";
import { Decoder } from "@colyseus/schema";
import { Model, Table } from "./table.mjs";

const STATE = 14, PATCH = 15, SHARE = 0.2;
const players = Number(process.argv[2]), file = readFileSync(process.argv[3]);

/** Parts of a buffer that each have their length before them. */
function* parts(bytes) {
  for (let at = 0; at < bytes.length;) {
    const end = at + 4 + bytes.readUInt32LE(at);
    if (end > bytes.length) throw new Error(`a part of ${end - at} bytes at ${at} is not whole`);
    yield bytes.subarray(at + 4, end);
    at = end;
  }
}

function check(received) {
  const decoder = new Decoder(new Table()), model = new Model(players);
  const [session, ...messages] = parts(received), id = session.toString();
  let compared = 0;
  for (const message of messages) {
    if (message[0] !== STATE && message[0] !== PATCH) throw new Error(`message ${message[0]}`);
    decoder.decode(message, { offset: 1 });
    const { state } = decoder;
    const wait = state.round - model.round;
    if (wait !== 0 && wait !== 1) throw new Error(`round ${state.round} after ${model.round}`);
    if (wait === 1) model.step(true, SHARE);
    if (state.round > 0 && state.players.size !== players)
      throw new Error(`${state.players.size} players in round ${state.round}`);
    const wrong = model.differs(state, id);
    if (wrong) throw new Error(wrong);
    compared += message[0] === PATCH ? 1 : 0;
  }
  return compared;
}

let compared = 0, failure = null;
try {
  let client = 0;
  for (const received of parts(file)) {
    try {
      compared += check(received);
    } catch (error) {
      throw new Error(`client ${client}: ${error.message}`);
    }
    client += 1;
  }
} catch (error) {
  failure = error.message;
}
console.log(JSON.stringify({ compared, failure }));
