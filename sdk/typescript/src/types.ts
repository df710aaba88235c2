/** What the SDK's users see, as types. */

import type { Integer64 } from "./reader.js";
import type { Change, Path } from "./changes.js";
import type { Code } from "./codes.js";
import type { OutOfStep } from "./error.js";
import type { FormatName } from "./format.js";
import type { Schema } from "./schema.js";
import type { Joined } from "./tables.js";

export type { Joined };

/** The types of a room, as `my-game generate typescript` writes them. */
export interface RoomTypes {
  /** The room type's name. Without it, any name will do. */
  type?: string;
  state: unknown;
  options: unknown;
  messages: { [name: string]: { payload: unknown; reply: unknown } };
  events: { [name: string]: unknown };
}

/** A room whose types are not known. */
export interface AnyRoom {
  state: any;
  options: any;
  messages: { [name: string]: { payload: any; reply: any } };
  events: { [name: string]: any };
}

/** The names of room types that a room of these types may have. */
export type TypeName<T extends RoomTypes> = T extends { type: infer N extends string } ? N : string;
export type Messages<T extends RoomTypes> = keyof T["messages"] & string;
export type Events<T extends RoomTypes> = keyof T["events"] & string;

/** The payload as an argument, which may be left out if the message has no fields. */
export type Payload<P, Rest extends unknown[] = []> = [null] extends [P]
  ? [payload?: P, ...rest: Rest]
  : [payload: P, ...rest: Rest];

/** How long to wait. */
export interface Patience {
  /**
   * Gives up after this time, with the code "timeout". The room may have handled it, or may yet.
   */
  timeoutMs?: number;
  /** Gives up when it is aborted, with its reason. */
  signal?: AbortSignal;
}

/** How long to wait for a room, and whether to come back to it. */
export interface JoinHow extends Patience {
  /**
   * Joins again by itself when the stay has ended only because the connection was lost for too
   * long, the server is restarted, or the room has failed: the same room, or if that is gone, one
   * as asked for at first. `room` stays the same object, with another player number; it is "lost"
   * meanwhile. `false` without it, unless the client's `again` says otherwise.
   */
  again?: boolean;
}

/**
 * How a stay in a room stands: "joining" until the first state is there; "lost" while the
 * connection is restored, or the room joined again; "joined", as a new player; "back", as the same
 * player; "weak" while nothing is heard of a server that should be; "left" at the end.
 */
export type RoomStatus = "joining" | "joined" | "lost" | "back" | "weak" | "left";

/**
 * A status that may be another at the next look: the compiler does not conclude from one comparison
 * how a later one ends.
 */
export type Current<S extends string> = S | (string & {});

/** Why a status is what it is. */
export interface Reason {
  /** A code of docs/protocol.md, "Errors"; empty with "joining", "joined" and "back". */
  code: Code;
  /** A text for people; empty with "joined" and "back". */
  message: string;
}

/** Which room to join, and what a new room is like. */
export interface How<T extends RoomTypes = AnyRoom> {
  /**
   * The id of the room to join, or a reservation or a ticket for a seat in it. It says which room
   * it is, so the room type and the other members are ignored.
   */
  id?: string;
  /** The key of the room to join or create, or the code of the one to join. */
  key?: string;
  /**
   * `false` joins a room only if it exists, which needs its `id` or `key`; `true` creates a new
   * one. Without it, either will do.
   */
  create?: boolean;
  /** With `create: true`, the node picks a short code as the key. */
  code?: boolean;
  /** With `create: true`, the room is neither listed nor found by chance. */
  private?: boolean;
  /** The options of a new room, which may be criteria for the one to join. */
  options?: T["options"];
  /** Whether to come back by itself, as in `JoinHow`. */
  again?: boolean;
}

