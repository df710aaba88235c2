import { type Format, type Frame, isLonger } from "./format.js";
import type { Message } from "./messages.js";

/** A message that no room has, and a type that no room is of: the node answers with an error. */
export const NO_MESSAGE = { message: 2 ** 32 - 1, payload: null, room_type: "" };

interface Sent {
  frame: Frame;
  message: Message;
}

/** The messages that count which the node has not confirmed (docs/protocol.md, "Resumption"). */
export class Outbox {
  private log: Sent[] = [];
  constructor(private readonly format: Format) {}

  /** How many messages that count were sent in this session. */
  sent = 0;
  /** The most bytes that the node takes in a message. */
  bytesMax = Infinity;
  /** The length of those that wait. */
  length = 0;

  /** The frames that wait, in order. */
  get frames(): Frame[] {
    return this.log.map(({ frame }) => frame);
  }

  get confirmed(): number {
    return this.sent - this.log.length;
  }

  keep(frame: Frame, message: Message): void {
    this.log.push({ frame, message });
    this.length += frame.length;
  }

  /** Rewrites messages. A message that can't be rewritten becomes `NO_MESSAGE`. */
  rewrite(isOf: (message: Message) => boolean, change: (message: Message) => object): void {
    for (const sent of this.log) {
      const { message, frame } = sent;
      if (!isOf(message)) continue;
      const written = (changed: object): Frame =>
        this.format.write(Object.assign(message, changed));
      let next: Frame | undefined;
      try {
        next = written(change(message));
      } catch {
        // The message counts, so another takes its place.
      }
      sent.frame = next && !isLonger(next, this.bytesMax) ? next : written(NO_MESSAGE);
      this.length += sent.frame.length - frame.length;
    }
  }

  /** The node has handled `count` messages. Returns whether that is possible. */
  confirm(count: unknown): boolean {
    const news = (count as number) - this.confirmed;
    if (!Number.isInteger(news) || news < 0 || news > this.log.length) return false;
    for (const { frame } of this.log.splice(0, news)) this.length -= frame.length;
    return true;
  }

  /** What waits is the beginning of a new session. */
  begin(): void {
    this.sent = this.log.length;
  }

  /** Keeps nothing that was sent: there is no session to resume. */
  drop(): void {
    this.log = [];
    this.length = 0;
  }

  /** The session is over. Returns how many messages without an answer were not confirmed. */
  forget(): number {
    const { length } = this.log.filter(({ message: { request } }) => !request);
    this.drop();
    this.sent = 0;
    return length;
  }
}
