/** A recording that runs again: the state and a player's view at any moment, and what led to it. */

import { useEffect, useRef, useState } from "preact/hooks";

import * as api from "./api.js";
import { Changes } from "./changes.js";
import { marksOf, type Step } from "./excerpt.js";
import { Heading } from "./heading.js";
import { Inputs } from "./inputs.js";
import { usePlayer } from "./player.js";
import { moment, recordingLink } from "./recordings.js";
import { useSchema } from "./room.js";
import type { Schema } from "./schema.js";
import { Tree } from "./tree.js";
import { bytes, clock, span } from "./units.js";

const SPEEDS = [0.25, 1, 4, 16, 64];

interface RecordingProps {
  file: string;
  room: string;
  /** Where to begin, and whose view to show: from the address. */
  input: number | null;
  seen: number | null;
}

export function RecordingView(props: RecordingProps) {
  const { file, room } = props;
  const [facts, setFacts] = useState<api.Recording | null>(null);
  const [refused, setRefused] = useState("");
  useEffect(() => {
    let isOver = false;
    api.recording(file, room).then(
      (facts) => isOver || setFacts(facts),
      (error: Error) => isOver || setRefused(error.message),
    );
    return () => void (isOver = true);
  }, [file, room]);
  return (
    <section class="recording" aria-label={`Recording of ${room}`}>
      <Heading title={`Recording of ${room}`}>
        {facts?.type ?? "Recording"} <code>{room}</code> <a href="#recordings">Recordings</a>
      </Heading>
      {refused !== "" && (
        <p class="bad" role="alert">
          {refused}
        </p>
      )}
      {facts ? (
        <>
          <Facts of={facts} file={file} />
          <Played {...props} facts={facts} />
        </>
      ) : (
        refused === "" && <p role="status">Loading…</p>
      )}
    </section>
  );
}

function Facts({ of, file }: { of: api.Recording; file: string }) {
  const facts: [string, string][] = [
    ["File", `${file}, ${bytes(of.bytes)}`],
    ["Begin", moment(of.began_ms)],
    ["Length", span(of.last.at_ms - of.first.at_ms)],
    ["Why", of.why],
    ["End", of.end?.why ?? "none yet, or the process ended"],
    ["Recorded by", of.build],
  ];
  const notes = [
    of.fault && `The file is damaged; the recording ends before that: ${of.fault}.`,
    of.end?.failed && "The room failed at the end.",
    of.other_schema &&
      "It was recorded with another schema: messages may be shown under wrong names.",
    ...of.gaps.map(({ to, why }) => `Inputs are missing before ${clock(to.at_ms)}: ${why}.`),
  ].filter(Boolean);
  return (
    <>
      <dl class="facts">
        {facts.map(([name, text]) => (
          <div>
            <dt>{name}</dt>
            <dd>
              <bdi>{text.slice(0, 300)}</bdi>
            </dd>
          </div>
        ))}
      </dl>
      {notes.map((note) => (
        <p class="bad">{note}</p>
      ))}
    </>
  );
}

function Played({ file, room, input, seen, facts }: RecordingProps & { facts: api.Recording }) {
  const [viewer, setViewer] = useState(seen);
  const player = usePlayer(file, room, facts, viewer);
  const { step, steps, place, difference } = player;
  const schema = useSchema(facts.type);
  useEffect(() => player.go({ input: input ?? facts.first.input }), [input]);
  useEffect(() => setViewer(seen), [seen]);
  useEffect(() => {
    if (!step) return;
    // The address shows where it is, so that it can be sent to others.
    history.replaceState(null, "", recordingLink(file, room, step.input, viewer));
  }, [step?.input, viewer]);
  const frame = step?.frame ?? null;
  const nameOf = (id: number): string =>
    step?.seats.find((seat) => seat.id === id)?.name || `player ${id}`;
  return (
    <>
      <Slider facts={facts} player={player} />
      <Controls facts={facts} player={player} />
      <Jumps player={player} viewer={viewer} />
      {step && (
        <Fork
          file={file}
          room={room}
          step={step}
          name={viewer === null ? "" : nameOf(viewer)}
        />
      )}
      <p class="bad" role="alert">
        {player.refused}
      </p>
      {difference && <Differs of={difference} facts={facts} go={player.go} />}
      {step ? (
        <div class="columns">
          <div>
            <Inputs
              steps={steps}
              place={place}
              schema={schema}
              nameOf={nameOf}
              go={(input) => player.go({ input })}
            />
            <Changes of={frame?.changes ?? []} title="What changed" follow={player.follow} />
          </div>
          <div>
            <h2>The server's state</h2>
            {step.state === null ? (
              <p class="dim">The room has ended.</p>
            ) : (
              <Tree
                value={step.state}
                type={schema?.state}
                label="The server's state"
                policies
                marks={marksOf(frame?.changes ?? [])}
              />
            )}
          </div>
          <Seen step={step} viewer={viewer} see={setViewer} schema={schema} steps={steps} place={place} />
        </div>
      ) : (
        player.refused === "" && !difference && <p role="status">Loading…</p>
      )}
    </>
  );
}

