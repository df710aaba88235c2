/** Connections, which are restored when they are lost (docs/protocol.md, "Resumption"). */

import { address, choose, listed } from "./address.js";
import { toBase64, utf8 } from "./base64.js";
import { call, Listeners } from "./callbacks.js";
import { withPacked } from "./codec.js";
import type { Code } from "./codes.js";
import { type Format, isLonger } from "./format.js";
import {
  backoff, type Core, duration, type Entry, HOPS_MAX, type Inside, LASTING_MS, type Links,
  type MakePart, type Mutable, patient, TOO_MUCH, UNCONFIRMED_LENGTH_MAX,
} from "./links.js";
import type { Message } from "./messages.js";
import { Outbox } from "./outbox.js";
import { DOUBT_MS, makePulse, now } from "./pulse.js";
import { makeRoom } from "./room.js";
import { makeSchemas } from "./schemas.js";
import type {
  ConnectHow,
  ConnectionCallbacks,
  How,
  ListedRoom,
  Patience,
  RoomTypes,
  Socket,
  Status,
  Token,
} from "./types.js";

/** The messages that arrive exactly once, over however many connections. */
const COUNTED = [
  "joined", "listed", "schema", "left", "reply", "event", "error",
  "published", "members", "history", "registered", "command", "redirect",
];

/** Acknowledges them after this many messages, this many characters or bytes, or this long. */
const ACK_EVERY = 32, ACK_LENGTH = 16384, ACK_DELAY_MS = 1000;

/** A message that counts comes again if it can't be read. After more in a row the client stops. */
export const UNREADABLE_IN_A_ROW_MAX = 2;

/**
 * An attempt to connect that takes longer has failed. While the node still keeps the session, an
 * attempt takes at most a third of that time, or the shorter limit: one that hangs leaves time for
 * others.
 */
const ATTEMPT_MS_MAX = 10_000, ATTEMPT_MS = 3000;

/** The time for which the session at another node is kept without a room. */
const NODE_IDLE_MS = 10_000;

/** The state of a WebSocket that is open; later ones have larger numbers. */
const OPEN = 1;

/** A token is renewed when it expires within this time. */
const EXPIRY_MS = 10_000;

/** A close without a code. */
const ABNORMAL = 1006;

const UNKNOWN =
  "; is a server there, is its certificate trusted, and does it accept pages from here?";

const isHidden = (): boolean => globalThis.document?.hidden ?? false;

const UNWANTED = "nothing waits for it";
const LOST = "the answer was lost with the connection: it is unknown whether this was done";
const NEW_SESSION =
  "the node no longer had the session when the connection was restored; " +
  "what it was asked is lost: join rooms again";

/** A token in base64, if there is one. */
function base64(token: Token | undefined): string | undefined {
  if (token === undefined) return undefined;
  return toBase64(typeof token === "string" ? utf8(token) : token);
}

/** Until when a token is good: a JSON Web Token says so (RFC 7519, 4.1.4), if the clocks agree. */
function expiry(token: Token | undefined): number {
  try {
    const [, claims] = (token as string).split("."), text = claims.replace(/-/g, "+");
    const until = JSON.parse(atob(text.replace(/_/g, "/"))).exp * 1000 - EXPIRY_MS;
    if (until > Date.now()) return until;
  } catch {
    // It is another kind of token.
  }
  return Infinity;
}

/** A connection in a format, with what it does beside rooms. */
export const makeConnection = (
  name: string, on: ConnectionCallbacks, how: ConnectHow, format: Format, makeParts: MakePart[],
): Core => makeSession(name, on, how, format, makeParts).connection;