/** A room. All fields are read-only. */
export interface Room<T extends RoomTypes = AnyRoom, C = Connection> {
  /**
   * The connection to the room's node. What it does beside rooms is done over the client's first
   * connection.
   */
  readonly connection: C;
  /**
   * The copy of the room's state: plain objects that never change. What did not change from one
   * state to the next is the same object. `null` before the first snapshot.
   */
  readonly state: T["state"];
  /** The version of the copy; 0 before the room is joined, `null` while a snapshot is awaited. */
  readonly version: number | null;
  /** This client's player number; `null` before the room is joined. */
  readonly player: Integer64 | null;
  /** The room's number in this session; `null` while not in the room. */
  readonly number: number | null;
  /** The room's id, once it is joined. */
  readonly id?: string;
  /** The room's key or code; `null` if it has none, or is not joined. */
  readonly key: string | null;
  /** All that the node said of the room when this client joined it; `null` before that. */
  readonly info: Joined | null;
  /**
   * Resolves to the room once it is joined and its state is there. Rejects with the node's reason
   * if it is not joined; the error has its `code`.
   */
  readonly joined: Promise<Room<T, C>>;
  /** The stay in the room has ended for good: nothing more comes. */
  readonly left: boolean;
  /** How the stay stands: a `RoomStatus`. */
  readonly status: Current<RoomStatus>;
  /** Why it stands so. */
  readonly reason: Reason;
  /** The number of patches applied. */
  readonly patches: number;
  /**
   * Sends a message without a reply. While the connection is lost, it waits. Returns `false` if it
   * can't be sent: not in the room, or not yet, or too much waits. What the node refuses of it, as
   * when it is more than the message's rate allows, `onRefused` reports.
   *
   * @throws {EncodeError} In `packed`, if the room has no such message, or the payload does not
   *   fit.
   */
  send<M extends Messages<T>>(
    message: M,
    ...payload: Payload<T["messages"][M]["payload"]>
  ): boolean;
  /**
   * Sends a message and resolves to its reply. Waits until the room is joined. Rejects with the
   * node's reason, or when the room ends; the error has its `code`. "connection_lost" means that it
   * is unknown whether the room has handled the request.
   */
  request<M extends Messages<T>>(
    message: M,
    ...payload: Payload<T["messages"][M]["payload"], [how?: Patience]>
  ): Promise<T["messages"][M]["reply"]>;
  /** Calls a function after each snapshot or patch. Returns one that removes it. */
  onState(listener: (state: T["state"], room: Room<T>) => void): () => void;
  /**
   * Calls a function for each value at a path that entered, left or changed: "round",
   * "players.*", ["players", "*", "hp"]. Its argument has `kind`, "entered", "left" or "changed";
   * `path`, the steps to this value; `value`, what it is now; and `old`, what it was. Returns a
   * function that removes it.
   *
   * @throws {TypeError} In `packed`, if the schema has nothing at such a path.
   */
  onChange<V = any>(path: Path, listener: (change: Change<V>) => void): () => void;
  /**
   * Calls functions for the members of a map, or the elements of a list, at a path. It throws as
   * `onChange` does.
   */
  onEntries<V = any>(path: Path, on: EntryCallbacks<V>): () => void;
  /**
   * Calls a function for each event of a name, or with "*" for each of any name. Events that came
   * in the turn in which the room was joined wait for it. Returns a function that removes it.
   */
  onEvent<E extends Events<T>>(
    name: E, listener: (payload: T["events"][E], name: E) => void,
  ): () => void;
  onEvent(name: "*", listener: (payload: any, name: Events<T>) => void): () => void;
  /** Calls a function when `status` or its reason has changed. Returns one that removes it. */
  onStatus(listener: (status: RoomStatus, reason: Reason) => void): () => void;
  /**
   * Calls a function when the node, or the room, refused messages of `send`: which ones is not
   * known. Returns one that removes it.
   */
  onRefused(listener: (code: Code, text: string) => void): () => void;
  /**
   * Calls a function before an event, if the node had to forget this many events before it while
   * the connection was lost. Returns one that removes it.
   */
  onMissed(listener: (count: number) => void): () => void;
  /**
   * Calls a function when the copy can't use a message. The client then asks for a snapshot. Until
   * it comes, `version` is `null`, and `state` is the last one that was right. Returns a function
   * that removes it.
   */
  onOutOfStep(listener: (error: OutOfStep) => void): () => void;
  /** Calls a function when the stay has ended for good. Returns one that removes it. */
  onLeft(listener: (code: Code, text: string) => void): () => void;
  /** Leaves the room. The connection stays. A client that gives up leaves the room later. */
  leave(how?: Patience): Promise<void>;
  /** Closes the client's connections, and so leaves the room. */
  close(): void;
}

export interface EntryCallbacks<V> {
  entered?(key: string, value: V): void;
  left?(key: string, old: V): void;
  changed?(key: string, value: V, old: V): void;
}

export type Status = "connecting" | "connected" | "lost" | "ended";

