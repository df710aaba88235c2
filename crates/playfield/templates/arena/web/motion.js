// Smooth motion between the states that come from the node.

/** The most states that are kept: a hidden tab draws none. */
const STATES_MAX = 64;
/** A state that is farther off its time, in milliseconds, is after a break. */
const BREAK_MS = 250;

/**
 * Finds the states between which to draw, in a room whose ticks and syncs have one rate.
 *
 * `room.version` counts the syncs, so it is the room's clock, however late a state arrives. What is
 * drawn follows that clock one and a half syncs behind: by then the next state is mostly there.
 */
export class Motion {
  constructor(syncHz) {
    this.syncMs = 1000 / syncHz;
    this.states = [];
    this.offset = 0; // from the room's clock to that of the page
  }

  /** Takes a state when it arrives. */
  add(version, state, now = performance.now()) {
    const time = version * this.syncMs, late = now - time - this.offset, last = this.states.at(-1);
    if (!last || time <= last.time || Math.abs(late) > BREAK_MS) {
      this.states.length = 0;
      this.offset = now - time;
    } else {
      this.offset += late * 0.02; // slowly, as one state alone may be late
    }
    this.states.push({ time, state });
    if (this.states.length > STATES_MAX) this.states.shift();
  }

  /** The states `from` and `to` at a time of the page, and the `part` of the way; null before any. */
  at(now) {
    const time = now - this.offset - 1.5 * this.syncMs;
    while (this.states.length > 2 && this.states[1].time <= time) this.states.shift();
    const [from, to = from] = this.states;
    if (!from) return null;
    // If the next state is late, things go on as they did, for a moment.
    const part = to === from ? 1 : (time - from.time) / (to.time - from.time);
    return { from: from.state, to: to.state, part: Math.min(Math.max(part, 0), 1.5) };
  }
}
