/** What a connection and its rooms and channels have of each other. */

import type { Code } from "./codes.js";
import { PlayfieldError } from "./error.js";
import type { Message } from "./messages.js";
import type { Format } from "./format.js";
import type { Outbox } from "./outbox.js";
import type { Integer64 } from "./reader.js";
import type { Schema } from "./schema.js";
import type {
  AnyRoom, ConnectHow, Connection, How, Patience, Room, RoomTypes,
} from "./types.js";

/** Frees the types of the SDK from `readonly`, for those who make the values. */
export type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** A connection, as clients stand on it. */
export interface Core extends Connection {
  /** Joins a room: one of the type that is not full, or a new one, unless `how` says otherwise. */
  join<T extends RoomTypes = AnyRoom>(roomType: string, how?: How<T>): Room<T, any>;
}

/** What waits for the answer to a request. */
export interface Entry {
  /** The message's number in the session. */
  count: number;
  inside?: Inside;
  isJoin?: boolean;
  resolve?(answer: any): void;
  reject(code: Code, text: string, retryMs?: number): void;
  /** The room is at another node. */
  redirect?(addresses: string[], reservation: string): void;
}

/** A room, as its connection sees it. */
export interface Inside {
  room: Room;
  /** The room's number in the session, from `joined` on. */
  number: number | null;
  /** How long the connection may be silent while this client is in the room. */
  silence: number;
  /** After how long the room is quiet only if it has nothing to say. */
  quiet: number;
  /** How long the room keeps the player's seat after the connection is lost, in ms. */
  grace: number;
  /** How many messages the node had to forget since the last event. */
  missing: number;
  /** The copy, as a client that resumes states it. */
  copy(): { room: number; epoch: any; version: number };
  /** The connection is lost; it is restored with the session; the node is quiet, or no longer. */
  lost(text: string): void;
  back(): void;
  weak(isWeak: boolean): void;
  /** Joins; again, after a stay that has ended. */
  enter(): void;
  /** Why the node refused a message without an answer. */
  refused(code: Code, text: string): void;
  /** The stay has ended, maybe for good. */
  end(code: Code, text: string, retryMs?: number): void;
  joined(message: Message): void;
  hears(message: Message): void;
  /** The node reads and writes the rooms of a type by another schema from here on. */
  replaced?(roomType: string): void;
}

/** What a connection gives its rooms: it is the session at one node. */
export interface Links {
  connection: Mutable<Core>;
  /** The sessions at other nodes than the first. */
  others: Set<Links>;
  /** The address of the node. */
  place(): string;
  /** The session at a node that has one of these addresses; opened if there is none. */
  reach(addresses: string[]): Links | undefined;
  /** A room comes, 1, or goes, -1. A session that a redirect has opened is closed without any. */
  hold(change: 1 | -1): void;
  /** Says goodbye, and ends the connection. */
  close(code: Code, text: string): void;
  /** Sends a message that does not count, if there is a connection. */
  put(message: Message): void;
  /** Sends a message that counts, now or when it can. Returns its count, or 0 if too much waits. */
  post(message: Message): number;
  /** Sends a request, whose answer `entry` waits for. Returns its number. */
  ask(message: Message, entry: Omit<Entry, "count">): number;
  /** No longer waits for the answer to a request. */
  forgo(request: number): void;
  /** Fails the requests that `which` selects. */
  fail(which: (entry: Entry) => boolean, code: Code, text: string): void;
  /** Ends the connection for good. */
  end(code: Code, text: string): void;
  /** Leaves a room that this client can't use. */
  leave(room: number): void;
  /** The messages that the node has not confirmed. */
  outbox: Outbox;
  progress(): void;
  isReady(): boolean;
  rooms: Map<number, Inside>;
  /** The rooms that are to be joined again, on a connection that takes players. */
  resting: Set<Inside>;
  schemas: Schemas;
}

/** What a connection gives its parts. */
export interface PartLinks extends Pick<Links, "put" | "post" | "ask" | "end"> {
  format: Format;
  /** Sends a request that concerns no room. */
  request(message: Message, how?: Patience): Promise<any>;
  /** Resolves a request with what its answer says. */
  answer(message: Message, value: unknown): void;
  /** The number of the next request. */
  next(): number;
  isReady(): boolean;
}

/** What a connection does beside rooms, like channels. An entry point may leave it out. */
export interface Part {
  /** What is done with a message, by its type. */
  handlers?: Record<string, (message: Message) => void>;
  /** The node has welcomed the client, to a new session or to the one that it had. */
  begin?(isNew: boolean): void;
  /** The session is over. */
  forget?(): void;
  /** The node refused a request. Returns whether it was one of this part. */
  refused?(request: number, code: Code, text: string, retryMs?: number): boolean;
  end?(code: Code, text: string): void;
}

/** Adds a part to a connection. */
export type MakePart = (connection: Mutable<Connection>, links: PartLinks) => Part;

