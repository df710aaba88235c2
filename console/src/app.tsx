/** The frame: the node's health, what is shown, the token, light and dark. */

import { useEffect, useState } from "preact/hooks";

import * as api from "./api.js";
import { Charts } from "./charts.js";
import { useHash, usePolled } from "./hooks.js";
import { Playground } from "./playground.js";
import { RoomView } from "./room.js";
import { Rooms } from "./rooms.js";
import { Settings } from "./settings.js";

const POLL_MS = 1000;
const THEME = "playfield-console-theme";

export function App() {
  const [hash, go] = useHash();
  const { value: node, error, again } = usePolled(api.node, POLL_MS, "node");
  const [view = "", argument = ""] = hash.split("/");
  if (error?.status === 401) return <Token text={error.message} again={again} />;
  return (
    <>
      <header>
        <h1>Playfield</h1>
        <nav aria-label="Views">
          {[
            ["", "Rooms"],
            ["playground", "Playground"],
            ["settings", "Settings"],
          ].map(([to, text]) => (
            <a href={`#${to}`} aria-current={view === to ? "page" : undefined}>
              {text}
            </a>
          ))}
        </nav>
        <Health node={node} error={error} />
        <Theme />
      </header>
      <main>
        {node && (view === "" || view === "settings") && <Charts node={node} />}
        {view === "" && (
          <Rooms types={node?.types ?? []} open={(id) => go(`room/${encodeURIComponent(id)}`)} />
        )}
        {view === "room" && <RoomView id={decodeURIComponent(argument)} key={argument} />}
        {node && view === "playground" && (
          <Playground node={node} id={decodeURIComponent(argument)} />
        )}
        {node && view === "settings" && <Settings node={node} />}
      </main>
    </>
  );
}

function Health({ node, error }: { node: api.Overview | null; error: api.ApiError | null }) {
  if (error)
    return (
      <p class="health bad" role="status">
        {error.message}
      </p>
    );
  if (!node)
    return (
      <p class="health" role="status">
        Connecting…
      </p>
    );
  if (!node.healthy)
    return (
      <p class="health bad" role="status">
        A shard is stuck or has failed.
      </p>
    );
  return (
    <p class="health good" role="status">
      Healthy · {node.shards.length} shards · {node.version}
    </p>
  );
}

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

function Token({ text, again }: { text: string; again: () => void }) {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const token = new FormData(event.currentTarget as HTMLFormElement).get("token");
    api.rememberToken(String(token));
    again();
  };
  return (
    <form class="token" onSubmit={submit}>
      <h1>Playfield</h1>
      <label>
        The console's token <input name="token" type="password" autoFocus required />
      </label>
      <button>Open</button>
      <p role="status">{text}</p>
    </form>
  );
}
