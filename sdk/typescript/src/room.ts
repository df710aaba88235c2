/** A room of a connection, and what the connection calls of it. */

import { listed } from "./address.js";
import { guarded, Listeners } from "./callbacks.js";
import { type Change, Changes, type Path } from "./changes.js";
import type { Code } from "./codes.js";
import { OutOfStep, type OutOfStepReason, PlayfieldError } from "./error.js";
import { toJson } from "./format.js";
import {
  backoff, type Copy, duration, type Exchange, HOPS_MAX, type Inside, LASTING_MS, type Links,
  type Mutable, patient, type RoomCodec, TOO_MUCH, UNCONFIRMED_LENGTH_MAX,
} from "./links.js";
import type { Message } from "./messages.js";
import { NO_MESSAGE } from "./outbox.js";
import { now, QUIET_MS } from "./pulse.js";
import { isOf } from "./schemas.js";
import type {
  ConnectHow, EntryCallbacks, How, Patience, Reason, Room, RoomStatus,
} from "./types.js";

/**
 * The most messages in a row that the copy may be unable to use, without a usable snapshot or patch
 * between them. Past it the client closes the connection.
 */
export const UNUSABLE_IN_A_ROW_MAX = 16;

/** Ends of a stay that say nothing about this player, and how many in a row are too many. */
const OUTAGES: Code[] = ["connection_lost", "shutting_down", "not_joined", "room_failed"];
const OUTAGES_MAX = 30;

/** Refusals of a join that pass, where the client was in the room before. */
const FULL: Code[] = ["limit", "too_fast", "busy", "timeout", "internal", "unreachable"];

/** Codes of another node that is away, and answers to a reservation that is over. */
const AWAY: Code[] = ["connection_lost", "shutting_down"];
const NO_SEAT: Code[] = ["bad_reservation", "room_not_found"];

/** The most times that the first node is asked for a room that can't be reached. */
const TRIES_MAX = 3;

/** The name that stands for events of all names. */
const ANY = "*";

const LEFT = "this client has left the room";
const WEAK = "the connection is weak: the server was not heard for a second";

/** At one version per millisecond, a room reaches the largest after 285,000 years. */
const isVersion = (version: unknown): boolean =>
  Number.isSafeInteger(version) && (version as number) >= 0;

/** Selects the messages of the app to a room. */
const isTo = (number: number) => ({ room, message }: Message): boolean =>
  room === number && message !== undefined;

/** The first message about a room. */
function entrance(roomType: string, how: How, options: unknown): Message {
  const { id, key, create, code, private: isPrivate } = how;
  if (id !== undefined) return { type: "join", room: id };
  const made = { room_type: roomType, key, options };
  if (create) return { type: "create", ...made, code, private: isPrivate };
  if (create === false) return { type: "join_by_key", room_type: roomType, key };
  return { type: "join_or_create", ...made };
}

