/** The changes: places, old and new values. */

import type { Change, Json } from "./api.js";
import { pointer } from "./excerpt.js";

const SHOWN_MAX = 50,
  TEXT_LENGTH = 60;

interface ChangesProps {
  of: Change[];
  title: string;
  /** Chooses a place whose changes are jumped to. */
  follow: (pointer: string) => void;
}

export function Changes({ of, title, follow }: ChangesProps) {
  return (
    <>
      <h2>
        {title} <span class="dim">{of.length || ""}</span>
      </h2>
      {of.length === 0 && <p class="dim">Nothing.</p>}
      <ul class="changes">
        {of.slice(0, SHOWN_MAX).map((change, at) => (
          <li key={at}>
            <button
              class="plain"
              title="Jump to changes of this field"
              onClick={() => follow(pointer(change.path))}
            >
              <bdi>{change.path.join(".") || "everything"}</bdi>
            </button>{" "}
            <bdi>{text(change)}</bdi>
          </li>
        ))}
      </ul>
      {of.length > SHOWN_MAX && <p class="dim">and {of.length - SHOWN_MAX} more</p>}
    </>
  );
}

function text({ kind, from, old, new: next }: Change): string {
  if (kind === "entered") return `entered: ${brief(next)}`;
  if (kind === "left") return `left: ${brief(old)}`;
  if (kind === "moved") return `moved from ${from}`;
  return `${brief(old)} → ${brief(next)}`;
}

function brief(value: Json | undefined): string {
  const text = JSON.stringify(value ?? null);
  return text.length > TEXT_LENGTH ? `${text.slice(0, TEXT_LENGTH)}…` : text;
}
