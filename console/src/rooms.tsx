/** The list of rooms. Only the rows in sight are asked for and drawn. */

import { useRef, useState } from "preact/hooks";

import * as api from "./api.js";
import { Charts, type Sample } from "./charts.js";
import { Find } from "./find.js";
import { Heading } from "./heading.js";
import { useFocusKept, useMedia, usePolled, useSettled } from "./hooks.js";
import { bytes, duration, lateness, parts, total } from "./units.js";

/** The height of a row, and of one on a narrow screen, where it has two lines: see style.css. */
const ROW_PX = 34,
  CARD_PX = 58;
const NARROW = "(max-width: 800px)";
const POLL_MS = 1000,
  FOUND_POLL_MS = 3000,
  TYPING_MS = 150;
const ORDERS: Record<string, string> = {
  players: "most players",
  slowest: "longest sync",
  latest: "most late",
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
  {
    text: "Longest sync",
    order: "slowest",
    title: "In the last 5 to 10 s: ticks, comparing and patches. Rooms at rest have none",
  },
  { text: "Late", order: "latest", title: "The most in the last seconds" },
  { text: "Bytes in / out per s", order: "bytes" },
  { text: "Shard" },
];
/** Rows beyond the edge that are drawn, so that scrolling shows no gap. */
const BEYOND = 10;

interface RoomsProps {
  types: string[];
  samples: Sample<api.Overview>[];
}

export function Rooms({ types, samples }: RoomsProps) {
  const [query, setQuery] = useState({ type: "", find: "", order: "players" });
  const [top, setTop] = useState(0);
  const section = useRef<HTMLElement>(null),
    viewport = useRef<HTMLDivElement>(null);
  const rowPx = useMedia(NARROW) ? CARD_PX : ROW_PX;
  const find = useSettled(query.find, TYPING_MS);
  // In steps, and by the height of the window: what is in sight is asked for once, not again with
  // each row that scrolls by and whenever something above the list changes its height.
  const skip = Math.max(0, Math.floor(top / rowPx / BEYOND - 1) * BEYOND);
  const limit = Math.min(500, Math.ceil(innerHeight / rowPx) + 3 * BEYOND);
  const asked = { ...query, find, skip, limit };
  const { value, error } = usePolled(() => api.rooms(asked), POLL_MS, JSON.stringify(asked));
  // Until the rows in sight are here, the earlier ones stay.
  const shown = useRef({ skip: 0, count: 0, rooms: [] as api.ListedRoom[] });
  if (value) shown.current = { skip, ...value };
  const isKnown = useRef(false);
  isKnown.current ||= value !== null;
  useFocusKept(section);
  const change = (part: Partial<typeof query>): void => {
    setQuery({ ...query, ...part });
    viewport.current?.scrollTo(0, 0);
  };
  const { rooms, count, skip: first } = shown.current;
  return (
    <section class="rooms" aria-label="Rooms" ref={section}>
      <div class="title">
        <Heading title="Rooms" />
        <p role="status" class={error ? "bad" : "dim"}>
          {error
            ? error.message
            : isKnown.current && `${count.toLocaleString()} ${count === 1 ? "room" : "rooms"}`}
        </p>
      </div>
      <Charts samples={samples} />
      <form class="filter" onSubmit={(event) => event.preventDefault()}>
        <Find
          placeholder="room, key, metadata, player or user"
          value={query.find}
          change={(find) => change({ find })}
        />
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
      </form>
      {find !== "" && <Found find={find} key={find} />}
      <div class="list">
        <div class="table" role="table" aria-rowcount={count + 1} aria-label="Rooms">
          <div role="rowgroup" class="head">
            <div class="row" role="row" aria-rowindex={1}>
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
          </div>
          <div
            class="viewport"
            role="rowgroup"
            ref={viewport}
            onScroll={(event) => setTop(event.currentTarget.scrollTop)}
          >
            <div style={{ height: `${count * rowPx}px` }}>
              {rooms.map((room, index) => (
                <Row
                  key={room.id}
                  room={room}
                  at={first + index}
                  top={`translateY(${(first + index) * rowPx}px)`}
                />
              ))}
            </div>
          </div>
        </div>
        {isKnown.current && count === 0 && (
          <p class="empty">
            {find !== ""
              ? "No room has it in its id, key or metadata."
              : query.type === ""
                ? "The node has no rooms. Clients create them by joining."
                : "The node has no rooms of this type."}
          </p>
        )}
      </div>
    </section>
  );
}

function Row({ room, at, top }: { room: api.ListedRoom; at: number; top: string }) {
  const { load } = room;
  return (
    <div class="row" role="row" aria-rowindex={at + 2} style={{ transform: top }}>
      <span role="cell" class="id">
        <a href={`#room/${encodeURIComponent(room.id)}`}>{room.id}</a>
      </span>
      <span role="cell" class="type">
        {room.type}
      </span>
      <span role="cell" class="seats">
        {room.players} / {room.capacity}
        {room.locked && " locked"}
        {room.private && " private"}
      </span>
      <span role="cell" class="key">
        <bdi title={room.key ?? ""}>{room.key}</bdi>
      </span>
      <span role="cell" class="metadata">
        <bdi>
          {Object.entries(room.metadata)
            .map(([name, value]) => `${name}=${value}`)
            .join(" ")}
        </bdi>
      </span>
      {load ? (
        <>
          {load.longest ? (
            <span role="cell" class="sync" title={parts(load.longest)}>
              {duration(total(load.longest))}
            </span>
          ) : (
            <span role="cell" class="sync dim" title="No sync in the last seconds">
              at rest
            </span>
          )}
          <span role="cell" class="late" title={lateness(load)}>
            {duration(load.late_us)}
          </span>
          <span role="cell" class="bytes">
            {bytes(load.bytes_in_per_s)} / {bytes(load.bytes_out_per_s)}
          </span>
        </>
      ) : (
        ["sync", "late", "bytes"].map((name) => (
          <span role="cell" class={`${name} bad`} key={name} title="Its shard has not answered">
            no answer
          </span>
        ))
      )}
      <span role="cell" class="shard">
        {room.shard}
      </span>
    </div>
  );
}

/** Players whose name or user contains what is looked for. */
function Found({ find }: { find: string }) {
  const { value, error } = usePolled(() => api.players(find), FOUND_POLL_MS, find);
  const list = useRef<HTMLElement>(null);
  useFocusKept(list);
  return (
    <section class="found" aria-label="Players found" ref={list}>
      <h2>
        Players{" "}
        <span class="dim" role="status">
          {error
            ? error.message
            : value &&
              `${value.players.length}${value.more ? " of more: write more of the name" : ""}${
                value.complete ? "" : ", and some shards have not answered"
              }`}
        </span>
      </h2>
      <ul>
        {value?.players.map((player) => (
          <li key={`${player.room}/${player.id}`}>
            <a href={`#room/${encodeURIComponent(player.room)}/${player.id}`}>
              <bdi>{player.name.slice(0, 80) || `player ${player.id}`}</bdi>
            </a>
            {player.user !== null && <bdi class="dim">{player.user.slice(0, 80)}</bdi>}
            <span class="dim">
              in {player.type} {player.room}
            </span>
            {!player.connected && <span class="badge">away</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}