/** A room, which is asked for at the node `first`. */
export function makeRoom(
  first: Links, roomType: string, how: How, howLong: ConnectHow,
): Inside {
  // The session that has the room, or that is asked for it.
  let links = first;
  const room = {
    connection: links.connection,
    state: null,
    player: null,
    info: null,
    key: null,
    version: 0,
    number: null,
    left: false,
    status: "joining",
    reason: { code: "", message: "" },
    patches: 0,
  } as unknown as Mutable<Room>;
  const changes = new Changes(), states = new Listeners<[any, Room]>();
  const events = new Map<string, Listeners<[any, string]>>();
  const lefts = new Listeners<[Code, string]>();
  const statuses = new Listeners<[RoomStatus, Reason]>(), misses = new Listeners<[number]>();
  const refusals = new Listeners<[Code, string]>(), faults = new Listeners<[OutOfStep]>();
  // Events of the turn in which the room is joined, for who awaits it and then listens.
  let unheard: [name: string, value: unknown][] | null = [];
  // The room's epoch, the copy's last version, how many messages and snapshots in a row could not
  // be used, and the last event's number.
  let epoch: unknown, newest = 0, unusable = 0, snapshots = 0, eventsHeard = 0;
  let copy: Copy, exchange: Exchange;
  // What came before the schema.
  let held: Message[] | null = null;
  // Requests made before the room is joined, and their length.
  let early: { start(): void; refuse(code: Code, text: string): void }[] = [], earlyLength = 0;
  // How the next join finds the room, how many stays in a row did not last, and since when this one
  // does.
  let next = how, outages = 0, since = 0, againTimer: ReturnType<typeof setTimeout> | undefined;
  // How many redirects the last request has followed, how many requests were in vain since the last
  // stay, and what the node said of this one.
  let hops = 0, tries = 0, stay: Message | null = null;
  let settle: { resolve(room: Room): void; reject(error: Error): void };
  room.joined = new Promise((resolve, reject) => (settle = { resolve, reject }));
  // `left` says so too.
  room.joined.catch(() => {});

  /** How the stay stands now; listeners hear it if it is news. */
  const stands = (status: RoomStatus, code: Code = "", message = ""): void => {
    if (room.status === status && room.reason.code === code) return;
    room.status = status;
    room.reason = { code, message };
    statuses.call(status, room.reason);
  };

  /** Asks the room. `make` writes the message once that is possible. */
  const asks = (name: string, payload: unknown, how: Patience = {}): Promise<any> =>
    patient(how, (resolve, reject, refuse) => {
      let request = 0, isGivenUp = false;
      const start = (payload: unknown): void => {
        if (isGivenUp) return;
        try {
          const isLeave = name === "";
          const message = isLeave
            ? { type: "leave" }
            : { type: "request", ...exchange.message(name, payload) };
          const answer = (reply: unknown): void => {
            try {
              resolve(isLeave ? undefined : exchange.reply(name, reply));
            } catch (error) {
              refuse("bad_payload", `the reply can't be read: ${(error as Error).message}`);
            }
          };
          request = links.ask(
            { ...message, room: room.number },
            { inside, resolve: answer, reject: refuse },
          );
        } catch (error) {
          reject(error as Error);
        }
      };
      const giveUp = (): void => {
        if (name === "") return; // It leaves all the same.
        isGivenUp = true;
        if (request) links.forgo(request);
      };
      // Who waits to join again is not in the room.
      if (name === "" && room.status === "lost" && room.number === null) {
        inside.end("left", LEFT);
        resolve(undefined);
      } else if (room.number !== null) start(payload);
      else if (room.left && name === "") resolve(undefined);
      else if (room.left) refuse(room.reason.code, room.reason.message || LEFT);
      else if (earlyLength >= UNCONFIRMED_LENGTH_MAX) refuse("limit", TOO_MUCH);
      else {
        // As it is now, whatever becomes of the payload.
        const text = toJson([payload]);
        earlyLength += text.length;
        const asIs = (): unknown => (payload === undefined ? undefined : JSON.parse(text)[0]);
        early.push({ start: () => start(asIs()), refuse });
      }
      return giveUp;
    });
  room.send = (message: string, payload?: unknown) =>
    room.number !== null &&
    links.post({ type: "send", room: room.number, ...exchange.message(message, payload) }) > 0;
  room.request = (message: string, payload?: unknown, how?: Patience) =>
    asks(message, payload, how);
  // Whatever the answer: the stay is over. One who no longer waits for it leaves later.
  room.leave = (how) =>
    asks("", undefined, how).catch((error) => {
      if (!(error instanceof PlayfieldError) || ["limit", "timeout"].includes(error.code as string))
        throw error;
      inside.end("left", LEFT);
    });
  room.close = () => first.connection.close();
  room.onState = (listener) => states.add(listener);
  room.onChange = (path: Path, listener: (change: Change<any>) => void) =>
    changes.on(path, listener);
  room.onEntries = (path: Path, { entered, left, changed }: EntryCallbacks<any>) =>
    changes.on(
      typeof path === "string" ? `${path}.*` : [...path, "*"],
      ({ kind, path, value, old }) => {
        const key = path[path.length - 1];
        if (kind === "entered") entered?.(key, value);
        else if (kind === "left") left?.(key, old);
        else changed?.(key, value, old);
      },
    );
  room.onEvent = (name: string, listener: (payload: any, name: string) => void) => {
    if (!events.has(name)) events.set(name, new Listeners());
    const isOf = ([of]: [string, unknown]): boolean => name === ANY || of === name;
    for (const [of, value] of unheard?.filter(isOf) ?? [])
      queueMicrotask(() => guarded(() => listener(value, of)));
    unheard &&= unheard.filter((event) => !isOf(event));
    return events.get(name)!.add(listener);
  };
  room.onOutOfStep = (listener) => faults.add(listener);
  room.onStatus = (listener) => statuses.add(listener);
  room.onRefused = (listener) => refusals.add(listener);
  room.onMissed = (listener) => misses.add(listener);
  room.onLeft = (listener) => lefts.add(listener);

  /** The copy can't use a message: asks for a snapshot, but not forever. */
  const fellOut = (reason: OutOfStepReason, text: string): void => {
    room.version = null;
    faults.call(new OutOfStep(reason, text));
    // After two unreadable snapshots in a row, a third would be the same.
    if (reason === "snapshot" && ++snapshots > 1) {
      links.leave(inside.number!);
      return inside.end("bad_message", `two snapshots in a row can't be read: ${text}`);
    }
    if (++unusable > UNUSABLE_IN_A_ROW_MAX) {
      const failed = `the server sent ${unusable} messages in a row that this page can't use`;
      return links.end("bad_message", `${failed}: ${text}; reload the page`);
    }
    console.warn("playfield: asking for a snapshot:", text);
    links.put({ type: "resync", room: inside.number });
  };
  const isAt = (version: number): void => {
    links.progress();
    const old = room.state;
    Object.assign(room, { version, state: copy.state });
    newest = version;
    unusable = snapshots = 0;
    settle.resolve(room);
    if (!since) {
      setTimeout(() => (unheard = null), 0);
      since = now();
      stands("joined");
    }
    states.call(room.state, room);
    changes.report(old, room.state);
  };

  const handlers: Record<string, (message: Message) => void> = {
    snapshot: (message) => {
      if (message.epoch !== epoch) {
        return fellOut("epoch", `a snapshot is of epoch ${message.epoch}, the room of ${epoch}`);
      }
      const text = `a snapshot is of version ${message.version}, but the copy is at ${newest}`;
      if (!isVersion(message.version)) return fellOut("snapshot", text);
      if (message.version < newest) return fellOut("older", text);
      try {
        copy.snapshot(message.ops ?? message.body);
      } catch (error) {
        return fellOut("snapshot", (error as Error).message);
      }
      isAt(message.version);
    },
    check: ({ version, digest }) => {
      if (version !== room.version) return;
      if (String(copy.digest()) !== String(digest)) {
        fellOut("digest", `the copy's digest at version ${version} differs from the server's`);
      }
    },
    patch: ({ base, version, ops, body }) => {
      if (room.version === null) return; // a snapshot is on its way
      if (base !== room.version || !isVersion(version) || version <= base) {
        const text = `a patch from version ${base} to ${version} does not advance the copy`;
        return fellOut("base", `${text} at version ${room.version}`);
      }
      try {
        copy.patch(ops ?? body);
      } catch (error) {
        return fellOut("patch", (error as Error).message);
      }
      room.patches += 1;
      isAt(version);
    },
    event: ({ sequence, message, payload }) => {
      const missed = sequence - eventsHeard - 1;
      if (!(missed >= 0 && missed <= inside.missing)) {
        return links.end("bad_message", `event ${sequence} came after event ${eventsHeard}`);
      }
      eventsHeard = sequence;
      inside.missing = 0;
      let name, value: unknown;
      try {
        [name, value] = exchange.event(message, payload);
      } catch (error) {
        return links.end("bad_message", `an event can't be read: ${(error as Error).message}`);
      }
      if (missed > 0) misses.call(missed);
      const heard = [events.get(name), events.get(ANY)];
      if (!heard.some(Boolean)) unheard?.push([name, value]);
      for (const all of heard) all?.call(value, name);
    },
    left: ({ code, text }) => inside.end(code, text),
  };

  /** The room is joined, and its schema is known if it is needed; or the node has changed it. */
  const enter = (info: Message, codec: RoomCodec): void => {
    const { room: number, player, id, key = null } = info, old = exchange;
    // A room that is new to the session has no messages to rewrite.
    links.outbox.rewrite(isTo(number), ({ message, payload }) =>
      codec.exchange.message(...old.sent!(message, payload)));
    try {
      copy = codec.copy(player);
    } catch (error) {
      links.leave(number);
      return inside.end("bad_message", (error as Error).message);
    }
    ({ exchange } = codec);
    changes.check = codec.checkPath;
    Object.assign(room, { number, player, id, key, info, version: null });
    const messages = held ?? [];
    held = null;
    earlyLength = 0;
    for (const { start } of early.splice(0)) start();
    for (const message of messages) if (!room.left) handlers[message.type](message);
  };

  /** Goes on at another node. */
  const moves = (to: Links): void => {
    links.hold(-1);
    links = to;
    links.hold(1);
    room.connection = links.connection;
  };
  /** Asks the first node after a while, or on its next connection. */
  const rests = (wait: number, isNow = true): void => {
    first.resting.add(inside);
    clearTimeout(againTimer);
    if (isNow && first.isReady()) againTimer = setTimeout(inside.enter, wait);
  };
  /** Asks the node for a room. */
  const finds = (which: How): void => {
    const { id, create, options } = which;
    const begin = (options: unknown): void => {
      if (room.left) return;
      const message = entrance(roomType, which, options);
      links.ask(message, { isJoin: true, inside, reject: refuse, redirect });
    };
    const redirect = (addresses: string[], reservation: string): void => {
      const to = links.reach(addresses);
      if (!to || ++hops > HOPS_MAX) {
        const scheme = links.place().split("/")[0];
        const why = to
          ? `${HOPS_MAX} redirects did not lead there`
          : `a client that is connected by ${scheme} can use no such address`;
        return inside.end("unreachable", `the room is at ${listed(addresses)}; ${why}`);
      }
      moves(to);
      finds(reservation ? { id: reservation } : which);
    };
    const refuse = (code: Code, text: string, retryMs?: number): void => {
      const isOver = first.connection.status === "ended";
      // The node can't be reached, or the seat there is over: the first one may know another.
      const isMissed = AWAY.includes(code) || (which !== next && NO_SEAT.includes(code));
      if (links !== first && isMissed && !isOver) {
        if (++tries < TRIES_MAX) return rests(backoff(howLong, tries));
        return inside.end("unreachable", `the room is at ${links.place()}; ${text}`);
      }
      // The room that it was in is gone: so it is one as asked for at first.
      const isGone = code === "room_not_found" && next.id && how.id === undefined;
      if (!isGone || isOver) return inside.end(code, text, retryMs);
      const { key } = room;
      next = how.create && key !== null ? { ...how, key, create: undefined } : how;
      inside.enter();
    };
    const isByType = id === undefined && links.connection.status !== "ended";
    if (!isByType) begin(options);
    else if (options === undefined || create === false) {
      // It will be needed: so it is there before the snapshot.
      links.schemas.want(roomType, () => {}, () => {});
      begin(undefined);
    } else {
      const use = (codec: RoomCodec): void => {
        let written;
        try {
          written = codec.options(options);
        } catch (error) {
          return inside.end("bad_payload", (error as Error).message);
        }
        begin(written);
      };
      links.schemas.want(roomType, use, refuse);
    }
  };

  links.hold(1);
  const inside: Inside = {
    room,
    number: null,
    silence: Infinity,
    quiet: Infinity,
    grace: Infinity,
    missing: 0,
    copy: () => ({ room: inside.number!, epoch, version: room.version ?? 0 }),
    lost: (text) => {
      if (since) stands("lost", "connection_lost", text);
      // The node sends a snapshot again to a copy without a version.
      held &&= held.filter(({ type }) => type === "event" || type === "left");
    },
    back: () => {
      if (since) stands("back");
    },
    weak: (isWeak) => {
      if (!isWeak && room.status === "weak") stands("back");
      if (isWeak && since && inside.quiet < Infinity) stands("weak", "timeout", WEAK);
    },
    refused: (code, text) => refusals.call(code, text),
    enter: () => {
      clearTimeout(againTimer);
      first.resting.delete(inside);
      moves(first);
      hops = 0;
      finds(next);
    },
    end: (code, text, retryMs = 0) => {
      if (room.left) return;
      if (inside.number !== null) links.rooms.delete(inside.number);
      inside.number = room.number = held = stay = null;
      const wasThere = room.player !== null;
      if (since && now() - since > LASTING_MS) outages = 0;
      const isOutage = OUTAGES.includes(code) || (wasThere && FULL.includes(code));
      const isOver = first.connection.status === "ended";
      if (how.again && isOutage && !isOver && ++outages < OUTAGES_MAX) {
        if (wasThere) room.version = null;
        since = tries = 0;
        links.fail((entry) => entry.inside === inside && !entry.isJoin, code, text);
        const wait = retryMs + (outages > 1 ? backoff(howLong, outages) : 0);
        // A node that shuts down takes no players; the next connection is to one that does.
        rests(wait, code !== "shutting_down" || links !== first);
        return stands("lost", code, text);
      }
      room.left = true;
      clearTimeout(againTimer);
      first.resting.delete(inside);
      for (const { refuse } of early.splice(0)) refuse(code, text);
      settle.reject(new PlayfieldError(code, text));
      links.fail((entry) => entry.inside === inside, code, text);
      links.hold(-1);
      lefts.call(code, text);
      stands("left", code, text);
      // The callback that left may be one of several for the same patch or event.
      for (const listeners of [states, changes, ...events.values()]) listeners.clear();
    },
    joined: (message) => {
      stay = message;
      inside.number = message.room;
      ({ epoch } = message);
      next = { id: message.id };
      newest = unusable = snapshots = eventsHeard = inside.missing = tries = 0;
      inside.silence = duration(message.silence_ms) || Infinity;
      inside.grace = duration(message.grace_ms) ?? Infinity;
      const { tick_hz: ticks, sync_hz: syncs } = message;
      inside.quiet = ticks && syncs ? Math.max(QUIET_MS, 2000 / syncs) : Infinity;
      links.rooms.set(message.room, inside);
      const { room_type: roomType, room: number } = message;
      let { fingerprint } = message;
      held = [];
      const use = (codec: RoomCodec): void => {
        if (room.left || stay !== message) return;
        if (!isOf(codec, fingerprint))
          return links.end("bad_message", `the schema of ${roomType} is not the one of the room`);
        try {
          enter(message, codec);
        } catch (error) {
          links.end("bad_message", `a message can't be used: ${(error as Error).message}`);
        }
      };
      const refuse = (code: Code, text: string): void => {
        if (stay === message) {
          links.outbox.rewrite(isTo(number), () => NO_MESSAGE);
          links.leave(number);
        }
        inside.end(code, `the room's schema is not to be had: ${text}`);
      };
      inside.replaced = (of) => {
        if (of !== roomType) return;
        // The node sends no other from here on.
        fingerprint = undefined;
        if (!held) {
          // No message uses the old schema any more.
          room.number = null;
          return links.schemas.want(roomType, use, refuse);
        }
        // No node sends the schema of earlier messages any more. A snapshot follows.
        inside.missing += held.length;
        held = held.filter(({ type }) => type === "left");
      };
      links.schemas.want(roomType, use, refuse, fingerprint);
    },
    hears: (message) => {
      if (!held) return handlers[message.type](message);
      // A snapshot that is sent again comes before the events that were held.
      if (message.type === "snapshot") held.unshift(message);
      else held.push(message);
    },
  };
  return inside;
}
