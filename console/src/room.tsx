/** One room: its players, what can be done, and its state beside what a player sees of it. */

import { useEffect, useRef, useState } from "preact/hooks";

import * as api from "./api.js";
import { RoomCharts } from "./charts.js";
import { Confirm } from "./confirm.js";
import { ValueForm } from "./fields.js";
import { Find } from "./find.js";
import { Heading } from "./heading.js";
import { useFocusKept, usePolled } from "./hooks.js";
import { Profile } from "./profile.js";
import { initial, ordered, type Schema, type Type } from "./schema.js";
import { Tree } from "./tree.js";
import { bytes, duration, lateness, parts, span, total } from "./units.js";

const POLL_MS = 500,
  SCHEMA_AGAIN_MS = 2000;

/** What an operator is asked to confirm: to kick a player, or to close the room. */
type Asked = { action: "kick"; player: number; name: string } | { action: "close" };

/** A room, and at first what one player sees of it, if `seen` is given. */
export function RoomView({ id, seen }: { id: string; seen: number | null }) {
  const [viewer, setViewer] = useState(seen);
  const {
    value: room,
    error,
    again,
  } = usePolled(() => api.room(id, viewer), POLL_MS, `${id} ${viewer}`);
  const [last, setLast] = useState<api.InspectedRoom | null>(null);
  const [said, setSaid] = useState({ done: "", refused: "" });
  const [asked, setAsked] = useState<Asked | null>(null);
  const section = useRef<HTMLElement>(null);
  const schema = useSchema(room?.type ?? last?.type);
  useEffect(() => void (room && setLast(room)), [room]);
  useFocusKept(section);
  const shown = room ?? last;
  const isOver = error?.status === 404;
  const act = async (action: string, body: unknown, done: string): Promise<void> => {
    try {
      await api.act(id, action, body);
      setSaid({ done, refused: "" });
      again();
    } catch (error) {
      setSaid({ done: "", refused: (error as Error).message });
    }
  };
  const decided = (reason: string | null): void => {
    setAsked(null);
    if (!asked || reason === null) return;
    const text = reason === "" ? {} : { text: reason };
    if (asked.action === "close") void act("close", text, "The room closes.");
    else void act("kick", { player: asked.player, ...text }, `${asked.name} was kicked.`);
  };
  return (
    <section class="room" aria-label={`Room ${id}`} ref={section}>
      <Heading title={`${shown ? shown.type : "Room"} ${id}`}>
        {shown ? shown.type : "Room"} <code>{id}</code>{" "}
        {shown?.key != null && (
          <bdi class="long" title={shown.key}>
            {shown.key}
          </bdi>
        )}
      </Heading>
      {error && (
        <p class="bad" role="status">
          {error.message}
          {isOver && (
            <>
              : it has ended, or the node was restarted.
              {shown && " This is what it was."} <a href="#">Show all rooms</a>
            </>
          )}
        </p>
      )}
      {shown ? (
        <>
          <Facts room={shown} />
          <RoomCharts room={shown} />
          <div class="actions">
            {!isOver && (
              <>
                <button
                  onClick={() =>
                    act(
                      "lock",
                      { locked: !shown.locked },
                      shown.locked ? "Players may join again." : "Nobody may join.",
                    )
                  }
                >
                  {shown.locked ? "Unlock" : "Lock"}
                </button>
                {shown.recording !== null && (
                  <button
                    onClick={() =>
                      act(
                        "record",
                        { records: !shown.recording },
                        shown.recording
                          ? "The recording ends."
                          : "The room is recorded, with the last minutes before.",
                      )
                    }
                  >
                    {shown.recording ? "Stop recording" : "Record"}
                  </button>
                )}
                <button class="danger" onClick={() => setAsked({ action: "close" })}>
                  Close…
                </button>
                <a href={`#playground/${encodeURIComponent(id)}`}>Open in the playground</a>
              </>
            )}
            {(shown.recording !== null || shown.journaled) && (
              <a href={`#recordings/${encodeURIComponent(id)}`}>Its recordings</a>
            )}
            <span class="good" role="status">
              {said.done}
            </span>
          </div>
          <p class="bad" role="alert">
            {said.refused}
          </p>
          <div class="columns">
            <Players
              seats={shown.seats}
              viewer={viewer}
              see={setViewer}
              kick={
                isOver
                  ? null
                  : (player) =>
                      setAsked({ action: "kick", player, name: nameOf(shown, player).slice(0, 60) })
              }
            />
            <div>
              <h2>The server's state</h2>
              <Tree value={shown.state} type={schema?.state} label="The server's state" policies />
            </div>
            <div>
              <h2>
                What{" "}
                {viewer === null ? "a player" : <bdi class="long">{nameOf(shown, viewer)}</bdi>}{" "}
                sees
              </h2>
              {viewer === null ? (
                <p class="dim">Choose a player.</p>
              ) : room === null && !isOver ? (
                // The last answer has what another player sees.
                <p class="dim">Loading…</p>
              ) : shown.view === null ? (
                <p class="dim">This player is not in the room.</p>
              ) : (
                <Tree value={shown.view} type={schema?.state} label="What the player sees" />
              )}
            </div>
          </div>
          {!isOver && <Profile key={id} id={id} />}
          <Messages messages={shown.messages} schema={schema} />
          {!isOver && schema && schema.events.length > 0 && (
            <Emit
              schema={schema}
              seats={shown.seats}
              emit={(body) => act("emit", body, "The event was sent.")}
            />
          )}
        </>
      ) : (
        !error && <p role="status">Loading…</p>
      )}
      {asked?.action === "kick" && (
        <Confirm
          title={`Kick ${asked.name}?`}
          text="The player leaves the room at once, and may join again while it is not locked."
          action="Kick"
          decided={decided}
        />
      )}
      {asked?.action === "close" && (
        <Confirm
          title="Close this room?"
          text="All its players leave, and the room ends."
          action="Close the room"
          decided={decided}
        />
      )}
    </section>
  );
}

