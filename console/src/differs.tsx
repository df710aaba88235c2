/** The place where this build differs from the one that recorded a room. */

import { useEffect, useState } from "preact/hooks";

import * as api from "./api.js";
import type { Player } from "./player.js";
import { clock } from "./units.js";

interface FirstDifferenceProps {
  file: string;
  room: string;
  facts: api.Recording;
  go: Player["go"];
}

/** Compares the whole recording, in the background, and says where it differs first. */
export function FirstDifference({ file, room, facts, go }: FirstDifferenceProps) {
  const [until, setUntil] = useState<number | undefined>(facts.first.input);
  const [difference, setDifference] = useState<api.Difference | null>(null);
  useEffect(() => {
    if (until === undefined) return;
    let isOver = false;
    api.search(file, room, { from: until, back: false, for: "difference" }).then(
      (found) => {
        if (isOver) return;
        setDifference(found.difference ?? null);
        setUntil(found.until);
      },
      // The next request says why.
      () => {},
    );
    return () => void (isOver = true);
  }, [file, room, until]);
  if (!difference) return null;
  const { same_until: same } = difference;
  return (
    <p class="bad" role="note">
      This build behaves differently from the one that recorded it, first after {place(same)}.{" "}
      <button onClick={() => go({ input: same.input })}>Go there</button>
    </p>
  );
}

/** Rooms without ticks have none to name. */
const place = ({ at_ms, tick, input }: api.Position): string =>
  `${clock(at_ms)}, ${tick > 0 ? `tick ${tick}, ` : ""}input ${input}`;

interface DiffersProps {
  of: api.Difference;
  go: Player["go"];
}

/** Tells that the rest may differ from the recorded room. */
export function Differs({ of, go }: DiffersProps) {
  const { same_until: same } = of;
  return (
    <div class="bad differs" role="note">
      <p>
        Differs from here: after {place(same)}. This
        build behaves differently from the one that recorded it. Up to the next keyframe, this page
        shows the results of this build, not the recorded ones.{" "}
        <button onClick={() => go({ input: same.input })}>To where it is the same</button>
      </p>
      <pre>{of.text}</pre>
    </div>
  );
}
