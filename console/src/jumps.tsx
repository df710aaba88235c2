/** Jumps in a recording: to the next input, error or change of a field, or the one before. */

import { useEffect, useState } from "preact/hooks";

import type * as api from "./api.js";
import type { Player } from "./player.js";

const JUMPS: Record<string, string> = {
  input: "input",
  error: "error",
  internal: "internal error",
  change: "change of a field",
};

export function Jumps({ player, viewer }: { player: Player; viewer: number | null }) {
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
