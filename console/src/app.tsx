/** The frame: the node's health, what is shown, the token, light and dark. */

import { useEffect, useRef, useState } from "preact/hooks";

import * as api from "./api.js";
import { useSamples } from "./charts.js";
import { Heading } from "./heading.js";
import { navigates, useHash, usePolled } from "./hooks.js";
import { Playground } from "./playground.js";
import { RecordingView } from "./recording.js";
import { Recordings } from "./recordings.js";
import { RoomView } from "./room.js";
import { Rooms } from "./rooms.js";
import { Settings } from "./settings.js";

const POLL_MS = 1000;
const THEME = "playfield-console-theme";
const LINKS = [
  ["", "Rooms"],
  ["recordings", "Recordings"],
  ["playground", "Playground"],
  ["settings", "Settings"],
];

export function App() {
  const hash = useHash();
  const { value: node, error, at, again } = usePolled(api.node, POLL_MS, "node");
  const samples = useSamples(node);
  // Too many tokens were tried (429): who was let in before is soon let in again.
  if (error?.status === 401 || (error?.status === 429 && at === 0))
    return <Token refusal={error} again={again} />;
  const [view = "", id, ...more] = parts(hash);
  const [player] = more;
  return (
    <>
      <header>
        <a class="brand" href="#">
          Playfield
        </a>
        <nav aria-label="Views">
          {LINKS.map(([to, text]) => (
            <a href={`#${to}`} aria-current={isOf(view, to) ? "page" : undefined}>
              {text}
            </a>
          ))}
        </nav>
        <Health node={node} error={error} at={at} />
        <Theme />
      </header>
      <main>
        {view === "" && id === undefined ? (
          <Rooms types={node?.types ?? []} samples={samples} />
        ) : view === "room" && id ? (
          <RoomView id={id} seen={player ? Number(player) : null} key={`${id}/${player}`} />
        ) : view === "recordings" ? (
          <Recordings find={id ?? ""} key={id} />
        ) : view === "recording" && id && player ? (
          <RecordingView
            file={id}
            room={player}
            input={numberOr(more[1])}
            seen={numberOr(more[2])}
            key={`${id}/${player}`}
          />
        ) : view === "playground" ? (
          <Playground node={node} id={id ?? ""} name={player ?? "operator"} key={`${id}/${player}`} />
        ) : view === "settings" && id === undefined ? (
          <Settings node={node} />
        ) : (
          <Nothing hash={hash} key={hash} />
        )}
      </main>
    </>
  );
}

/** A recording is one of the recordings. */
const isOf = (view: string, to: string): boolean =>
  view === to || (view === "recording" && to === "recordings");

const numberOr = (text: string | undefined): number | null => (text ? Number(text) : null);

/** What is between the slashes. What can't be decoded is no view. */
function parts(hash: string): string[] {
  try {
    return hash.split("/").map(decodeURIComponent);
  } catch {
    return ["%"];
  }
}

function Nothing({ hash }: { hash: string }) {
  return (
    <section aria-label="Nothing here">
      <Heading title="Nothing here" />
      <p>
        The console has no view{" "}
        <code>
          <bdi>#{hash.slice(0, 100)}</bdi>
        </code>
        . The address may be cut off.
      </p>
      <p>
        <a href="#">Show all rooms</a>
      </p>
    </section>
  );
}

interface HealthProps {
  node: api.Overview | null;
  error: api.ApiError | null;
  at: number;
}

function Health({ node, error, at }: HealthProps) {
  const [kind, text] = error
    ? ["bad", `${error.message}${at > 0 ? ` Last answer at ${clock(at)}.` : ""}`]
    : !node
      ? ["", "Connecting…"]
      : node.healthy
        ? ["good", `Healthy · ${shards(node)} · ${node.version}`]
        : ["bad", "A shard is stuck or has failed: see the node's log."];
  return (
    <p class={`health ${kind}`} role="status">
      {text}
    </p>
  );
}

const clock = (at: number): string => new Date(at).toLocaleTimeString();

const shards = ({ shards: { length } }: api.Overview): string =>
  length === 1 ? "1 shard" : `${length} shards`;

function Theme() {
  const [theme, setTheme] = useState(localStorage.getItem(THEME) ?? "system");
  useEffect(() => {
    localStorage.setItem(THEME, theme);
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  return (
    <label class="theme">
      Theme{" "}
      <select value={theme} onChange={(event) => setTheme(event.currentTarget.value)}>
        <option value="system">System</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}

function Token({ refusal, again }: { refusal: api.ApiError; again: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  // Without a token, there was none to be wrong.
  const wasSent = api.hasToken();
  const [asked, setAsked] = useState<api.ApiError | null>(null);
  const isAsking = asked === refusal;
  useEffect(() => {
    document.title = "Token · Playfield console";
    input.current?.focus();
  }, []);
  useEffect(() => {
    if (asked) input.current?.select();
    setAsked(null);
  }, [refusal]);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    api.rememberToken(input.current!.value.trim());
    // What is shown next has the focus.
    navigates();
    setAsked(refusal);
    again();
  };
  return (
    <main class="token">
      <form onSubmit={submit}>
        <h1>Playfield console</h1>
        <p id="token-help">
          This console is protected. Its token is the node's setting <code>console_token</code>.
        </p>
        <label>
          Token
          <input
            ref={input}
            name="token"
            type="password"
            autoComplete="current-password"
            aria-describedby="token-help"
            aria-invalid={wasSent && !isAsking}
            required
          />
        </label>
        <button disabled={isAsking}>{isAsking ? "Asking the node…" : "Open"}</button>
        <p class="bad" role="alert">
          {wasSent && !isAsking ? sentence(refusal.message) : ""}
        </p>
      </form>
    </main>
  );
}

const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