/** The copy of a state, kept up to date by bodies. */
export interface Copy {
  state: unknown;
  snapshot(body: any): void;
  patch(body: any): void;
  digest(): number | bigint;
}

/** How a user's messages, replies and events are written. */
export interface Exchange {
  message(name: string, payload: unknown): { message: string | number; payload: unknown };
  /** Reads a message that `message` has written. Without a schema, none is rewritten. */
  sent?(message: unknown, payload: unknown): [name: string, payload: unknown];
  reply(name: string, payload: unknown): unknown;
  event(message: unknown, payload: unknown): [name: string, payload: unknown];
}

/** How a client reads and writes what is of a room: in `packed` by its schema. */
export interface RoomCodec {
  schema?: Schema;
  /** Writes the options of a room. */
  options(value: unknown): unknown;
  /** Reads options that `options` has written. Without a schema, none are rewritten. */
  readOptions?(options: Uint8Array): unknown;
  /** Throws if no value of the state can be at a path. Without a schema that is not known. */
  checkPath?(steps: readonly string[]): void;
  copy(viewer: Integer64): Copy;
  exchange: Exchange;
}

/** What is done by the schemas of room types. */
export interface Schemas {
  /**
   * Calls `use` at once if the schema is known, and has this fingerprint. Otherwise asks for it,
   * and calls one of both when it is there, or will not be.
   */
  want(
    roomType: string,
    use: (codec: RoomCodec) => void,
    fail: (code: Code, text: string) => void,
    fingerprint?: unknown,
  ): void;
}

export const TOO_MUCH =
  "too much was sent that the server has not confirmed; try again when it has";

/**
 * The most characters or bytes of messages that may wait for the node's confirmation. Past it
 * `send` returns `false`, and requests fail. The message that reaches it is still taken.
 */
export const UNCONFIRMED_LENGTH_MAX = 2 ** 20;

/** Refusals that pass; what was granted before is asked for again after this time. */
export const PASSING: Code[] = ["limit", "too_fast", "busy"], RETRY_MS = 1000;

/** The most redirects that are followed in a row. */
export const HOPS_MAX = 3;

/** The longest that a timer of the platform takes: 24 days. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * Before each attempt to connect, or to join, again the client waits for a random part of a time
 * that doubles (M. Brooker, "Exponential Backoff And Jitter", 2015), until a connection or a stay
 * has lasted. The first and the longest are `how.backoffMs` and `how.backoffMsMax`. While the node
 * keeps the session, for `kept` ms, the wait is at most half of that. In the last second there is
 * one attempt, shortly before the end: all clients of a node that is away have the same end.
 */
export const LASTING_MS = 5000;
const BACKOFF_MS = 100, BACKOFF_MS_MAX = 5000, LAST_MS = 200, NEAR_MS = 1000;
export const backoff = (
  { backoffMs: first = BACKOFF_MS, backoffMsMax: last = BACKOFF_MS_MAX }: ConnectHow,
  attempts: number, kept = 0,
): number => {
  const part = Math.random(), limit = Math.min(Math.max(first, last), first * 2 ** attempts);
  if (!(kept > 0) || limit <= kept / 2) return part * limit;
  if (kept <= LAST_MS) return part * Math.min(limit, LAST_MS);
  return kept > NEAR_MS ? part * kept / 2 : kept - LAST_MS + part * LAST_MS / 2;
};

/** A time in ms from a node, clamped to what timers take; `undefined` if it is invalid. */
export const duration = (ms: unknown): number | undefined =>
  Number(ms) >= 0 ? Math.min(Number(ms), TIMER_MS_MAX) : undefined;

/**
 * A promise for what `start` begins, with a time limit. `start` returns what cancels it.
 */
export function patient<T>(
  { timeoutMs, signal }: Patience,
  start: (
    resolve: (value: T) => void,
    reject: (error: Error) => void,
    refuse: (code: Code, text: string) => void,
  ) => () => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    if (timeoutMs !== undefined && !(timeoutMs >= 0)) {
      return reject(new TypeError(`timeoutMs is ${timeoutMs}; it must be 0 or more`));
    }
    let timer: ReturnType<typeof setTimeout> | undefined, isOver = false;
    let giveUp = (): void => {};
    const over = (): void => {
      isOver = true;
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    const stop = (reason: Error): void => {
      over();
      giveUp();
      reject(reason);
    };
    const abort = (): void => stop(signal!.reason);
    const fail = (error: Error): void => (over(), reject(error));
    giveUp = start(
      (value) => (over(), resolve(value)),
      fail,
      (code, text) => fail(new PlayfieldError(code, text)),
    );
    if (isOver) return;
    signal?.addEventListener("abort", abort);
    // A timer of the platform that is set for longer fires at once.
    if (timeoutMs === undefined || timeoutMs > TIMER_MS_MAX) return;
    const text = `there was no answer within ${timeoutMs} ms`;
    timer = setTimeout(() => stop(new PlayfieldError("timeout", text)), timeoutMs);
  });
}
