/** A recording that runs again: the state and a player's view at any moment, and what led to it. */

import { useEffect, useRef, useState } from "preact/hooks";

import * as api from "./api.js";
import { Changes } from "./changes.js";
import { Differs, FirstDifference } from "./differs.js";
import { marksOf } from "./excerpt.js";
import { Fork } from "./fork.js";
import { Heading } from "./heading.js";
import { Inputs } from "./inputs.js";
import { Jumps } from "./jumps.js";
import { type Player, usePlayer } from "./player.js";
import { moment, recordingLink } from "./recordings.js";
import { useSchema } from "./room.js";
import { Seen } from "./seen.js";
import { Tree } from "./tree.js";
import { bytes, clock, span } from "./units.js";

const SPEEDS = [0.25, 1, 4, 16, 64];

interface RecordingProps {
  file: string;
  room: string;
  /** The first moment and the view to show, from the address. */
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
    ["End", of.end?.why ?? "not written yet, or the process ended"],
    ["Recorded by", of.build],
  ];
  const notes = [
    of.fault && `The file is damaged: ${of.fault}.`,
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
      <FirstDifference file={file} room={room} facts={facts} go={player.go} />
      {difference && <Differs of={difference} go={player.go} />}
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
            {step.differs && <p class="bad">Result of this build, which behaves differently.</p>}
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
          <Seen
            step={step}
            steps={steps}
            place={place}
            viewer={viewer}
            see={setViewer}
            schema={schema}
          />
        </div>
      ) : (
        player.refused === "" && !difference && <p role="status">Loading…</p>
      )}
    </>
  );
}

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
      <Place facts={facts} player={player} />
      {step && (
        <span role="status">
          {clock(step.at_ms)} · input {step.input.toLocaleString()} of{" "}
          {facts.last.input.toLocaleString()}
        </span>
      )}
    </div>
  );
}

/** The tick, or the input in a room without ticks: shows it, and jumps to another. */
function Place({ facts, player }: { facts: api.Recording; player: Player }) {
  const field = useRef<HTMLInputElement>(null);
  const kind = facts.last.tick > 0 ? "tick" : "input";
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const number = Number(field.current!.value);
    player.go(kind === "tick" ? { tick: number } : { input: number });
  };
  return (
    <form onSubmit={submit}>
      <label>
        {kind === "tick" ? "Tick" : "Input"}{" "}
        <input ref={field} type="number" min={0} value={player.step?.[kind] ?? 0} class="tick" />
      </label>
    </form>
  );
}
