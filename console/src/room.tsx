/** One room: its players, what can be done, and its state beside what a player sees of it. */

import { useEffect, useState } from "preact/hooks";

import * as api from "./api.js";
import { RoomCharts } from "./charts.js";
import { ValueForm } from "./fields.js";
import { usePolled } from "./hooks.js";
import { initial, ordered, type Schema, type Type } from "./schema.js";
import { Tree } from "./tree.js";
import { bytes, lateness } from "./units.js";

const POLL_MS = 500;

export function RoomView({ id }: { id: string }) {
  const [viewer, setViewer] = useState<number | null>(null);
  const {
    value: room,
    error,
    again,
  } = usePolled(() => api.room(id, viewer), POLL_MS, `${id} ${viewer}`);
  const [last, setLast] = useState<api.InspectedRoom | null>(null);
  const [said, setSaid] = useState("");
  const schema = useSchema(room?.type ?? last?.type);
  useEffect(() => void (room && setLast(room)), [room]);
  const shown = room ?? last;
  const act = async (action: string, body: unknown): Promise<void> => {
    try {
      await api.act(id, action, body);
      setSaid("");
      again();
    } catch (error) {
      setSaid((error as Error).message);
    }
  };
  if (!shown) return <p role="status">{error?.message ?? "Loading…"}</p>;
  const { load } = shown;
  return (
    <section class="room" aria-label={`Room ${id}`}>
      <h2>
        {shown.type} <code>{id}</code>{" "}
        {shown.key !== null && (
          <bdi class="long" title={shown.key}>
            {shown.key}
          </bdi>
        )}
      </h2>
      {error && (
        <p class="bad" role="status">
          {error.message}
        </p>
      )}
      <dl class="facts">
        <Fact name="Players">
          {shown.players} / {shown.capacity}
        </Fact>
        <Fact name="Version">{shown.version}</Fact>
        <Fact name="Age">{Math.round(shown.age_ms / 1000)} s</Fact>
        <Fact name="Ticks">
          {shown.tick_hz} Hz, {load.ticks_us} µs
        </Fact>
        <Fact name="Syncs">
          {shown.sync_hz} Hz, {load.sync_us} µs, patches {load.patches_us} µs
        </Fact>
        <Fact name="Late">{lateness(load)}</Fact>
        <Fact name="Bytes in, out">
          {bytes(load.bytes_in)}, {bytes(load.bytes_out)}
        </Fact>
      </dl>
      <RoomCharts room={shown} />
      <div class="actions">
        <button onClick={() => act("lock", { locked: !shown.locked })}>
          {shown.locked ? "Unlock" : "Lock"}
        </button>
        <button
          class="danger"
          onClick={() => confirm("Close this room? All its players leave.") && act("close", {})}
        >
          Close
        </button>
        <a href={`#playground/${encodeURIComponent(id)}`}>Open in the playground</a>
      </div>
      <p class="bad" role="alert">
        {said}
      </p>
      <div class="columns">
        <Players
          seats={shown.seats}
          viewer={viewer}
          see={setViewer}
          kick={(player) => act("kick", { player })}
        />
        <div>
          <h3>The server's state</h3>
          <Tree value={shown.state} type={schema?.state} label="The server's state" policies />
        </div>
        <div>
          <h3>
            What {viewer === null ? "a player" : <bdi class="long">{nameOf(shown, viewer)}</bdi>}{" "}
            sees
          </h3>
          {viewer === null ? (
            <p>Choose a player.</p>
          ) : shown.view === null ? (
            <p>This player is not in the room.</p>
          ) : (
            <Tree value={shown.view} type={schema?.state} label="What the player sees" />
          )}
        </div>
      </div>
      <Messages messages={shown.messages} schema={schema} />
      {schema && schema.events.length > 0 && (
        <Emit schema={schema} seats={shown.seats} emit={(body) => act("emit", body)} />
      )}
    </section>
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
    if (type !== undefined)
      api.schema(type).then(
        (found) => setSchema(found as Schema),
        () => setSchema(null),
      );
  }, [type]);
  return schema;
}

interface PlayersProps {
  seats: api.Seat[];
  viewer: number | null;
  see: (player: number | null) => void;
  kick: (player: number) => void;
}

function Players({ seats, viewer, see, kick }: PlayersProps) {
  return (
    <div>
      <h3>Players</h3>
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
              <bdi class="long" title={seat.user}>
                {seat.user.slice(0, 200)}
              </bdi>
            )}
            <button
              class="danger"
              aria-label={`Kick player ${seat.id}`}
              onClick={() => kick(seat.id)}
            >
              Kick
            </button>
          </li>
        ))}
      </ul>
      {seats.length === 0 && <p>Nobody is here.</p>}
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
      <h3>Messages</h3>
      <label>
        Find{" "}
        <input
          type="search"
          placeholder="player, name or value"
          value={find}
          onInput={(event) => setFind(event.currentTarget.value)}
        />
      </label>
      <ul class="log">
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
      <h3>Send an event</h3>
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