type Player = ReturnType<typeof usePlayer>;

function Slider({ facts, player }: { facts: api.Recording; player: Player }) {
  const { first, last } = facts;
  const [dragged, setDragged] = useState<number | null>(null);
  const { step } = player;
  useEffect(() => {
    if (dragged === null) return;
    const timer = window.setTimeout(() => player.go({ at_ms: dragged }), 60);
    return () => window.clearTimeout(timer);
  }, [dragged]);
  useEffect(() => setDragged(null), [step]);
  const at = dragged ?? step?.at_ms ?? first.at_ms;
  return (
    <input
      class="slider"
      type="range"
      aria-label="Time in the room"
      aria-valuetext={clock(at)}
      min={first.at_ms}
      max={Math.max(last.at_ms, first.at_ms + 1)}
      value={at}
      onInput={(event) => setDragged(Number(event.currentTarget.value))}
    />
  );
}

function Controls({ facts, player }: { facts: api.Recording; player: Player }) {
  const { step, isPlaying, speed } = player;
  return (
    <div class="actions">
      <button onClick={() => player.go({ input: facts.first.input })} title="To the begin">
        |◀
      </button>
      <button onClick={() => player.stepBy(-1)} title="One input back">
        ◀
      </button>
      <button onClick={() => player.play(!isPlaying)}>{isPlaying ? "Pause" : "Play"}</button>
      <button onClick={() => player.stepBy(1)} title="One input on">
        ▶
      </button>
      <button onClick={() => player.go({ input: facts.last.input })} title="To the end">
        ▶|
      </button>
      <label>
        Speed{" "}
        <select
          value={String(speed)}
          onChange={(event) => player.setSpeed(Number(event.currentTarget.value))}
        >
          {SPEEDS.map((speed) => (
            <option value={String(speed)}>{speed}×</option>
          ))}
        </select>
      </label>
      <Tick player={player} />
      {step && (
        <span role="status">
          {clock(step.at_ms)} · input {step.input.toLocaleString()} of{" "}
          {facts.last.input.toLocaleString()}
        </span>
      )}
    </div>
  );
}

/** The tick: to read, and to go to. */
function Tick({ player }: { player: Player }) {
  const input = useRef<HTMLInputElement>(null);
  const { step } = player;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    player.go({ tick: Number(input.current!.value) });
  };
  return (
    <form onSubmit={submit}>
      <label>
        Tick <input ref={input} type="number" min={0} value={step?.tick ?? 0} class="tick" />
      </label>
    </form>
  );
}

interface ForkProps {
  file: string;
  room: string;
  step: Step;
  /** The player whose seat is to be taken. */
  name: string;
}

/** Lets the room go on from here, as a room of its own, in the playground. */
function Fork({ file, room, step, name }: ForkProps) {
  const [refused, setRefused] = useState("");
  const fork = async (): Promise<void> => {
    try {
      const forked = await api.fork(file, room, step.input);
      const as = name === "" ? "" : `/${encodeURIComponent(name)}`;
      location.hash = `playground/${forked}${as}`;
    } catch (error) {
      setRefused((error as Error).message);
    }
  };
  return (
    <div class="actions">
      <button disabled={step.state === null} onClick={() => void fork()}>
        Fork here
      </button>
      <span class="dim">
        A room of its own goes on from this moment in the playground
        {name === "" ? "" : <>, as {name.slice(0, 40)}</>}.
      </span>
      <span class="bad" role="alert">
        {refused}
      </span>
    </div>
  );
}

const JUMPS: Record<string, string> = {
  input: "input",
  error: "error",
  internal: "internal error",
  change: "change of a field",
};

