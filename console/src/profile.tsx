/** The profile of a room: bytes by field, messages and events, counted for some seconds on request. */

import { useEffect, useRef, useState } from "preact/hooks";

import * as api from "./api.js";
import { bytes, duration } from "./units.js";

const SECONDS = 10;

type Run = { state: "idle" | "running" } | { state: "done"; of: api.Profile };

/** The profile of a room, and the button that begins one. */
export function Profile({ id }: { id: string }) {
  const [run, setRun] = useState<Run>({ state: "idle" });
  const [refused, setRefused] = useState("");
  const isShown = useRef(true);
  useEffect(() => () => void (isShown.current = false), []);
  const begin = async (): Promise<void> => {
    setRefused("");
    setRun({ state: "running" });
    try {
      const of = await api.profile(id, SECONDS);
      if (isShown.current) setRun({ state: "done", of });
    } catch (error) {
      if (!isShown.current) return;
      setRun({ state: "idle" });
      setRefused((error as Error).message);
    }
  };
  return (
    <section aria-label="Bytes by field">
      <h2>Bytes by field</h2>
      <p>
        <button disabled={run.state === "running"} onClick={() => void begin()}>
          Profile for {SECONDS} s
        </button>{" "}
        <span role="status">{run.state === "running" ? "Counting…" : ""}</span>
      </p>
      <p class="bad" role="alert">
        {refused}
      </p>
      {run.state === "done" && (
        <>
          <Fields of={run.of} />
          <Exchanged of={run.of} />
        </>
      )}
    </section>
  );
}

function Fields({ of }: { of: api.Profile }) {
  const all = of.patches.shared + of.patches.own;
  // A player's patch of one sync, on average.
  const each = of.players * of.counted;
  if (all === 0 || each === 0) {
    return <p class="dim">Nothing changed in {of.counted} of {of.syncs} syncs.</p>;
  }
  const fields = of.fields.filter(({ patches }) => patches.shared + patches.own > 0);
  const size = ({ patches }: api.FieldProfile): number => patches.shared + patches.own;
  fields.sort((one, other) => size(other) - size(one));
  return (
    <>
      <p class="dim">
        {bytes(Math.round(all / each))} per sync and player, by {of.counted} of {of.syncs} syncs{" "}
        for {of.players === 1 ? "1 player" : `${of.players} players`}. The room took{" "}
        {duration(of.room_us)}, counting {duration(of.profile_us)}.
      </p>
      <div class="wide" role="region" aria-label="Bytes of each field" tabIndex={0}>
        <table class="counters">
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Type</th>
              <th scope="col">Bytes per sync</th>
              <th scope="col">Share</th>
              <th scope="col">Own</th>
              <th scope="col">Would save</th>
            </tr>
          </thead>
          <tbody>
            {fields.map((field) => (
              <tr key={field.path}>
                <th scope="row">
                  <code>{field.path || "(root)"}</code>
                </th>
                <td>{field.type}</td>
                <td>{(size(field) / each).toFixed(1)}</td>
                <td>{percent(size(field) / all)}</td>
                <td>{percent(field.patches.own / size(field))}</td>
                <td>{savings(field, all)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Messages of players and events to them, those with the most bytes first. */
function Exchanged({ of }: { of: api.Profile }) {
  const rows = [
    ...of.messages.map((message) => ({ ...message, is: "message" })),
    ...of.events.map((event) => ({ ...event, is: "event" })),
  ];
  if (rows.length === 0) return null;
  const size = ({ shared, own }: api.MessageProfile): number => shared + own;
  rows.sort((one, other) => size(other) - size(one));
  const seconds = of.lasted_ms / 1000;
  return (
    <div class="wide" role="region" aria-label="Messages and events" tabIndex={0}>
      <table class="counters">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Kind</th>
            <th scope="col">Count</th>
            <th scope="col">Bytes a second</th>
            <th scope="col">Bytes each</th>
            <th scope="col">Shared</th>
            <th scope="col">Time each</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.is} ${row.name}`}>
              <th scope="row">
                <code>{row.name}</code>
              </th>
              <td>{row.is}</td>
              <td>{row.count}</td>
              <td>{bytes(Math.round(size(row) / seconds))}</td>
              <td>{(size(row) / row.count).toFixed(1)}</td>
              <td>{row.is === "event" ? percent(row.shared / Math.max(size(row), 1)) : ""}</td>
              <td>{row.is === "message" ? duration(Math.round(row.us / row.count)) : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The savings of a field, as parts of all bytes, without those that are too small to see. */
function savings(field: api.FieldProfile, all: number): string {
  const seen = field.savings.filter(({ patches }) => patches / all >= 0.005);
  return seen.map(({ to, patches }) => `${to}: −${percent(patches / all)}`).join(", ");
}

const percent = (part: number): string => `${(100 * part).toFixed(part < 0.1 ? 1 : 0)} %`;
