/** The subscriptions of a connection, over however many sockets and sessions. */

import { call } from "./callbacks.js";
import type { Code } from "./codes.js";
import { type Links, type Mutable, PASSING, RETRY_MS } from "./links.js";
import type { Message } from "./messages.js";
import type { ChannelCallbacks, ChannelHow, Connection, Subscription } from "./types.js";

/** The most channels that one connection may subscribe to. */
export const SUBSCRIPTIONS_MAX = 1024;

interface Inside {
  subscription: Mutable<Subscription>;
  on: ChannelCallbacks;
  /** The node has answered before. */
  isBegun: boolean;
  /** The channel's number on the present connection. */
  number?: number;
  /** Its payloads are bytes. */
  isBytes: boolean;
  timer?: ReturnType<typeof setTimeout>;
}

export interface Channels {
  add(channel: string, on?: ChannelCallbacks, how?: ChannelHow): Subscription;
  /** Whether the payloads of a channel are known to be bytes. */
  isBytes(channel: string): boolean;
  /** Subscribes on a new connection. */
  subscribe(): void;
  end(code: Code, text: string): void;
  /** The node refused a request. Returns whether it was a subscription. */
  refused(request: number, code: Code, text: string, retryMs?: number): boolean;
  handlers: Record<string, (message: Message) => void>;
}

export function makeChannels(
  connection: Connection,
  {
    format,
    put,
    next,
    isReady,
  }: Pick<Links, "format" | "put"> & { next(): number; isReady(): boolean },
): Channels {
  const all = new Map<string, Inside>();
  // Of the present connection: by the channel's number; those that wait for an answer, and the
  // names of those that were ended before it, by request.
  const numbers = new Map<number, Inside>(),
    asked = new Map<number, Inside>(),
    dropped = new Map<number, string>();

  const ask = (inside: Inside): void => {
    const { channel, position } = inside.subscription;
    const request = next();
    asked.set(request, inside);
    const since = position ?? undefined, presence = inside.on.presence !== undefined;
    put({ type: "subscribe", request, channel, since, presence });
  };
  /** Forgets a subscription. Returns whether it was there. */
  const remove = (inside: Inside): boolean => {
    const { subscription } = inside;
    if (subscription.ended) return false;
    subscription.ended = true;
    clearTimeout(inside.timer);
    numbers.delete(inside.number!);
    return all.delete(subscription.channel);
  };
  const end = (inside: Inside, code: Code, text: string): void => {
    if (remove(inside)) call(inside.on, "unsubscribed", code, text);
  };

  return {
    isBytes: (channel) => all.get(channel)?.isBytes ?? false,
    add: (channel, on = {}, { since = null } = {}) => {
      if (all.has(channel)) throw new Error(`this connection subscribes to ${channel} already`);
      const position = since && { ...since };
      const subscription = { connection, channel, position, ended: false } as Mutable<Subscription>;
      const inside: Inside = { subscription, on, isBegun: false, isBytes: false };
      subscription.unsubscribe = () => {
        if (!remove(inside) || !isReady()) return;
        const { number } = inside;
        if (number !== undefined) return put({ type: "unsubscribe", channel: number });
        for (const [request, of] of asked) {
          if (of === inside && asked.delete(request)) dropped.set(request, channel);
        }
      };
      const isOver = connection.status === "ended";
      const isFull = all.size + dropped.size >= SUBSCRIPTIONS_MAX;
      if (isOver || isFull) {
        const most = `this connection subscribes to ${all.size} channels, which is the most`;
        const why = isOver ? ["connection_lost", "the connection has ended"] : ["limit", most];
        subscription.ended = true;
        queueMicrotask(() => call(on, "unsubscribed", ...why));
        return subscription;
      }
      all.set(channel, inside);
      if (isReady()) ask(inside);
      return subscription;
    },
    subscribe: () => {
      for (const map of [numbers, asked, dropped]) map.clear();
      for (const inside of all.values()) {
        clearTimeout(inside.timer);
        inside.number = undefined;
        ask(inside);
      }
    },
    end: (code, text) => {
      for (const inside of [...all.values()]) end(inside, code, text);
    },
    refused: (request, code, text, retryMs = RETRY_MS) => {
      if (dropped.delete(request)) return true;
      const inside = asked.get(request);
      if (!inside) return false;
      asked.delete(request);
      if (inside.isBegun && PASSING.includes(code)) {
        inside.timer = setTimeout(() => isReady() && ask(inside), retryMs);
      } else end(inside, code, text);
      return true;
    },
    handlers: {
      subscribed: ({
        request,
        channel,
        epoch,
        offset,
        recovered = false,
        bytes = false,
        members = 0,
      }) => {
        const name = dropped.get(request);
        if (dropped.delete(request)) {
          // A later subscription to it has taken the place of this one.
          if (!all.has(name!)) put({ type: "unsubscribe", channel });
          return;
        }
        const inside = asked.get(request);
        if (!inside) return;
        asked.delete(request);
        const { subscription, on } = inside, { position } = subscription;
        const isSame = position?.epoch === epoch;
        const missed = isSame ? Math.max(offset - position!.offset, 0) : position ? offset : 0;
        const at = isSame ? Math.max(offset, position!.offset) : offset;
        subscription.position = { epoch, offset: at };
        Object.assign(inside, { number: channel, isBegun: true, isBytes: bytes });
        numbers.set(channel, inside);
        recovered = position === null || (recovered && missed === 0);
        call(on, "subscribed", { recovered, missed, members });
      },
      publication: ({ channel, offset, user, payload = null }) => {
        const inside = numbers.get(channel), position = inside?.subscription.position;
        // It was unsubscribed from, or is known.
        if (!inside || !position || !(offset > position.offset)) return;
        const { subscription, on } = inside, value = format.freed(payload, inside.isBytes);
        const missed = offset - position.offset - 1;
        subscription.position = { ...position, offset };
        if (missed > 0) call(on, "missed", missed);
        if (!subscription.ended) call(on, "publication", value, { offset, user, payload: value });
      },
      unsubscribed: ({ channel, code, text }) => {
        const inside = numbers.get(channel);
        if (inside) end(inside, code, text);
      },
      presence: ({ channel, type, ...member }) => {
        const inside = numbers.get(channel);
        if (inside) call(inside.on, "presence", member);
      },
    },
  };
}
