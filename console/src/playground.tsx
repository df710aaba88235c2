/** A client of the node: joins any room, sends any message, and watches its copy. */

import { useEffect, useRef, useState } from "preact/hooks";

import { Client, type Room } from "../../sdk/typescript/src/index.js";
import * as api from "./api.js";
import type { Json, Overview } from "./api.js";
import { ValueForm } from "./fields.js";
import { Heading } from "./heading.js";
import { useFocusKept } from "./hooks.js";
import { useSchema } from "./room.js";
import { initial, type Schema } from "./schema.js";
import { Tree } from "./tree.js";

/** The lines of the log. */
const LINES_MAX = 200;

/** Where the rooms are: the console may be reached by another name than the node knows. */
function roomsUrl({ rooms_address: address, tls }: Overview): string {
  const port = address?.slice(address.lastIndexOf(":") + 1) ?? "";
  return `${tls ? "wss" : "ws"}://${location.hostname}:${port}/`;
}

interface Line {
  number: number;
  text: string;
}

interface PlaygroundProps {
  node: Overview | null;
  /** The room to join, or an empty text, and the name to join it by. */
  id: string;
  name: string;
}

export function Playground({ node, ...target }: PlaygroundProps) {
  return (
    <section aria-label="Playground" class="playground">
      <Heading title="Playground" />
      {node ? <Joined node={node} {...target} /> : <p>Waiting for the node…</p>}
    </section>
  );
}

function Joined({ node, id, name }: PlaygroundProps & { node: Overview }) {
  const [room, setRoom] = useState<Room | null>(null);
  const [type, setType] = useState("");
  const [state, setState] = useState<Json>(null);
  const [lines, setLines] = useState<Line[]>([]);
  const count = useRef(0);
  const client = useRef<Client | null>(null);
  const schema = useSchema(type || undefined);
  const say = (text: string): void =>
    setLines((lines) => [{ number: count.current++, text }, ...lines].slice(0, LINES_MAX));
  const leave = (): void => {
    client.current?.close();
    client.current = null;
    setRoom(null);
  };
  const view = useRef<HTMLDivElement>(null);
  useFocusKept(view);
  useEffect(() => leave, []);
  const join = (event: SubmitEvent): void => {
    event.preventDefault();
    leave();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string): string => String(form.get(name) ?? "");
    const made = new Client(text("url"), {
      name: text("name"),
      ...(text("token") ? { token: text("token") } : {}),
      reconnectTimeoutMs: 10_000,
    });
    client.current = made;
    made.onStatus((status, said) => say(status === said ? status : `${status}: ${said}`));
    const target = text("id");
    const joined = target ? made.joinById(target) : made.joinOrCreate(text("type"));
    joined.then(
      (room) => {
        setRoom(room);
        setState(room.state as Json);
        room.onState((state) => setState(state as Json));
        room.onLeft((code, said) => {
          say(`left, ${code}: ${said}`);
          setRoom(null);
        });
        say(`joined ${room.id} as player ${room.player}`);
      },
      (error: Error) => say(`refused: ${error.message}`),
    );
    if (!target) setType(text("type"));
    else
      void api.room(target, null).then(
        ({ type }) => setType(type),
        (error: Error) => say(error.message),
      );
  };
  useEffect(() => {
    if (!room || !schema) return;
    const stops = schema.events.map(({ name }) =>
      room.onEvent(name, (payload: unknown) => say(`event ${name} ${JSON.stringify(payload)}`)),
    );
    return () => stops.forEach((stop) => stop());
  }, [room, schema]);
  return (
    <div ref={view}>
      <form class="filter" onSubmit={join}>
        <label>
          Node <input name="url" defaultValue={roomsUrl(node)} size={28} />
        </label>
        <label>
          Name <input name="name" defaultValue={name} size={10} />
        </label>
        <label>
          Token <input name="token" type="password" size={10} />
        </label>
        <label>
          Type{" "}
          <select name="type">
            {node.types.map((type) => (
              <option>{type}</option>
            ))}
          </select>
        </label>
        <label>
          or room <input name="id" defaultValue={id} size={20} placeholder="id, or nothing" />
        </label>
        <button>Join</button>
        {room && (
          <button
            type="button"
            onClick={() => {
              void room.leave();
              leave();
              say("left");
            }}
          >
            Leave
          </button>
        )}
      </form>
      <div class="columns">
        <div>
          <h2>What happened</h2>
          <ul class="log" aria-label="What happened" aria-live="polite" tabIndex={0}>
            {lines.map(({ number, text }) => (
              <li key={number}>
                <bdi>{text.slice(0, 2000)}</bdi>
              </li>
            ))}
          </ul>
        </div>
        <div>
          <h2>The copy{room ? ` of player ${room.player}` : ""}</h2>
          {room ? (
            <Tree value={state} type={schema?.state} label="The copy" policies />
          ) : (
            <p class="dim">What the page has of the room, once it has joined.</p>
          )}
        </div>
        <div>
          <h2>Messages to send</h2>
          {room && schema ? (
            <Send room={room} schema={schema} say={say} />
          ) : (
            <p class="dim">Join a room.</p>
          )}
        </div>
      </div>
    </div>
  );
}

function Send({ room, schema, say }: { room: Room; schema: Schema; say: (text: string) => void }) {
  const [values, setValues] = useState<Record<string, Json>>({});
  if (!schema.messages.length) return <p>This room takes no messages.</p>;
  return (
    <>
      {schema.messages.map(({ name, type, reply }) => {
        const value = values[name] ?? initial(type);
        const submit = (event: SubmitEvent): void => {
          event.preventDefault();
          const begun = performance.now();
          room.request(name, value).then(
            (answer: unknown) => {
              const took = (performance.now() - begun).toFixed(1);
              say(`${name} → ${reply === "unit" ? "done" : JSON.stringify(answer)} (${took} ms)`);
            },
            (error: Error) => say(`${name} refused: ${error.message}`),
          );
        };
        return (
          <form class="message" key={name} onSubmit={submit}>
            <h3>{name}</h3>
            <ValueForm
              type={type}
              value={value}
              change={(value) => setValues({ ...values, [name]: value })}
            />
            <button>Send</button>
          </form>
        );
      })}
    </>
  );
}