/** The callbacks of a connection. All are optional. */
export interface ConnectionCallbacks {
  /**
   * The connection was lost. The client connects again by itself. Rooms stay as they are, and what
   * is sent meanwhile waits.
   */
  lost?(text: string): void;
  /**
   * The connection is restored after `away` milliseconds, and the session goes on. `lost` is what
   * the node had to forget, by room: events, which `onMissed` reports, and answers, whose requests
   * fail.
   */
  resumed?(how: { away: number; lost: { room: Room | null; messages: number }[] }): void;
  /**
   * The connection is restored, but the node no longer had the session. All rooms have ended, and
   * all requests have failed. Join again. `unconfirmed` is how many messages without an answer the
   * node has not confirmed: whether they were handled is unknown.
   */
  newSession?(how: { away: number; unconfirmed: number }): void;
  /**
   * The node refused what has no answer and is about no room: `publishUnconfirmed` and
   * `reportUnconfirmed`. If they came faster than a rate of the node allows, `code` is `too_fast`,
   * and the text says which rate it is and how many were refused since the call before.
   */
  refused?(code: Code, text: string): void;
  /**
   * The connection has ended for good. After `close` on a connection that is there, what is not
   * confirmed is on its way.
   */
  ended?(code: Code, text: string, how: { unconfirmed: number }): void;
}

export type Token = string | Uint8Array;

/** What a client uses of a WebSocket. */
export interface Socket {
  binaryType: string;
  readonly readyState: number;
  onopen: ((event: any) => any) | null;
  onmessage: ((event: any) => any) | null;
  onclose: ((event: any) => any) | null;
  onerror: ((event: any) => any) | null;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(): void;
}

/** How to connect. All are optional. */
export interface ConnectHow {
  /**
   * For the node's authenticator. A function is called when there is no token for a node yet, when
   * the node refused one that it took before, and shortly before the `exp` of a JSON Web Token. If
   * it fails, or takes longer than an attempt to connect may, the attempt has failed, and the next
   * one, after a longer wait, calls it again.
   */
  token?: Token | (() => Token | Promise<Token>);
  /**
   * How long to try to connect, at first and after each lost connection. The time during which the
   * page is hidden, or the device asleep, does not count. 60,000 without it; with 0 the first
   * failure is the end.
   */
  reconnectTimeoutMs?: number;
  /**
   * The wait before the first attempt to restore a lost connection, which doubles with each
   * attempt. The client waits for a random part of it, and less while the node still keeps the
   * session. 100 without it.
   */
  backoffMs?: number;
  /** The most that it grows to. 5,000 without it. */
  backoffMsMax?: number;
  /**
   * The node: `wss://…`, `https://…`, or a path at the host that served the page. Without it, the
   * path `/` there.
   */
  url?: string;
  /**
   * The class of sockets, where there is none of the platform's: in Node before 22, that of the
   * package `ws`.
   */
  WebSocket?: new (url: string) => Socket;
  /**
   * "json", or "packed", which reads by the node's schema: several times less to send and to read.
   */
  format?: FormatName;
}

/** A place in a channel. */
export interface Position {
  epoch: Integer64;
  offset: number;
}
export interface Member {
  session: Integer64;
  user?: string;
  name: string;
}
export interface Publication {
  offset: number;
  user?: string;
  payload: any;
}
/**
 * The place of a channel's last publication, and some publications. With `bytes`, their payloads
 * are base64.
 */
export type History = Position & { bytes: boolean; publications: Publication[] };

/** The callbacks of a subscription. All are optional. */
export interface ChannelCallbacks {
  /** For each publication: once, in order. A channel of bytes has base64. */
  publication?(payload: any, publication: Publication): void;
  /**
   * The node has answered, on this connection. `recovered` says whether nothing was lost:
   * everything since the position follows, or there was none, as in a first subscription. If not,
   * `missed` counts what was lost; `null` if that is not known, because the channel has ended
   * meanwhile, or the node has restarted. `members` is 0 if this client may not know how many
   * there are.
   */
  subscribed?(how: { recovered: boolean; missed: number | null; members: number }): void;
  /**
   * Before a publication: the node has dropped this many before it, because this client was too
   * slow.
   */
  missed?(count: number): void;
  /**
   * Another session subscribes, or does no longer. After a gap in `sequence`, ask for `members`.
   * With this callback, a subscription is refused where the rule does not show who subscribes.
   */
  presence?(member: Member & { joined: boolean; sequence: number }): void;
  /** The node refused the subscription, or has ended it, or the connection has ended. */
  unsubscribed?(code: Code, text: string): void;
}

