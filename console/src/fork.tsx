/** Lets a recorded room go on, as a room of its own, in the playground. */

import { useState } from "preact/hooks";

import * as api from "./api.js";
import type { Step } from "./excerpt.js";

interface ForkProps {
  file: string;
  room: string;
  step: Step;
  /** The player whose seat is to be taken. */
  name: string;
}

export function Fork({ file, room, step, name }: ForkProps) {
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
