/** The schemas of room types that a connection has asked for. */

import type { Code } from "./codes.js";
import { type Links, PASSING, RETRY_MS, type Schemas, TOO_MUCH } from "./links.js";
import { readSchema, type Schema } from "./schema.js";
import { checkWhole } from "./state/compile.js";

type Waiting = { use(schema: Schema): void; fail(code: Code, text: string): void };

export function makeSchemas(ask: Links["ask"]): Schemas & { end(code: Code, text: string): void } {
  const all = new Map<string, Schema>(), waiting = new Map<string, Waiting[]>();
  const decoder = new TextDecoder();

  const settle = (roomType: string, then: (waiting: Waiting) => void): void => {
    const list = waiting.get(roomType) ?? [];
    waiting.delete(roomType);
    list.forEach(then);
  };
  const request = (roomType: string): void => {
    if (!waiting.has(roomType)) return;
    const refuse = (code: Code, text: string): void => settle(roomType, ({ fail }) => fail(code, text));
    const resolve = (body: Uint8Array): void => {
      try {
        const schema = readSchema(decoder.decode(body));
        const { options, messages, events } = schema;
        checkWhole(options);
        for (const { type, reply } of messages) [type, reply].forEach(checkWhole);
        for (const { type } of events) checkWhole(type);
        all.set(roomType, schema);
        settle(roomType, ({ use }) => use(schema));
      } catch (error) {
        refuse("bad_message", (error as Error).message);
      }
    };
    const reject = (code: Code, text: string, retryMs = RETRY_MS): void => {
      if (PASSING.includes(code)) setTimeout(() => request(roomType), retryMs);
      else refuse(code, text);
    };
    if (!ask({ type: "schema", room_type: roomType }, { resolve, reject })) refuse("limit", TOO_MUCH);
  };
  return {
    known: (roomType, fingerprint) => {
      const schema = all.get(roomType);
      const isCurrent = fingerprint === undefined || String(schema?.fingerprint) === String(fingerprint);
      return isCurrent ? schema : undefined;
    },
    want: (roomType, use, fail) => {
      const list = waiting.get(roomType);
      if (list) return void list.push({ use, fail });
      waiting.set(roomType, [{ use, fail }]);
      request(roomType);
    },
    end: (code, text) => {
      for (const roomType of [...waiting.keys()]) settle(roomType, ({ fail }) => fail(code, text));
    },
  };
}
