// For tests that record all that a client reports: its listeners as callbacks, and rooms before they
// are joined.

import { Client } from "../../../../crates/web/dist/client/playfield.js";

/** Connects as `name`, by default to the host of the page, in `json`. */
export function connect(name, { status, ...on } = {}, { url = "/", ...how } = {}) {
  const client = new Client(url, { name, on, format: "json", ...how }), { connection } = client;
  if (status) client.onStatus((_, text) => status(text));
  const enter = connection.join;
  connection.join = (type, on = {}, how) => {
    const room = enter(type, how);
    room.onState(() => on.change?.(room));
    room.onEvent("*", (payload, name) => on.event?.(name, payload));
    for (const [name, listens] of Object.entries({
      missed: room.onMissed, refused: room.onRefused, left: room.onLeft, outOfStep: room.onOutOfStep,
    })) listens((...values) => on[name]?.(...values));
    return room;
  };
  return connection;
}

/** Connects, and joins a room. */
export const join = (type, name, on, how) => connect(name, on, how).join(type, on, how);
