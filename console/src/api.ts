/** The node's interface for this page: crates/console/src/api.rs. */

export interface Summary {
  players: number;
  capacity: number;
  reserved: number;
  locked: boolean;
  private: boolean;
  closing: boolean;
  key: string | null;
  metadata: Record<string, string>;
}

export interface ListedRoom extends Summary {
  id: string;
  type: string;
  shard: number;
  /** `null` if the shard did not say in time. */
  load: Load | null;
}

/** What a room takes. */
export interface Load {
  /** The longest sync in the last five to ten seconds; `null` for a room at rest. */
  longest: Cost | null;
  /** The most that it was late in the last one to two seconds. */
  late_us: number;
  syncs_missed: number;
  bytes_in: number;
  bytes_out: number;
  bytes_in_per_s: number;
  bytes_out_per_s: number;
}

/** What a sync took: ticks and timers before it, comparing, writing patches. */
export interface Cost {
  ticks_us: number;
  sync_us: number;
  patches_us: number;
}

export interface Seat {
  id: number;
  name: string;
  user: string | null;
  seat: string | null;
  connected: boolean;
}

export interface FoundPlayer extends Seat {
  room: string;
  type: string;
}

export interface FoundPlayers {
  players: FoundPlayer[];
  more: boolean;
  /** Some shards did not answer. */
  complete: boolean;
}

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export interface InspectedRoom extends Summary {
  id: string;
  type: string;
  version: number;
  age_ms: number;
  tick_hz: number;
  sync_hz: number;
  load: Load;
  /** True while the room is recorded in a file; `null` if it can't be. */
  recording: boolean | null;
  /** The inputs go into the journal, which is listed with the recordings. */
  journaled: boolean;
  seats: Seat[];
  state: Json;
  view: Json;
  messages: Message[];
}

/** A message that went into a room or out of it. */
export interface Message {
  number: number;
  at_ms: number;
  player: number;
  direction: "in" | "out";
  kind: "send" | "request" | "reply" | "event" | "error";
  name: string | number | null;
  request: number | null;
  value: Json;
}

/** A place in a recording. */
export interface Position {
  /** How many inputs are before. */
  input: number;
  tick: number;
  at_ms: number;
  /** Set on a moment where this build behaves differently, so the room may have differed. */
  differs?: boolean;
}

/** A file in the folder of recordings. What it says is missing if it can't be read. */
export interface RecordingFile {
  file: string;
  bytes: number;
  changed_ms: number;
  /** Why the node does not play it, and what does. */
  too_large: string | null;
  error?: string;
  room?: string;
  type?: string;
  key?: string | null;
  began_ms?: number;
  why?: string;
  length_ms?: number | null;
  end?: string | null;
}

/** A recording of a room. */
export interface Recording {
  room: string;
  type: string;
  key: string | null;
  build: string;
  began_ms: number;
  why: string;
  bytes: number;
  end: { failed: boolean; why: string } | null;
  fault: string | null;
  first: Position;
  last: Position;
  gaps: { to: Position; why: string }[];
  other_schema: boolean;
}

/** A part of a recording, as it runs again. */
export interface Excerpt {
  /** The moment that was asked for. */
  input: number;
  /** `null` where inputs are missing. */
  begin: (Position & { state: Json; view: Json; seats: Seat[] }) | null;
  frames: Frame[];
  /** The recording ends with them. */
  over: boolean;
  difference: Difference | null;
  verified: boolean;
  other_type: boolean;
}

/** Inputs, and what they changed. */
export interface Frame extends Position {
  inputs: Input[];
  more_inputs: number;
  messages: Message[];
  changes: Change[];
  view_changes: Change[];
  gap: string | null;
  error: boolean;
  /** Errors that reached no player. */
  unheard: string[];
  /** If they are others than before. */
  seats?: Seat[];
}

export interface Input {
  kind: string;
  player: number | null;
  text: string;
  /** The number of the message that it is. */
  message: number | null;
}

export interface Change {
  path: (string | number)[];
  kind: "entered" | "left" | "changed" | "moved";
  from?: number;
  old?: Json;
  new?: Json;
}

/** The place where a room differs from its recording. */
export interface Difference {
  same_until: Position;
  position: Position;
  input: string | null;
  fields: [string, string, string][];
  text: string;
}

export interface Search {
  from: number;
  back: boolean;
  for: "input" | "error" | "internal" | "change" | "difference";
  path?: string;
  player?: number | null;
  as?: number | null;
}

export interface Found {
  found: Position | null;
  /** Nothing up to here: it goes on from so many inputs. */
  until?: number;
  difference?: Difference;
}

/** What a room sent to a few players, by field. */
export interface Profile {
  players: number;
  /** How many syncs the room had, and how many of them were counted. */
  syncs: number;
  counted: number;
  lasted_ms: number;
  room_us: number;
  profile_us: number;
  snapshots: FieldCounts;
  patches: FieldCounts;
  fields: FieldProfile[];
  /** Messages of all players, and events to them. */
  messages: MessageProfile[];
  events: MessageProfile[];
}