function Facts({ room }: { room: api.InspectedRoom }) {
  const { load } = room;
  return (
    <dl class="facts">
      <Fact name="Players">
        {room.players} / {room.capacity}
      </Fact>
      <Fact name="Age">{span(room.age_ms)}</Fact>
      <Fact name="Version">{room.version.toLocaleString()}</Fact>
      <Fact name="Rates">
        {room.tick_hz} ticks, {room.sync_hz} syncs per s
      </Fact>
      <Fact name="Longest sync in 10 s">
        {load.longest ? `${duration(total(load.longest))}: ${parts(load.longest)}` : "at rest"}
      </Fact>
      <Fact name="Late">{lateness(load)}</Fact>
      <Fact name="In, out">
        {bytes(load.bytes_in)}, {bytes(load.bytes_out)}
      </Fact>
    </dl>
  );
}

const nameOf = (room: api.InspectedRoom, id: number): string =>
  room.seats.find((seat) => seat.id === id)?.name || `player ${id}`;

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The schema of a room type. */
export function useSchema(type: string | undefined): Schema | null {
  const [schema, setSchema] = useState<Schema | null>(null);
  useEffect(() => {
    setSchema(null);
    let timer = 0,
      isOver = false;
    const ask = (): void =>
      void api.schema(type!).then(
        (found) => isOver || setSchema(found as Schema),
        () => isOver || (timer = window.setTimeout(ask, SCHEMA_AGAIN_MS)),
      );
    if (type !== undefined) ask();
    return () => {
      isOver = true;
      window.clearTimeout(timer);
    };
  }, [type]);
  return schema;
}

interface PlayersProps {
  seats: api.Seat[];
  viewer: number | null;
  see: (player: number | null) => void;
  /** `null` when the room has ended. */
  kick: ((player: number) => void) | null;
}

