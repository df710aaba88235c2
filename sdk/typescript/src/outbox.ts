import type { Frame } from "./format.js";

interface Sent {
  frame: Frame;
  isRequest: boolean;
}

/** The messages that count which the node has not confirmed (docs/protocol.md, "Resumption"). */
export class Outbox {
  private log: Sent[] = [];
  /** How many messages that count were sent in this session. */
  sent = 0;
  /** The length of those that wait. */
  length = 0;

  /** The frames that wait, in order. */
  get frames(): Frame[] {
    return this.log.map(({ frame }) => frame);
  }

  get confirmed(): number {
    return this.sent - this.log.length;
  }

  keep(frame: Frame, isRequest: boolean): void {
    this.log.push({ frame, isRequest });
    this.length += frame.length;
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
    const { length } = this.log.filter(({ isRequest }) => !isRequest);
    this.drop();
    this.sent = 0;
    return length;
  }
}
