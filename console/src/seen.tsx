/** The view of a player at a step of a recording, and the messages sent to them. */

import { marksOf, type Step } from "./excerpt.js";
import type { Schema } from "./schema.js";
import { Tree } from "./tree.js";

/** The steps before whose messages are shown. */
const SENT_STEPS = 50,
  TEXT_LENGTH = 300;

interface SeenProps {
  step: Step;
  steps: Step[];
  place: number;
  viewer: number | null;
  see: (viewer: number | null) => void;
  schema: Schema | null;
}

export function Seen({ step, steps, place, viewer, see, schema }: SeenProps) {
  const frame = step.frame;
  const gone = viewer !== null && !step.seats.some((seat) => seat.id === viewer);
  const sent = steps
    .slice(Math.max(0, place - SENT_STEPS), place + 1)
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
                <bdi>{[kind, name ?? "", asked(request), JSON.stringify(value)].join(" ").slice(0, TEXT_LENGTH)}</bdi>
              </li>
            ))}
          </ul>
          {sent.length === 0 && <p class="dim">Nothing in the last inputs but patches.</p>}
        </>
      )}
    </div>
  );
}

const asked = (request: number | null): string => (request === null ? "" : `#${request}`);