function Players({ seats, viewer, see, kick }: PlayersProps) {
  return (
    <div>
      <h2>Players</h2>
      <ul class="players">
        {seats.map((seat) => (
          <li key={seat.id}>
            <button
              aria-pressed={viewer === seat.id}
              onClick={() => see(viewer === seat.id ? null : seat.id)}
              title="Show what this player sees"
            >
              {seat.id}{" "}
              <bdi class="long" title={seat.name}>
                {seat.name.slice(0, 200) || "(no name)"}
              </bdi>
            </button>
            {!seat.connected && <span class="badge">away</span>}
            {seat.user !== null && (
              <bdi class="long dim" title={seat.user}>
                {seat.user.slice(0, 200)}
              </bdi>
            )}
            {kick && (
              <button
                class="danger"
                aria-label={`Kick player ${seat.id}`}
                onClick={() => kick(seat.id)}
              >
                Kick…
              </button>
            )}
          </li>
        ))}
      </ul>
      {seats.length === 0 && <p class="dim">Nobody is here.</p>}
    </div>
  );
}

/** The type of a message's value. A reply's is that of the request before it. */
function typeOf(message: api.Message, all: api.Message[], schema: Schema | null): Type | undefined {
  const { kind, name, request, player } = message;
  if (kind === "event") return schema?.events.find((event) => event.name === name)?.type;
  if (kind !== "reply") return schema?.messages.find((of) => of.name === name)?.type;
  const isAsked = (of: api.Message): boolean =>
    of.kind === "request" && of.request === request && of.player === player;
  return schema?.messages.find((of) => of.name === all.find(isAsked)?.name)?.reply;
}

/** What goes in and out, the latest first. The node records it while this page looks. */
function Messages({ messages, schema }: { messages: api.Message[]; schema: Schema | null }) {
  const [find, setFind] = useState("");
  const lines = messages
    .map((message) => {
      const { number, direction, player, kind, name, request } = message;
      const value = ordered(message.value, typeOf(message, messages, schema));
      const arrow = direction === "in" ? "→" : "←";
      const asked = request === null ? "" : ` #${request}`;
      const text = `${arrow} ${player} ${kind} ${name ?? ""}${asked} ${JSON.stringify(value)}`;
      return { number, direction, text };
    })
    .filter(({ text }) => text.includes(find))
    .reverse();
  return (
    <section aria-label="Messages">
      <h2>Messages</h2>
      <Find placeholder="player, name or value" value={find} change={setFind} />
      {lines.length === 0 && (
        <p class="dim">{messages.length ? "No message fits." : "None since this page was opened."}</p>
      )}
      <ul class="log" tabIndex={0} aria-label="Messages">
        {lines.map(({ number, direction, text }) => (
          <li key={number} class={direction}>
            <bdi>{text.length > 300 ? `${text.slice(0, 300)}…` : text}</bdi>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface EmitProps {
  schema: Schema;
  seats: api.Seat[];
  emit: (body: unknown) => void;
}

function Emit({ schema, seats, emit }: EmitProps) {
  const [name, setName] = useState(schema.events[0]!.name);
  const event = schema.events.find((event) => event.name === name) ?? schema.events[0]!;
  const [values, setValues] = useState<Record<string, api.Json>>({});
  const value = values[event.name] ?? initial(event.type);
  const [to, setTo] = useState("");
  const submit = (submitted: SubmitEvent): void => {
    submitted.preventDefault();
    emit({ event: event.name, value, player: to === "" ? null : Number(to) });
  };
  return (
    <form class="message" onSubmit={submit}>
      <h2>Send an event</h2>
      <label>
        Event{" "}
        <select value={name} onChange={(event) => setName(event.currentTarget.value)}>
          {schema.events.map(({ name }) => (
            <option>{name}</option>
          ))}
        </select>
      </label>
      <label>
        To{" "}
        <select value={to} onChange={(event) => setTo(event.currentTarget.value)}>
          <option value="">all</option>
          {seats.map((seat) => (
            <option value={seat.id}>
              {seat.id} {seat.name.slice(0, 40)}
            </option>
          ))}
        </select>
      </label>
      <ValueForm
        type={event.type}
        value={value}
        change={(value) => setValues({ ...values, [event.name]: value })}
      />
      <button>Send</button>
    </form>
  );
}
