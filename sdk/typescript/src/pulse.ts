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

export class Pulse {
  /** Something was heard since the last ping. */
  isHeard = false;
  private pings = new Map<unknown, number>();
  private samples: Sample[] = [];
  private nonce = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  // When anything was heard, and when a ping was sent that shows whether the connection is weak.
  private heardAt = 0;
  private askedAt = 0;
  private isWeak = false;
  private quietTimer: ReturnType<typeof setTimeout> | undefined;

  /**
   * `beat` is how often the connection is checked; `dead` is called when the node does not answer.
   * `quiet` is how long rooms are quiet only if they have nothing to say, and `weak` is called when
   * nothing is heard then.
   */
  constructor(
    private readonly put: (message: Message) => void,
    private readonly beat: () => number,
    private readonly dead: () => void,
    private readonly quiet: () => number,
    private readonly weak: (isWeak: boolean) => void,
  ) {}

  /** A connection begins. */
  reset(): void {
    this.pings.clear();
    this.samples = [];
  }

  stop(): void {
    clearTimeout(this.timer);
    clearTimeout(this.quietTimer);
    this.quietTimer = undefined;
    this.isWeak = false;
  }

  /** The node was heard: by a pong, or by what is a sign of more to come. */
  heard(isPong: boolean): void {
    this.isHeard = true;
    this.heardAt = now();
    if (this.isWeak) this.weak(this.isWeak = false);
    if (isPong) return;
    this.askedAt = 0;
    if (!this.quietTimer) this.listen(this.quiet());
  }

  /** Looks after a while whether the connection is weak. */
  private listen(wait: number): void {
    if (wait === Infinity) return;
    const due = Date.now() + wait;
    this.quietTimer = setTimeout(() => {
      this.quietTimer = undefined;
      const { askedAt, heardAt } = this, quiet = this.quiet();
      if (Date.now() > due + TARDY_MS) return this.listen(wait);
      if (!askedAt) {
        const left = heardAt + quiet - now();
        return left > 0 ? this.listen(left) : this.ping();
      }
      this.askedAt = 0;
      // A room at rest, which answers, is asked nothing more until it speaks again.
      if (heardAt < askedAt) this.weak(this.isWeak = true);
    }, wait);
  }

  /** Calls a function once, unless something else is waited for. */
  after(wait: number, then: () => void): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(then, wait);
  }

  ping(): void {
    this.pings.set(++this.nonce, now());
    if (this.pings.size > PINGS_MAX) this.pings.delete(this.pings.keys().next().value);
    this.put({ type: "ping", nonce: this.nonce });
    if (this.quietTimer || this.isWeak || this.quiet() === Infinity) return;
    this.askedAt = now();
    this.listen(QUIET_MS + this.roundTrip);
  }

  private get roundTrip(): number {
    return Math.min(QUIET_MS, ...this.samples.map((sample) => sample.roundTrip));
  }

  /** The node has answered. Returns the best sample, if it answers one of the pings. */
  pong({ nonce, time_us: time }: Message): Sample | undefined {
    const at = this.pings.get(nonce);
    if (at === undefined) return undefined;
    this.pings.delete(nonce);
    const roundTrip = now() - at;
    // The node answered when half the round trip had passed.
    this.samples.push({ roundTrip, clockOffset: time / 1000 - at - roundTrip / 2 });
    if (this.samples.length > SAMPLES_MAX) this.samples.shift();
    return this.samples.reduce((best, one) => (one.roundTrip <= best.roundTrip ? one : best));
  }

  /** Checks that the node answers a ping within `limit`, and again from time to time. */
  watch(limit: number, isLast = false): void {
    this.isHeard = false;
    this.ping();
    const until = now() + limit;
    const tick = (): void => {
      const wait = Math.min(DOUBT_MS, until - now()), due = Date.now() + wait;
      this.after(wait, () => {
        // Timers stand still in a background tab and in a device asleep. The connection may be
        // dead, or what came may not have been read yet.
        if (!isLast && Date.now() > due + LATE_MS) this.watch(DOUBT_MS, true);
        else if (now() < until) tick();
        else if (this.isHeard) this.watch(this.beat());
        else this.dead();
      });
    };
    tick();
  }
}
