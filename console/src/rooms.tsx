/** The list of rooms. Only the rows in sight are asked for and drawn. */

import { useRef, useState } from "preact/hooks";

import * as api from "./api.js";
import { bytes, lateness } from "./units.js";
import { usePolled } from "./hooks.js";

const ROW_PX = 34;
const POLL_MS = 1000;
const ORDERS: Record<string, string> = {
  players: "most players",
  slowest: "longest sync",
  latest: "latest",
  bytes: "most bytes",
  newest: "newest",
  oldest: "oldest",
};
const COLUMNS: { text: string; order?: string; title?: string }[] = [
  { text: "Room" },
  { text: "Type" },
  { text: "Players", order: "players" },
  { text: "Key" },
  { text: "Metadata" },
  { text: "Time", order: "slowest", title: "What the last sync took: ticks + comparing + patches" },
  { text: "Late", order: "latest", title: "The most in the last seconds" },
  { text: "Bytes in / out per s", order: "bytes" },
  { text: "Shard" },
];
/** Rows beyond the edge that are drawn, so that scrolling shows no gap. */
const BEYOND = 10;

export function Rooms({ types, open }: { types: string[]; open: (id: string) => void }) {
  const [query, setQuery] = useState({ type: "", find: "", order: "players" });
  const [top, setTop] = useState(0);
  const viewport = useRef<HTMLDivElement>(null);
  // In steps, and by the height of the window: what is in sight is asked for once, not again with
  // each row that scrolls by and whenever something above the list changes its height.
  const skip = Math.max(0, Math.floor(top / ROW_PX / BEYOND - 1) * BEYOND);
  const limit = Math.min(500, Math.ceil(innerHeight / ROW_PX) + 3 * BEYOND);
  const key = JSON.stringify([query, skip, limit]);
  const { value, error } = usePolled(() => api.rooms({ ...query, skip, limit }), POLL_MS, key);
  // Until the rows in sight are here, the earlier ones stay.
  const shown = useRef({ skip: 0, count: 0, rooms: [] as api.ListedRoom[] });
  if (value) shown.current = { skip, ...value };
  const change = (part: Partial<typeof query>): void => {
    setQuery({ ...query, ...part });
    viewport.current?.scrollTo(0, 0);
  };
  const { rooms, count, skip: first } = shown.current;
  return (
    <section class="rooms" aria-label="Rooms">
      <form class="filter" onSubmit={(event) => event.preventDefault()}>
        <label>
          Find{" "}
          <input
            type="search"
            placeholder="id, key or metadata"
            value={query.find}
            onInput={(event) => change({ find: event.currentTarget.value })}
          />
        </label>
        <label>
          Type{" "}
          <select
            value={query.type}
            onChange={(event) => change({ type: event.currentTarget.value })}
          >
            <option value="">all</option>
            {types.map((type) => (
              <option value={type}>{type}</option>
            ))}
          </select>
        </label>
        <label>
          Order{" "}
          <select
            value={query.order}
            onChange={(event) => change({ order: event.currentTarget.value })}
          >
            {Object.entries(ORDERS).map(([order, text]) => (
              <option value={order}>{text}</option>
            ))}
          </select>
        </label>
        <p role="status">{error ? error.message : `${count.toLocaleString()} rooms`}</p>
      </form>
      <div class="table" role="table" aria-rowcount={count + 1} aria-label="Rooms">
        <div class="row head" role="row" aria-rowindex={1}>
          {COLUMNS.map(({ text, order, title }) =>
            order ? (
              <span
                role="columnheader"
                title={title}
                aria-sort={query.order === order ? "descending" : "none"}
              >
                <button type="button" onClick={() => change({ order })}>
                  {text}
                  {query.order === order && " ↓"}
                </button>
              </span>
            ) : (
              <span role="columnheader">{text}</span>
            ),
          )}
        </div>
        <div
          class="viewport"
          ref={viewport}
          tabIndex={-1}
          onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        >
          <div style={{ height: `${count * ROW_PX}px` }} role="rowgroup">
            {rooms.map((room, index) => (
              <div
                class="row"
                role="row"
                aria-rowindex={first + index + 2}
                key={room.id}
                style={{ transform: `translateY(${(first + index) * ROW_PX}px)` }}
              >
                <span role="cell">
                  <a
                    href={`#room/${encodeURIComponent(room.id)}`}
                    onClick={(event) => {
                      event.preventDefault();
                      open(room.id);
                    }}
                  >
                    {room.id}
                  </a>
                </span>
                <span role="cell">{room.type}</span>
                <span role="cell">
                  {room.players} / {room.capacity}
                  {room.locked && " locked"}
                  {room.private && " private"}
                </span>
                <span role="cell">
                  <bdi title={room.key ?? ""}>{room.key}</bdi>
                </span>
                <span role="cell">
                  <bdi>
                    {Object.entries(room.metadata)
                      .map(([name, value]) => `${name}=${value}`)
                      .join(" ")}
                  </bdi>
                </span>
                {room.load ? (
                  <>
                    <span role="cell">
                      {room.load.ticks_us} + {room.load.sync_us} + {room.load.patches_us} µs
                    </span>
                    <span role="cell" title={lateness(room.load)}>
                      {(room.load.late_us / 1000).toFixed(1)} ms
                    </span>
                    <span role="cell">
                      {bytes(room.load.bytes_in_per_s)} / {bytes(room.load.bytes_out_per_s)}
                    </span>
                  </>
                ) : (
                  ["time", "late", "bytes"].map((name) => (
                    <span role="cell" key={name}>
                      no answer
                    </span>
                  ))
                )}
                <span role="cell">{room.shard}</span>
              </div>
            ))}
          </div>
        </div>
      </div>
    </section>
  );
}