/** From which publication on; new ones without it. */
export interface ChannelHow {
  since?: Position | null;
}

/** A subscription. All fields are read-only. */
export interface Subscription {
  readonly connection: Connection;
  /** The channel's name. */
  readonly channel: string;
  /** The last publication that was reported, or before which it began. */
  readonly position: Position | null;
  /** Nothing more comes. */
  readonly ended: boolean;
  /** Ends it. */
  unsubscribe(): void;
}

/** The callbacks of a device. All are optional. */
export interface DeviceCallbacks {
  /**
   * For each command. What it returns, or its promise resolves to, is the answer, if one is wanted;
   * what it throws is the reason why there is none.
   */
  command?(payload: any): any;
  /**
   * The device is registered. `isNew` says whether no other was under the id, `bytes` that
   * commands, reports and their replies are base64.
   */
  registered?(how: { isNew: boolean; bytes: boolean }): void;
  /** The node refused, now or in a new session, or the connection has ended. */
  unregistered?(code: Code, text: string): void;
}

export interface DeviceHow {
  metadata?: Record<string, string>;
  tags?: string[];
}

/** A device. All fields are read-only. */
export interface Device {
  readonly connection: Connection;
  readonly id: string;
  /** Resolves once it is registered; rejects if it is refused. */
  readonly registered: Promise<Device>;
  /** Sends a report, and resolves to the reply. */
  report(payload: any, how?: Patience): Promise<any>;
  /**
   * Sends a report without a reply. Returns `false` if too much waits. If it is refused, the
   * `refused` of the connection says so.
   */
  reportUnconfirmed(payload: any): boolean;
}

/** A room in a list. */
export interface ListedRoom {
  id: string;
  room_type: string;
  key?: string;
  players: number;
  capacity: number;
  locked: boolean;
  metadata: Record<string, string>;
}

/** Which rooms to list. */
export interface ListHow {
  roomType?: string;
  /** Metadata that must be equal. */
  filter?: Record<string, string>;
  /** 0, or nothing, is the node's own. */
  limit?: number;
}

/** A connection, for rooms alone. All fields are read-only. */
export interface RoomsConnection {
  /** How it stands: a `Status`. */
  readonly status: Current<Status>;
  /**
   * The shortest round trip of the last eight pings, in milliseconds; `null` until the first answer
   * on the present connection.
   */
  readonly roundTrip: number | null;
  /**
   * The node's clock, in milliseconds since it started, minus `performance.now()`. It is off by at
   * most half the round trip.
   */
  readonly clockOffset: number | null;
  /** The length of all messages received. */
  readonly bytes: number;
  /** The rooms that a node lists. */
  list(how?: ListHow & Patience): Promise<ListedRoom[]>;
  /** Calls a function when `status` has changed. Returns one that removes it. */
  onStatus(listener: (status: Status, text: string) => void): () => void;
  /** Measures the round trip now. The client does so from time to time. */
  ping(): void;
  /** Says goodbye, and so leaves all rooms. */
  close(): void;
}

/** A connection, for rooms, channels and devices. All fields are read-only. */
export interface Connection extends RoomsConnection {
  /** The schema of a room type. */
  schema(roomType: string, how?: Patience): Promise<Schema>;
  /**
   * Subscribes to a channel, and again on each new connection, with the position it has reached.
   * Throws if this connection subscribes to it already.
   */
  subscribe(channel: string, on?: ChannelCallbacks, how?: ChannelHow): Subscription;
  /**
   * Publishes to a channel. Resolves to the publication's offset, or rejects with the node's
   * reason.
   */
  publish(channel: string, payload: any, how?: Patience): Promise<number>;
  /** Publishes without an answer. Returns `false` if too much waits. */
  publishUnconfirmed(channel: string, payload: any): boolean;
  /**
   * Who subscribes to a channel: how many, those that the node lists, and the number of the last
   * `presence` before the answer.
   */
  members(
    channel: string, how?: Patience,
  ): Promise<{ sequence: number; count: number; members: Member[] }>;
  /** Publications of a channel after `since`, the oldest first. */
  history(
    channel: string, how?: { since?: Position; limit?: number } & Patience,
  ): Promise<History>;
  /** Registers as a device, and again in each new session. */
  register(id: string, on?: DeviceCallbacks, how?: DeviceHow): Device;
}
