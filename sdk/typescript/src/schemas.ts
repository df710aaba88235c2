/** The schemas of room types that a connection has asked for. */

import { withPacked } from "./codec.js";
import type { Code } from "./codes.js";
import { type Links, PASSING, RETRY_MS, type RoomCodec, type Schemas, TOO_MUCH } from "./links.js";
import type { Message } from "./messages.js";
import { NO_MESSAGE, type Outbox } from "./outbox.js";

interface Waiting {
  all: { use(codec: RoomCodec): void; fail(code: Code, text: string): void }[];
  /** The last schema of the node, while its reader is loaded. */
  body?: Uint8Array;
  timer?: ReturnType<typeof setTimeout>;
}

/** Whether a room with this fingerprint can be read; any can if it is not known. */
export const isOf = ({ schema }: RoomCodec, fingerprint: unknown): boolean =>
  !schema || fingerprint === undefined || String(schema.fingerprint) === String(fingerprint);

/** `own` is of a format that needs no schemas. */
export function makeSchemas(ask: Links["ask"], outbox: Outbox, own?: RoomCodec): Schemas & {
  /** The node has sent another schema, unasked. `wanting` wants it for the rooms of the type. */
  replace(roomType: string, body: Uint8Array, wanting: () => void): void;
  /** The session is over: the next one may be of a node with other schemas. */
  forget(): void;
  end(code: Code, text: string): void;
} {
  const all = new Map<string, RoomCodec>(), waiting = new Map<string, Waiting>();
  const decoder = new TextDecoder();

  const settle = (roomType: string, then: (waiting: Waiting["all"][0]) => void): void => {
    const settled = waiting.get(roomType);
    waiting.delete(roomType);
    clearTimeout(settled?.timer);
    settled?.all.forEach(then);
  };
  const refuse = (roomType: string, code: Code, text: string): void =>
    settle(roomType, ({ fail }) => fail(code, text));
  const take = (roomType: string, body: Uint8Array, old?: RoomCodec): void => {
    const wanted = waiting.get(roomType);
    // Another schema came before the answer.
    if (!wanted) return;
    wanted.body = body;
    const rewrite = (change: (message: Message) => object): void => outbox.rewrite(
      ({ room_type: of, options }) => Boolean(old && options) && of === roomType, change);
    withPacked(
      ({ roomCodec }) => {
        let codec: RoomCodec;
        try {
          codec = roomCodec(decoder.decode(wanted.body));
        } catch (error) {
          rewrite(() => NO_MESSAGE);
          return refuse(roomType, "bad_message", (error as Error).message);
        }
        all.set(roomType, codec);
        rewrite(({ options }) => ({ options: codec.options(old!.readOptions!(options)) }));
        settle(roomType, ({ use }) => use(codec));
      },
      ({ message }) => refuse(roomType, "internal", message),
    );
  };
  const request = (roomType: string): void => {
    const wanted = waiting.get(roomType);
    if (!wanted) return;
    const resolve = (body: Uint8Array): void => take(roomType, body);
    const reject = (code: Code, text: string, retryMs = RETRY_MS): void => {
      // What this client holds back is refused at once, as any request.
      const isPassing = PASSING.includes(code) && text !== TOO_MUCH;
      if (isPassing) wanted.timer = setTimeout(() => request(roomType), retryMs);
      else refuse(roomType, code, text);
    };
    ask({ type: "schema", room_type: roomType }, { resolve, reject });
  };
  return {
    want: (roomType, use, fail, fingerprint) => {
      const codec = own ?? all.get(roomType);
      if (codec && isOf(codec, fingerprint)) return use(codec);
      const wanted = waiting.get(roomType);
      if (wanted) return void wanted.all.push({ use, fail });
      waiting.set(roomType, { all: [{ use, fail }] });
      request(roomType);
    },
    replace: (roomType, body, wanting) => {
      const old = all.get(roomType);
      all.delete(roomType);
      // No request for it is needed.
      if (!waiting.has(roomType)) waiting.set(roomType, { all: [] });
      wanting();
      take(roomType, body, old);
    },
    forget: () => all.clear(),
    end: (code, text) => {
      for (const roomType of [...waiting.keys()]) refuse(roomType, code, text);
    },
  };
}
