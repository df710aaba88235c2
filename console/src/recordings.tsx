/** The list of recordings: the files in the node's folder, the latest first. */

import { useState } from "preact/hooks";

import * as api from "./api.js";
import { Find } from "./find.js";
import { Heading } from "./heading.js";
import { usePolled, useSettled } from "./hooks.js";
import { bytes, span } from "./units.js";

const POLL_MS = 3000,
  TYPING_MS = 150;
const PAGE = 50,
  LIMIT_MAX = 100;

export const recordingLink = (file: string, room: string, ...more: (number | null)[]): string =>
  ["#recording", file, room, ...more.filter((part) => part !== null)]
    .map((part) => encodeURIComponent(String(part)).replace("%23", "#"))
    .join("/");

/** All of them, or those whose names contain a text, such as a room's id. */
export function Recordings({ find: first }: { find: string }) {
  const [text, setText] = useState(first);
  const [limit, setLimit] = useState(PAGE);
  const find = useSettled(text, TYPING_MS);
  const { value, error } = usePolled(
    () => api.recordings(find, limit),
    POLL_MS,
    JSON.stringify([find, limit]),
  );
  return (
    <section class="recordings" aria-label="Recordings">
      <div class="title">
        <Heading title="Recordings" />
        <p role="status" class={error ? "bad" : "dim"}>
          {error ? error.message : value ? count(value.count) : "Loading…"}
        </p>
      </div>
      <form class="filter" onSubmit={(event) => event.preventDefault()}>
        <Find placeholder="room type or room" value={text} change={setText} />
      </form>
      {value && value.count === 0 && (
        <p class="dim">
          {find === ""
            ? "None yet: rooms that fail leave one, and each room's page has a button."
            : "No recording has it in its name."}
        </p>
      )}
      {value && value.count > 0 && (
        <div class="wide" role="region" aria-label="The list" tabIndex={0}>
          <table>
            <thead>
              <tr>
                {["Room", "Begin", "Length", "Size", "Why", "End"].map((text) => (
                  <th scope="col">{text}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {value.recordings.map((recording) => (
                <Row key={`${recording.file}/${recording.room}`} of={recording} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {value && value.count > value.recordings.length && limit < LIMIT_MAX && (
        <p>
          <button onClick={() => setLimit(LIMIT_MAX)}>More</button>
        </p>
      )}
    </section>
  );
}

const count = (of: number): string =>
  `${of.toLocaleString()} ${of === 1 ? "recording" : "recordings"}`;

function Row({ of }: { of: api.RecordingFile }) {
  const { file, room, error } = of;
  if (room === undefined)
    return (
      <tr>
        <th scope="row">
          <bdi>{file}</bdi>
        </th>
        <td colSpan={2}>{moment(of.changed_ms)}</td>
        <td>{bytes(of.bytes)}</td>
        <td colSpan={2} class="bad">
          {error}
        </td>
      </tr>
    );
  return (
    <tr>
      <th scope="row">
        {of.too_large === null ? (
          <a href={recordingLink(file, room)}>
            <bdi>{of.type}</bdi> {room}
          </a>
        ) : (
          <>
            <bdi>{of.type}</bdi> {room}
          </>
        )}{" "}
        {of.key != null && (
          <bdi class="long dim" title={of.key}>
            {of.key}
          </bdi>
        )}
      </th>
      <td>{moment(of.began_ms ?? 0)}</td>
      <td>{of.length_ms == null ? "" : span(of.length_ms)}</td>
      <td>{bytes(of.bytes)}</td>
      <td>
        <bdi>{of.why?.slice(0, 200)}</bdi>
      </td>
      <td>
        {of.end ?? <span class="dim">none yet, or it was cut</span>}
        {of.too_large !== null && <p class="bad">Not shown here: {of.too_large}</p>}
      </td>
    </tr>
  );
}

export const moment = (unixMs: number): string => new Date(unixMs).toLocaleString();
