// The node's end of a client's WebSocket, in `json`, played by a test.

export class Socket {
  static OPEN = 1;
  readyState = 0;
  sent = [];
  constructor() {
    Socket.last = this;
  }
  send(text) {
    this.sent.push(JSON.parse(text));
  }
  open() {
    this.readyState = 1;
    this.onopen();
    this.says({ type: "welcome", heartbeat_ms: 30_000, resume: "", grace_ms: 0 });
    return this;
  }
  says(message) {
    this.onmessage({ data: JSON.stringify(message) });
  }
  /** The answer to the last message of a type. */
  request(type) {
    return this.sent.findLast((message) => message.type === type)?.request;
  }
  /** Joins the client's last join, as room 1 of this state. */
  joins(state) {
    const { request } = this.sent.findLast(({ type }) => type.includes("join") || type === "create");
    this.says({ type: "joined", request, room: 1, player: 1, id: "r1", room_type: "lab", epoch: 3 });
    this.version = 1;
    this.says({ type: "snapshot", room: 1, epoch: 3, version: 1, ops: [[[], state]] });
  }
  patches(...ops) {
    const base = this.version++;
    this.says({ type: "patch", room: 1, base, version: this.version, ops });
  }
  close() {
    this.readyState = 3;
  }
}