export interface MessageProfile {
  name: string;
  count: number;
  /** Bytes of events for several players, and all others. */
  shared: number;
  own: number;
  /** The time that messages took. */
  us: number;
}

export interface FieldProfile {
  /** With `*` for keys and indices; empty for the root. */
  path: string;
  type: string;
  snapshots: FieldCounts;
  patches: FieldCounts;
  savings: Saving[];
}

export interface FieldCounts {
  writes: number;
  /** Bytes that are the same for all players, and bytes for one player. */
  shared: number;
  own: number;
}

/** The bytes that another type, or the policy `owner`, would save. */
export interface Saving {
  to: string;
  snapshots: number;
  patches: number;
}

export interface Setting {
  name: string;
  help: string;
  value: string;
  default: string;
}

export interface Limit {
  name: string;
  max: number;
  /** `null` if the limit is one of each client or address. */
  now: number | null;
  /** How often it was reached, if that is counted. */
  reached: { counter: string; times: number } | null;
}

export interface Overview {
  version: string;
  healthy: boolean;
  rooms_address: string | null;
  tls: boolean;
  /** The sums of the shards' counters, and those of the node itself. */
  total: Record<string, number>;
  shards: Record<string, number>[];
  types: string[];
  limits: Limit[];
  settings: Setting[];
}

/** The node refused a request, or gave no answer: `status` is then 0. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    text: string,
  ) {
    super(text);
  }
}

/** A shard has 5 s to answer. */
const TIMEOUT_MS = 10_000;
const TOKEN = "playfield-console-token";

export const hasToken = (): boolean => sessionStorage.getItem(TOKEN) !== null;
export const rememberToken = (token: string): void => sessionStorage.setItem(TOKEN, token);

async function call<T>(
  path: string,
  init: RequestInit = {},
  timeoutMs = TIMEOUT_MS,
): Promise<T> {
  const headers: Record<string, string> = { "x-playfield-console": "1" };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.authorization = `Bearer ${token}`;
  let response: Response, text: string;
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    response = await fetch(`/api/${path}`, { ...init, headers, signal });
    text = await response.text();
  } catch (error) {
    const isSlow = error instanceof DOMException && error.name === "TimeoutError";
    throw new ApiError(
      0,
      isSlow
        ? `The node has not answered within ${timeoutMs / 1000} s.`
        : "The node can't be reached.",
    );
  }
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    const from = `${response.status} ${response.statusText}`.trim();
    throw new ApiError(0, `The answer is not the node's: ${from}. A proxy may have sent it.`);
  }
  if (response.ok) return answer as T;
  throw new ApiError(response.status, (answer as { error: string }).error);
}

/** The parts of a query that have a value. A flag is there or not. */
const query = (of: Record<string, string | number | boolean | null | undefined>): string => {
  const given = Object.entries(of).filter(([, value]) => value != null && value !== false);
  return `${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
};

const get = <T>(path: string): Promise<T> => call<T>(path);
const post = (path: string, body: unknown): Promise<unknown> =>
  call(path, { method: "POST", body: JSON.stringify(body) });

export interface ListQuery {
  type: string;
  find: string;
  order: string;
  skip: number;
  limit: number;
}

export const node = (): Promise<Overview> => get("node");
export const schema = (type: string): Promise<unknown> => get(`types/${encodeURIComponent(type)}`);
export const rooms = (of: ListQuery): Promise<{ count: number; rooms: ListedRoom[] }> =>
  get(`rooms?${query({ ...of })}`);
export const players = (find: string): Promise<FoundPlayers> =>
  get(`players?${query({ find, limit: 10 })}`);
export const room = (id: string, viewer: number | null): Promise<InspectedRoom> =>
  get(`rooms/${encodeURIComponent(id)}?messages${viewer === null ? "" : `&as=${viewer}`}`);
export const profile = (id: string, seconds: number): Promise<Profile> =>
  call(
    `rooms/${encodeURIComponent(id)}/profile?seconds=${seconds}`,
    {},
    seconds * 1000 + TIMEOUT_MS,
  );
export const act = (id: string, action: string, body: unknown): Promise<unknown> =>
  post(`rooms/${encodeURIComponent(id)}/${action}`, body);
export const recordings = (
  find: string,
  limit: number,
): Promise<{ count: number; recordings: RecordingFile[] }> =>
  get(`recordings?${query({ find, limit })}`);
const recorded = (file: string, room: string): string =>
  `recordings/${encodeURIComponent(file)}/${encodeURIComponent(room)}`;
export const recording = (file: string, room: string): Promise<Recording> =>
  get(recorded(file, room));
export const excerpt = (
  file: string,
  room: string,
  of: Record<string, number | null>,
): Promise<Excerpt> => get(`${recorded(file, room)}/frames?${query(of)}`);
export const fork = async (file: string, room: string, input: number): Promise<string> =>
  ((await post(`${recorded(file, room)}/fork`, { input })) as { room: string }).room;
export const search = (file: string, room: string, of: Search): Promise<Found> =>
  get(`${recorded(file, room)}/search?${query({ ...of })}`);