function Jumps({ player, viewer }: { player: Player; viewer: number | null }) {
  const [kind, setKind] = useState<api.Search["for"]>("input");
  const [isOwn, setOwn] = useState(false);
  const { followed, follow } = player;
  useEffect(() => {
    if (followed !== "") setKind("change");
  }, [followed]);
  const jump = (back: boolean): void =>
    player.search({
      back,
      for: kind,
      ...(kind === "input" && isOwn ? { player: viewer } : {}),
      ...(kind === "change" ? { path: followed, as: isOwn ? viewer : null } : {}),
    });
  const own = kind === "input" ? "of the player" : kind === "change" ? "in the player's view" : "";
  return (
    <form class="actions" onSubmit={(event) => (event.preventDefault(), jump(false))}>
      <label>
        Jump to the next{" "}
        <select
          value={kind}
          onChange={(event) => setKind(event.currentTarget.value as api.Search["for"])}
        >
          {Object.entries(JUMPS).map(([kind, text]) => (
            <option value={kind}>{text}</option>
          ))}
        </select>
      </label>
      {kind === "change" && (
        <label>
          Field{" "}
          <input
            value={followed}
            placeholder="/players/1/score"
            onInput={(event) => follow(event.currentTarget.value)}
          />
        </label>
      )}
      {own !== "" && viewer !== null && (
        <label>
          <input
            type="checkbox"
            checked={isOwn}
            onChange={(event) => setOwn(event.currentTarget.checked)}
          />{" "}
          {own}
        </label>
      )}
      <button type="button" onClick={() => jump(true)}>
        Previous
      </button>
      <button>Next</button>
      <span role="status">{player.said}</span>
    </form>
  );
}

interface DiffersProps {
  of: api.Difference;
  facts: api.Recording;
  go: Player["go"];
}

/** Where this build does otherwise than the one that recorded it. */
function Differs({ of, go }: DiffersProps) {
  const { same_until: same } = of;
  return (
    <div class="bad differs" role="note">
      <p>
        Differs from here: after {clock(same.at_ms)}, tick {same.tick}, input {same.input}. This
        build does otherwise than the one that recorded it, so what follows is not shown, up to the
        next keyframe.{" "}
        <button onClick={() => go({ input: same.input })}>To where it is the same</button>
      </p>
      <pre>{of.text}</pre>
    </div>
  );
}

interface SeenProps {
  step: Step;
  steps: Step[];
  place: number;
  viewer: number | null;
  see: (viewer: number | null) => void;
  schema: Schema | null;
}

/** What a player saw, and was sent. */
function Seen({ step, steps, place, viewer, see, schema }: SeenProps) {
  const frame = step.frame;
  const gone = viewer !== null && !step.seats.some((seat) => seat.id === viewer);
  const sent = steps
    .slice(Math.max(0, place - 50), place + 1)
    .flatMap(({ frame }) => frame?.messages ?? [])
    .filter(({ direction, player }) => direction === "out" && player === viewer)
    .reverse();
  return (
    <div>
      <h2>
        <label>
          What{" "}
          <select
            value={viewer ?? ""}
            onChange={(event) => {
              const { value } = event.currentTarget;
              see(value === "" ? null : Number(value));
            }}
          >
            <option value="">a player</option>
            {gone && <option value={viewer}>player {viewer}</option>}
            {step.seats.map(({ id, name }) => (
              <option value={id}>
                {id} {name.slice(0, 40)}
              </option>
            ))}
          </select>{" "}
          saw
        </label>
      </h2>
      {viewer === null ? (
        <p class="dim">Choose a player.</p>
      ) : step.view === null ? (
        <p class="dim">This player is not in the room.</p>
      ) : (
        <Tree
          value={step.view}
          type={schema?.state}
          label="What the player saw"
          marks={marksOf(frame?.view_changes ?? [])}
        />
      )}
      {viewer !== null && (
        <>
          <h2>Sent to the player</h2>
          <ul class="log" aria-label="Sent to the player" tabIndex={0}>
            {sent.map(({ number, kind, name, request, value }) => (
              <li key={number} class="out">
                <bdi>
                  {`${kind} ${name ?? ""}${request === null ? "" : ` #${request}`} ${JSON.stringify(value)}`.slice(
                    0,
                    300,
                  )}
                </bdi>
              </li>
            ))}
          </ul>
          {sent.length === 0 && <p class="dim">Nothing in the last inputs but patches.</p>}
        </>
      )}
    </div>
  );
}
