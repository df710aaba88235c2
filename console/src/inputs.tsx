/** The inputs around a step, the latest last: who sent what, and what it led to. */

import type { Input, Message } from "./api.js";
import type { Step } from "./excerpt.js";
import { ordered, type Schema } from "./schema.js";
import { clock } from "./units.js";

const AROUND = 8,
  TEXT_LENGTH = 160,
  INPUTS_MAX = 4;

interface InputsProps {
  steps: Step[];
  place: number;
  schema: Schema | null;
  nameOf: (player: number) => string;
  go: (input: number) => void;
}

export function Inputs({ steps, place, schema, nameOf, go }: InputsProps) {
  const from = Math.max(0, place - AROUND),
    until = Math.min(steps.length, place + AROUND + 1);
  const lines = steps.slice(from, until).map((step, at) => ({ step, place: from + at }));
  return (
    <>
      <h2>Inputs</h2>
      <ol class="inputs" aria-label="Inputs">
        {lines.map(({ step, place: at }) => (
          <li key={step.input} aria-current={at === place ? "step" : undefined}>
            <button class="plain" onClick={() => go(step.input)}>
              <span class="dim">{clock(step.at_ms)}</span>{" "}
              {step.differs && <span class="bad">differs </span>}
              {step.frame === null ? (
                <span class="dim">before</span>
              ) : (
                <Line step={step} schema={schema} nameOf={nameOf} />
              )}
            </button>
          </li>
        ))}
      </ol>
    </>
  );
}

type LineProps = Pick<InputsProps, "schema" | "nameOf"> & { step: Step };

function Line({ step, schema, nameOf }: LineProps) {
  const { inputs, more_inputs: more, messages, changes, gap, error, unheard } = step.frame!;
  const named = inputs.length > 1 ? inputs.filter(({ kind }) => !CLOCK.has(kind)) : inputs;
  const told = messages.filter(({ kind }) => kind === "error");
  const errors = [...told.map(({ name, value }) => `${name}: ${String(value)}`), ...unheard];
  const left = inputs.length - named.length + more + Math.max(0, named.length - INPUTS_MAX);
  return (
    <>
      {named.slice(0, INPUTS_MAX).map((input) => (
        <bdi class="input">{text(input, messages, schema, nameOf)}</bdi>
      ))}
      {left > 0 && <span class="dim">{left === 1 ? "1 more" : `${left} more`} </span>}
      {gap !== null && <span class="bad">Inputs are missing: {gap}. </span>}
      {error &&
        (errors.length > 0 ? errors : ["the room failed"]).map((error) => (
          <bdi class="bad">{error.slice(0, TEXT_LENGTH)} </bdi>
        ))}
      {changes.length > 0 && (
        <span class="badge">
          {changes.length === 1 ? "1 change" : `${changes.length} changes`}
        </span>
      )}
    </>
  );
}

const CLOCK = new Set(["tick", "sync", "wake", "measured"]);

function text(
  { kind, player, text, message }: Input,
  messages: Message[],
  schema: Schema | null,
  nameOf: (player: number) => string,
): string {
  const sent = messages.find(({ number }) => number === message);
  const who = player === null ? "" : `${nameOf(player)}: `;
  if (!sent) return `${who}${kind} ${text}`.slice(0, TEXT_LENGTH);
  const type = schema?.messages.find(({ name }) => name === sent.name)?.type;
  const value = JSON.stringify(ordered(sent.value, type));
  return `${who}${sent.name} ${value}`.slice(0, TEXT_LENGTH);
}
