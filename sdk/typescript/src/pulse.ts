/** Whether the node is there, and how far away. */

import type { Message } from "./messages.js";

/** How many answered pings are remembered, and how many may wait. */
const SAMPLES_MAX = 8, PINGS_MAX = 64;

/** How long a connection that may be dead, as after a sleep, has to show that it is not. */
export const DOUBT_MS = 5000;

/** A timer that fires later than this stood still, as in a background tab or in a device asleep. */
const LATE_MS = 1000;

/**
 * A room with ticks that is quiet for so long has nothing to say, or the connection is weak: a ping
 * shows which. It has as long, and a round trip, to be answered.
 */
export const QUIET_MS = 500;

/** A timer that is later than this says nothing of the node. */
const TARDY_MS = 250;

export const now = (): number => performance.now();

interface Sample {
  roundTrip: number;
  clockOffset: number;
}

/**
 * `beat` is how often the connection is checked; `dead` is called when the node does not answer.
 * `quiet` is how long rooms are quiet only if they have nothing to say, and `weak` is called when
 * nothing is heard then.
 */
export function makePulse(
  put: (message: Message) => void, beat: () => number, dead: () => void, quiet: () => number,
  weak: (isWeak: boolean) => void,
) {
  // Something was heard since the last ping.
  let isHeard = false;
  const pings = new Map<unknown, number>();
  let samples: Sample[] = [], nonce = 0;
  let timer: ReturnType<typeof setTimeout> | undefined,
    quietTimer: ReturnType<typeof setTimeout> | undefined;
  // When anything was heard, and when a ping was sent that shows whether the connection is weak.
  let heardAt = 0, askedAt = 0, isWeak = false;

  /** Looks after a while whether the connection is weak. */
  const listen = (wait: number): void => {
    if (wait === Infinity) return;
    const due = Date.now() + wait;
    quietTimer = setTimeout(() => {
      quietTimer = undefined;
      if (Date.now() > due + TARDY_MS) return listen(wait);
      const asked = askedAt;
      if (!asked) {
        const left = heardAt + quiet() - now();
        return left > 0 ? listen(left) : ping();
      }
      askedAt = 0;
      // A room at rest, which answers, is asked nothing more until it speaks again.
      if (heardAt < asked) weak(isWeak = true);
    }, wait);
  };
  /** Calls a function once, unless something else is waited for. */
  const after = (wait: number, then: () => void): void => {
    clearTimeout(timer);
    timer = setTimeout(then, wait);
  };
  const ping = (): void => {
    pings.set(++nonce, now());
    if (pings.size > PINGS_MAX) pings.delete(pings.keys().next().value);
    put({ type: "ping", nonce });
    if (quietTimer || isWeak || quiet() === Infinity) return;
    askedAt = now();
    listen(QUIET_MS + Math.min(QUIET_MS, ...samples.map((sample) => sample.roundTrip)));
  };
  /** Checks that the node answers a ping within `limit`, and again from time to time. */
  const watch = (limit: number, isLast = false): void => {
    isHeard = false;
    ping();
    const until = now() + limit;
    const tick = (): void => {
      const wait = Math.min(DOUBT_MS, until - now()), due = Date.now() + wait;
      after(wait, () => {
        // Timers stand still in a background tab and in a device asleep. The connection may be
        // dead, or what came may not have been read yet.
        if (!isLast && Date.now() > due + LATE_MS) watch(DOUBT_MS, true);
        else if (now() < until) tick();
        else if (isHeard) watch(beat());
        else dead();
      });
    };
    tick();
  };
  return {
    after,
    ping,
    watch,
    /** A connection begins. */
    reset: (): void => {
      pings.clear();
      samples = [];
    },
    stop: (): void => {
      clearTimeout(timer);
      clearTimeout(quietTimer);
      quietTimer = undefined;
      isWeak = false;
    },
    /** The node was heard: by a pong, or by what is a sign of more to come. */
    heard: (isPong: boolean): void => {
      isHeard = true;
      heardAt = now();
      if (isWeak) weak(isWeak = false);
      if (isPong) return;
      askedAt = 0;
      if (!quietTimer) listen(quiet());
    },
    /** The node has answered. Returns the best sample, if it answers one of the pings. */
    pong: ({ nonce, time_us: time }: Message): Sample | undefined => {
      const at = pings.get(nonce);
      if (at === undefined) return undefined;
      pings.delete(nonce);
      const roundTrip = now() - at;
      // The node answered when half the round trip had passed.
      samples.push({ roundTrip, clockOffset: time / 1000 - at - roundTrip / 2 });
      if (samples.length > SAMPLES_MAX) samples.shift();
      return samples.reduce((best, one) => (one.roundTrip <= best.roundTrip ? one : best));
    },
  };
}