/** The session of a client at its first node; or, with `first`, at one that has a room of it. */
function makeSession(
  name: string, on: ConnectionCallbacks, how: ConnectHow, format: Format, makeParts: MakePart[],
  first?: Links, reached?: string,
): Links {
  const url = address(how.url),
    WebSocket = how.WebSocket ?? globalThis.WebSocket;
  if (!WebSocket) throw new Error("no WebSocket here: pass a class of them as how.WebSocket");
  const begun = {
    // What is not about rooms is done at the first node.
    __proto__: first?.connection,
    status: "connecting", roundTrip: null, clockOffset: null, bytes: 0,
  };
  const connection = begun as unknown as Mutable<Core>;
  // The sessions at other nodes.
  const others = first?.others ?? new Set<Links>();
  // The number of rooms that hold this session.
  let holds = 0, idleTimer: ReturnType<typeof setTimeout> | undefined;
  // The address of the present connection, or the attempt at one; the one where the node is
  // reached, as far as that is known; and how many redirects led here in a row.
  let at = reached ?? url, own = at, hops = 0;
  const statuses = new Listeners<[Status, string]>();
  const rooms = new Map<number, Inside>(); // by number, once joined
  const exited = new Set<number>(); // left by this client: more may come of them
  const resting = new Set<Inside>(); // to be joined again
  const waiting = new Map<number, Entry>(); // what waits for an answer, by the request's number
  let requests = 0;
  // Of the session: its token, "" if the node does not keep it; the messages that the node has not
  // confirmed; how many of the node's were handled.
  let token = "", received = 0;
  const outbox = new Outbox(format);
  // How many messages without an answer it had not confirmed at its end.
  let unconfirmed = 0;
  // What was not acknowledged of the node's, and how many messages in a row were unreadable.
  let behind = 0, behindLength = 0, unreadable = 0;
  // Of the present connection, or the attempt at one.
  let socket: Socket | undefined, began = 0, isWelcome = false;
  // How many attempts there were, how long they took, and since when the connection is lost.
  let attempts = 0, tried = 0, lostAt: number | null = null, wasWelcome = false;
  // The time that the node keeps the session after a lost connection.
  let graceMs = 0;
  // What the node said on this connection: how long to wait. The token of a function, until when it
  // is valid, and whether it was given for this attempt.
  let retryAfter = 0, given: Token | undefined, validUntil = 0, isFresh = false;
  // What was said last.
  let said = "";
  // Whether this connection has resumed the session, and brought it forward.
  let isResumed = false, hasProgress = false;
  let heartbeat = 0;
  let ackTimer: ReturnType<typeof setTimeout> | undefined,
    openTimer: ReturnType<typeof setTimeout> | undefined;
  const wakes = new AbortController();

  /** Says how things stand, unless it was said. */
  const says = (text: string): void => {
    const now = connection.status + text;
    if (said !== now) statuses.call(connection.status as Status, text);
    said = now;
  };

  const write = (frame: string | Uint8Array): void => socket!.send(frame as string);
  const put = (message: Message): void => {
    if (isWelcome) write(format.write(message));
  };
  /**
   * Sends a message that counts, now or when it can. Returns its count; 0 if too much waits, and -1
   * if it is larger than the node takes.
   */
  const post = (message: Message): number => {
    if (connection.status === "ended" || outbox.length >= UNCONFIRMED_LENGTH_MAX) return 0;
    const frame = format.write(message);
    if (isLonger(frame, outbox.bytesMax)) return -1;
    if (token || !isWelcome) outbox.keep(frame, message);
    if (isWelcome) write(frame);
    return ++outbox.sent;
  };
  const acknowledge = (): void => {
    clearTimeout(ackTimer);
    behind = behindLength = 0;
    ackTimer = undefined;
    if (token) put({ type: "ack", received });
  };
  /** Sends a request, whose answer `entry` waits for. Returns its number. */
  const ask = (message: Message, entry: Omit<Entry, "count">): number => {
    const request = ++requests;
    const count = post({ ...message, request });
    const why: [Code, string] =
      count < 0
        ? ["too_large", `the message is larger than the server takes, ${outbox.bytesMax} bytes`]
        : connection.status === "ended"
          ? ["connection_lost", "the connection has ended"]
          : ["limit", TOO_MUCH];
    if (count > 0) waiting.set(request, { ...entry, count });
    else queueMicrotask(() => entry.reject(...why));
    return request;
  };
  /** Fails the requests that `which` selects. */
  const fail = (which: (entry: Entry) => boolean, code: Code, text: string): void => {
    for (const [request, entry] of waiting) {
      if (which(entry) && waiting.delete(request)) entry.reject(code, text);
    }
  };
  /** The session is over, and with it all rooms and requests. */
  const forget = (code: Code, text: string): void => {
    const over = [...rooms.values()], failed = [...waiting.values()];
    // Requests fail; the others have no other way to say so.
    unconfirmed += outbox.forget();
    rooms.clear();
    exited.clear();
    waiting.clear();
    received = behind = behindLength = 0;
    token = "";
    for (const part of parts) part.forget?.();
    schemas.forget();
    // From here on the callbacks may join again.
    for (const inside of over) inside.end(code, text);
    for (const entry of failed) entry.reject(code, text);
  };

  /** How often the connection is checked: rooms may want to notice a lost one sooner. */
  const beat = (): number =>
    Math.min(heartbeat, ...[...rooms.values()].map((inside) => inside.silence / 2));
  const quiet = (): number => {
    let least = Infinity;
    for (const inside of rooms.values()) least = Math.min(least, inside.quiet);
    return least;
  };
  const dead = (): void => lose("the server does not answer");
  const pulse = makePulse(put, beat, dead, quiet, (isWeak) => {
    for (const inside of rooms.values()) inside.weak(isWeak);
  });

  /** Drops the present connection, or the attempt at one. */
  const drop = (): void => {
    pulse.stop();
    for (const timer of [ackTimer, openTimer]) clearTimeout(timer);
    ackTimer = openTimer = undefined;
    isWelcome = false;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    // In some libraries an error that nobody hears ends the process.
    socket.onerror = () => {};
    socket.close();
    socket = undefined;
  };
  /** The connection has ended for good. */
  const end = (code: Code, text: string): void => {
    if (connection.status === "ended") return;
    drop();
    wakes.abort();
    clearTimeout(idleTimer);
    connection.status = "ended";
    others.delete(links);
    if (!first) for (const node of others) node.close(code, text);
    forget(code, text);
    schemas.end(code, text);
    for (const inside of resting) inside.end(code, text);
    for (const part of parts) part.end?.(code, text);
    says(text);
    call(on, "ended", code, text, { unconfirmed });
  };
  /** How long the node keeps the session or the next seat, as it said; 0 after all of them. */
  const grace = (): number => {
    const since = lostAt;
    if (since === null || !graceMs) return 0;
    const graces = [graceMs, ...[...rooms.values()].map((inside) => inside.grace)];
    return graces.filter((ms) => since + ms > now()).sort((a, b) => a - b)[0] ?? 0;
  };
  /** The connection is lost, or the attempt at one has failed. */
  const lose = (text: string, code: Code = "connection_lost"): void => {
    const wasConnected = isWelcome, took = now() - began;
    drop();
    if (wasConnected) {
      lostAt = now();
      for (const inside of rooms.values()) inside.lost(`${text}; reconnecting`);
      // A node that takes the session back and ends at once is not asked ever faster.
      if (took > LASTING_MS || (isResumed && hasProgress)) attempts = 0;
    } else if (!isHidden()) tried += Math.min(took, ATTEMPT_MS_MAX);
    // Of a node that was never reached, the first one may know more.
    const left = (first && !wasWelcome ? 0 : how.reconnectTimeoutMs ?? 60_000) - tried;
    if (left <= 0) return end(code, wasWelcome ? `${text}; it could not be reached again` : text);
    const kept = grace() && lostAt! + grace() - now();
    // The last attempt within the grace comes shortly before its end.
    const wish = backoff(how, attempts++, kept || 0);
    // There is time for one attempt at least.
    const wait = Math.min(retryAfter + wish, left);
    retryAfter = hops = 0;
    // The node's own address comes first, then this and the given one in turn.
    at = wasConnected || at === url ? own : url;
    if (!isHidden()) tried += wait;
    openTimer = setTimeout(open, wait);
    connection.status = wasWelcome ? "lost" : "connecting";
    if (!wasConnected) return says(`${text}; trying again`);
    if (!token) forget("connection_lost", text);
    // A callback may have closed it.
    if (connection.status === "ended") return;
    says(`${text}; reconnecting`);
    call(on, "lost", text);
  };
  /** The device woke up, the page is shown again, or the network has changed. */
  const wake = ({ type }: { type: string }): void => {
    if (isHidden()) return;
    // A page that was stored away may not have heard of the end.
    if (isWelcome && socket!.readyState > OPEN) lose("disconnected");
    if (isWelcome) pulse.watch(DOUBT_MS);
    else if (type === "offline" || connection.status === "ended") return;
    else if (openTimer || now() - began > DOUBT_MS) open();
  };

  /** Leaves a room that the node has this client in, but that it does not know, or can't use. */
  const leave = (room: number): void => {
    exited.add(room);
    post({ type: "leave", request: ++requests, room });
  };

  /** A request that concerns no room. */
  const request = (message: Message, how: Patience = {}): Promise<any> =>
    patient(how, (resolve, _, reject) => {
      const number = ask(message, { resolve, reject });
      return () => void waiting.delete(number);
    });

  const isReady = (): boolean => isWelcome;
  const schemas = makeSchemas(ask, outbox, format.codec);

  const answer = (message: Message, value: unknown): void =>
    waiting.get(message.request)?.resolve?.(value);
  const next = (): number => ++requests;
  const partLinks = { format, put, post, ask, end, request, answer, next, isReady };
  const parts = makeParts.map((make) => make(connection, partLinks));
  const handlers: Record<string, (message: Message) => void> = {
    welcome: ({
      resume = "", grace_ms: grace, heartbeat_ms, max_message_bytes, resumed, addresses = [],
    }) => {
      const wasLost = lostAt !== null, away = lostAt === null ? 0 : now() - lostAt;
      if (resumed) {
        if (!token || !outbox.confirm(resumed.received))
          return end("bad_message", "a welcome is wrong");
      } else {
        if (token) forget("connection_lost", NEW_SESSION);
        if (connection.status === "ended") return; // by a callback
        outbox.begin();
      }
      graceMs = duration(grace) ?? 0;
      outbox.bytesMax = max_message_bytes ?? Infinity;
      token = graceMs > 0 ? resume : "";
      heartbeat = duration(heartbeat_ms) || 30_000;
      isWelcome = wasWelcome = true;
      hasProgress = false;
      isResumed = resumed !== undefined;
      tried = hops = 0;
      own = choose(addresses, at) ?? at;
      lostAt = null;
      began = now();
      connection.status = "connected";
      for (const frame of outbox.frames) write(frame);
      if (!token) outbox.drop();
      pulse.watch(beat());
      const lost = (resumed?.lost ?? []).map(({ room: number, messages }: Message) => {
        const inside = rooms.get(number);
        // With an unknown room, it was the answer to a join; without one, to something else too.
        const isOf = ({ inside: of, isJoin }: Entry): boolean =>
          inside ? of === inside : Boolean(isJoin) || (!number && !of);
        fail((entry) => isOf(entry) && entry.count <= resumed.received, "connection_lost", LOST);
        received += messages;
        if (inside) inside.missing += messages;
        else if (number) leave(number);
        return { room: inside?.room ?? null, messages };
      });
      for (const part of parts) part.begin?.(!resumed);
      for (const inside of resumed ? rooms.values() : []) inside.back();
      for (const inside of [...resting]) inside.enter();
      says("connected");
      if (resumed) call(on, "resumed", { away, lost });
      else if (wasLost) call(on, "newSession", { away, unconfirmed });
      unconfirmed = 0;
    },
    ack: ({ received: count }) => {
      hasProgress ||= count > outbox.confirmed;
      if (!outbox.confirm(count))
        end("bad_message", "the node confirmed messages that were not sent");
    },
    joined: (message) => {
      const entry = waiting.get(message.request);
      if (!entry?.isJoin) return leave(message.room);
      entry.inside!.joined(message);
      if (message.silence_ms) pulse.watch(beat());
    },
    redirect: ({ request, addresses = [], reservation = "" }) => {
      const entry = waiting.get(request), to = choose(addresses, at);
      if (isWelcome ? entry && !entry.redirect : !token) throw new Error(UNWANTED);
      if (isWelcome) return entry?.redirect!(addresses, reservation);
      // The session is at another node.
      if (!to || ++hops > HOPS_MAX) return lose(`the session is not at ${listed(addresses)}`);
      at = to;
      open();
    },
    reply: (message) => answer(message, message.payload),
    listed: (message) => answer(message, message.rooms ?? []),
    schema: (message) => {
      const { request, room_type: roomType, schema } = message;
      if (request !== undefined) return answer(message, schema);
      // Messages in the new schema follow this.
      put({ type: "ack", received });
      if (format.codec) return;
      schemas.replace(roomType, schema, () => {
        for (const inside of rooms.values()) inside.replaced?.(roomType);
      });
    },
    error: ({ request, room, code, text, retry_after_ms: wait }) => {
      const retryMs = duration(wait);
      // A goodbye follows.
      if (!isWelcome) return void (retryAfter = retryMs ?? 0);
      if (parts.some((part) => part.refused?.(request, code, text, retryMs))) return;
      const entry = waiting.get(request);
      // The request no longer waits: the answer came too late.
      if (request !== undefined && !entry) return;
      const inside = entry?.inside ?? rooms.get(room);
      // A join that fails says so at its end.
      if (request === undefined) {
        if (inside) inside.refused(code, text);
        else call(on, "refused", code, text);
      }
      entry?.reject(code, text, retryMs);
      // Its `left` is among what the node had to forget.
      if (entry && code === "not_joined") inside?.end(code, text);
    },
    ping: ({ nonce }) => put({ type: "pong", nonce }),
    pong: (message) => void Object.assign(connection, pulse.pong(message)),
    goodbye: ({ code, text }) => {
      // The node has waited long enough for a device asleep, it is restarted, it is too busy just
      // now, or the token has expired. Only rates recover with time: a first hello over another
      // limit stays over it.
      const renews = typeof how.token === "function" && !isFresh;
      const isPassing = ["timeout", "shutting_down"].includes(code) ||
        (!isWelcome && ["busy", "internal"].includes(code)) ||
        (!isWelcome && code === "limit" && (wasWelcome || retryAfter > 0)) ||
        (!isWelcome && code === "unauthorized" && renews);
      if (!isPassing) return end(code, text);
      if (code === "unauthorized") validUntil = 0;
      if (code === "shutting_down") graceMs = 0;
      lose(text, code);
    },
  };
  for (const part of parts) Object.assign(handlers, part.handlers);
  for (const type of ["snapshot", "patch", "check", "event", "left"]) {
    handlers[type] = (message) => {
      const inside = rooms.get(message.room);
      if (!inside && !exited.has(message.room)) throw new Error(UNWANTED);
      inside?.hears(message);
    };
  }

  const read = ({ data }: { data: unknown }): void => {
    const length =
      typeof data === "string" ? data.length : ((data as ArrayBuffer | undefined)?.byteLength ?? 0);
    connection.bytes += length;
    let message: Message;
    try {
      message = format.read(data);
    } catch (error) {
      const text = `a message can't be read: ${(error as Error).message}`;
      if (++unreadable <= UNREADABLE_IN_A_ROW_MAX && wasWelcome) return lose(text);
      return end("bad_message", `${text}; reload the page`);
    }
    const { type } = message;
    pulse.heard(type === "pong");
    // What comes before the welcome belongs to no session.
    if (isWelcome && COUNTED.includes(type)) {
      unreadable = 0;
      hasProgress = true;
      // In a session that is not kept, the node numbers only schemas that were not requested.
      if (token || (type === "schema" && message.request === undefined)) received += 1;
      behindLength += length;
      if (++behind >= ACK_EVERY || behindLength >= ACK_LENGTH) acknowledge();
      else if (token) ackTimer ??= setTimeout(acknowledge, ACK_DELAY_MS);
    }
    try {
      if (message.request > requests) throw new Error(UNWANTED);
      handlers[type](message);
    } catch (error) {
      // Callbacks are guarded, so the message is at fault.
      end(
        "bad_message",
        `a message of type ${type} can't be used: ${(error as Error).message}; reload the page`,
      );
    }
    if (message.request !== undefined) waiting.delete(message.request);
  };
  /** Connects, and asks for the session if there is one. */
  const open = (): void => {
    drop();
    began = now();
    connection.roundTrip = connection.clockOffset = null;
    pulse.reset();
    retryAfter = 0;
    openTimer = undefined;
    let mine: Socket;
    try {
      mine = socket = new WebSocket(at);
    } catch (error) {
      // For example, a page from https:// may not connect to ws://.
      const text = `no connection to ${at}: ${(error as Error).message}`;
      return queueMicrotask(() => (at === url ? end("connection_lost", text) : lose(text)));
    }
    mine.binaryType = "arraybuffer";
    const share = grace() ? Math.max(grace() / 3, ATTEMPT_MS) : Infinity;
    const limit = Math.min(share, ATTEMPT_MS_MAX);
    // The token and the socket are awaited at the same time.
    let isGiven = false, isOpen = false;
    const greet = (): void => {
      if (!isGiven || !isOpen || socket !== mine) return;
      const copies = [...rooms.values()].map((inside) => inside.copy());
      const resume = token ? { token, received, rooms: copies } : undefined;
      behind = behindLength = 0;
      const hello = { type: "hello", protocol: 1, name, token: base64(given) };
      write(format.write({ ...hello, resumable: true, resume, redirects: true }));
    };
    const take = (token: Token | undefined): void => {
      if (isFresh) validUntil = expiry(token);
      given = token;
      isGiven = true;
      greet();
    };
    const noToken = (error: any): void => {
      if (socket === mine) lose(`there is no token: ${error?.message ?? error}`);
    };
    pulse.after(limit, () => {
      if (isGiven) lose(`${at} does not answer`);
      else noToken(`its function gave none within ${Math.round(limit)} ms`);
    });
    const { token: of } = how, isKept = validUntil > Date.now();
    isFresh = typeof of === "function" && !isKept;
    if (typeof of !== "function") take(of);
    else if (isKept) take(given);
    // A function may fail, at once or later.
    else {
      new Promise<Token>((gives) => gives(of()))
        .then((token) => socket === mine && take(token))
        .catch(noToken);
    }
    mine.onopen = () => {
      isOpen = true;
      greet();
    };
    mine.onmessage = read;
    let cause = "";
    const over = (): void =>
      lose((isOpen ? "disconnected" : `no connection to ${at}`) + cause);
    mine.onclose = ({ code, reason } = {} as any) => {
      if (reason || code > 1000 && code !== ABNORMAL)
        cause = `: closed with ${code}${reason && `, ${reason}`}`;
      over();
    };
    mine.onerror = ({ message, error } = {} as any) => {
      // Browsers do not say why. What follows, the end, may have a code.
      const why = (error?.message || message)?.trim();
      cause = why ? `: ${why}` : isOpen ? "" : UNKNOWN;
      setTimeout(() => socket === mine && over());
    };
  };

  const close = (code: Code, text: string): void => {
    put({ type: "goodbye" });
    end(code, text);
  };
  const links: Links = {
    connection, others, put, post, ask, fail, end, close, leave, outbox, isReady, rooms, resting,
    schemas,
    forgo: (request) => void waiting.delete(request),
    progress: () => void (hasProgress = true),
    place: () => own,
    reach: (addresses) => {
      const to = choose(addresses, at);
      if (!to) return undefined;
      const home = first ?? links;
      for (const node of [home, ...others]) if (node.place() === to) return node;
      const node = makeSession(name, {}, how, format, [], home, to);
      others.add(node);
      return node;
    },
    hold: (change) => {
      holds += change;
      clearTimeout(idleTimer);
      const isIdle = first && !holds && connection.status !== "ended";
      if (isIdle) idleTimer = setTimeout(connection.close, NODE_IDLE_MS);
    },
  };
  if (!first) {
    connection.join = <T extends RoomTypes>(roomType: string, howRoom: How<T> = {}) => {
      const inside = makeRoom(links, roomType, howRoom, how);
      inside.enter();
      return inside.room;
    };
    connection.list = async ({ roomType, filter, limit, ...how } = {}): Promise<ListedRoom[]> =>
      request({ type: "list", room_type: roomType, filter, limit }, how);
  }
  connection.onStatus = (listener) => statuses.add(listener);
  connection.ping = () => {
    if (isWelcome) pulse.ping();
  };
  connection.close = () => close("left", "disconnected");
  const { signal } = wakes;
  for (const type of ["online", "offline", "pageshow", "visibilitychange"]) {
    globalThis.addEventListener?.(type, wake, { signal });
  }
  // A page that is gone for good keeps no seat.
  const gone = ({ persisted }: Event & { persisted?: boolean }): void => {
    if (!persisted) connection.close();
  };
  globalThis.addEventListener?.("pagehide", gone, { signal });
  // It will be needed: so it is loaded while the socket opens.
  if (!format.codec) withPacked(() => {}, () => {});
  open();
  return links;
}
