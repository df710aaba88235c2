/** The subscriptions of a connection, over however many sockets and sessions. */

import { call } from "./callbacks.js";
import type { Code } from "./codes.js";
import { type MakePart, type Mutable, PASSING, RETRY_MS } from "./links.js";
import type { Message } from "./messages.js";
import { free, freed } from "./payloads.js";
import type { ChannelCallbacks, Subscription } from "./types.js";

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

export const makeChannels: MakePart = (connection, links) => {
  const { format, put, post, request, answer, next, isReady } = links;
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

  connection.subscribe = (channel, on = {}, { since = null } = {}) => {
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
  };

  const publication = (channel: string, payload: unknown): Message => ({
    type: "publish",
    channel,
    payload: free(format, payload, all.get(channel)?.isBytes ?? false),
  });
  connection.publish = async (channel, payload, how) => request(publication(channel, payload), how);
  connection.publishUnconfirmed = (channel, payload) => post(publication(channel, payload)) > 0;
  connection.members = (channel, how) => request({ type: "members", channel }, how);
  connection.history = (channel, { since, limit, ...how } = {}) =>
    request({ type: "history", channel, since, limit }, how);

  return {
    begin: () => {
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
        // Of a channel that has begun again, the past is not known.
        const missed = isSame ? Math.max(offset - position!.offset, 0) : position ? null : 0;
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
        const { subscription, on } = inside, value = freed(format, payload, inside.isBytes);
        const missed = offset - position.offset - 1;
        subscription.position = { ...position, offset };
        if (missed > 0) call(on, "missed", missed);
        if (!subscription.ended) call(on, "publication", value, { offset, user, payload: value });
      },
      unsubscribed: ({ channel, code, text }) => {
        const inside = numbers.get(channel);
        if (inside) end(inside, code, text);
      },
      published: (message) => answer(message, message.offset),
      members: ({ type, request, ...members }) => answer({ type, request }, members),
      history: ({ type, request, bytes = false, publications = [], ...place }) => {
        const read = publications.map((publication: Message) => ({
          ...publication, payload: freed(format, publication.payload, bytes),
        }));
        answer({ type, request }, { ...place, bytes, publications: read });
      },
      presence: ({ channel, type, ...member }) => {
        const inside = numbers.get(channel);
        if (inside) call(inside.on, "presence", member);
      },
    },
  };
};
