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
  /** What its last regular sync took: ticks and timers, comparing, writing patches. */
  ticks_us: number;
  sync_us: number;
  patches_us: number;
  /** The most that it was late in the last one to two seconds. */
  late_us: number;
  syncs_missed: number;
  bytes_in: number;
  bytes_out: number;
  bytes_in_per_s: number;
  bytes_out_per_s: number;
}

export interface Seat {
  id: number;
  name: string;
  user: string | null;
  seat: string | null;
  connected: boolean;
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
  total: Record<string, number>;
  shards: Record<string, number>[];
  types: string[];
  limits: Limit[];
  settings: Setting[];
}

/** The node refused a request, or could not be reached: `status` is then 0. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    text: string,
  ) {
    super(text);
  }
}

const TOKEN = "playfield-console-token";

export const rememberToken = (token: string): void => sessionStorage.setItem(TOKEN, token);

async function call<T>(path: string, init: RequestInit = {}): Promise<T> {
  const headers: Record<string, string> = { "x-playfield-console": "1" };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.authorization = `Bearer ${token}`;
  let response: Response, text: string;
  try {
    response = await fetch(`/api/${path}`, { ...init, headers });
    text = await response.text();
  } catch {
    throw new ApiError(0, "The node can't be reached.");
  }
  if (response.ok) return JSON.parse(text) as T;
  let said = text;
  try {
    said = (JSON.parse(text) as { error: string }).error;
  } catch {
    // The text itself.
  }
  throw new ApiError(response.status, said);
}

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
export const rooms = (query: ListQuery): Promise<{ count: number; rooms: ListedRoom[] }> =>
  get(
    `rooms?${new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))}`,
  );
export const room = (id: string, viewer: number | null): Promise<InspectedRoom> =>
  get(`rooms/${encodeURIComponent(id)}?messages${viewer === null ? "" : `&as=${viewer}`}`);
export const act = (id: string, action: string, body: unknown): Promise<unknown> =>
  post(`rooms/${encodeURIComponent(id)}/${action}`, body);
