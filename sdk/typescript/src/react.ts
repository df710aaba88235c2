/**
 * Rooms in React components, which render only when what they show has changed.
 *
 * @module playfield/react
 */

import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { PlayfieldError } from "./error.js";
import { toJson } from "./format.js";
import type { RoomsClient } from "./joining.js";
import type { Core } from "./links.js";
import type { AnyRoom, How, Room, RoomsConnection, RoomTypes, TypeName } from "./types.js";

/** A client of `playfield`, or of `playfield/rooms`. */
type Client = RoomsClient<RoomsConnection>;

export interface RoomHandle<T extends RoomTypes> {
  /**
   * The room, once it is joined and its state is there; `null` after the stay has ended for good.
   * While it is joined again, it is here with its last state.
   */
  room: Room<T> | null;
  /** Why there is no room, if there will be none. */
  error: Error | null;
}

/**
 * The rooms that components have just let go, by what was asked for. React lets go and takes again
 * in one turn, in strict mode and when a page is reloaded while it runs: the player keeps the seat.
 */
const released = new WeakMap<Client, Set<{ key: string; room: Room<any> }>>();

/** Leaves a room in the next turn, unless a component takes it. Returns what leaves it now. */
function release(client: Client, key: string, room: Room<any>): () => void {
  const all = released.get(client) ?? new Set(), own = { key, room };
  released.set(client, all.add(own));
  const leave = (): void => {
    if (all.delete(own)) room.leave().catch(() => {});
  };
  setTimeout(leave);
  return leave;
}

/** Takes back a room that was released in this turn, if there is one. */
function takeBack(client: Client, key: string): Room<any> | undefined {
  const all = released.get(client), own = [...(all ?? [])].find((other) => other.key === key);
  if (own) all!.delete(own);
  return own?.room;
}

/**
 * Joins a room while the component is there, and leaves it after that. It comes back by itself, as
 * with `again: true`, unless `how.again` is `false`.
 *
 * @param roomType The room type. Without one, the component is in no room.
 * @param how Which room. The component joins another one if `id`, `key`, `create`, `code`,
 *   `private` or the JSON of `options` is another.
 */
export function useRoom<T extends RoomTypes = AnyRoom>(
  client: Client, roomType: TypeName<T> | null, how: How<T> = {},
): RoomHandle<T> {
  const [handle, setHandle] = useState<RoomHandle<T>>({ room: null, error: null });
  const key = toJson([roomType, how]);
  const last = useRef<{ key: string; leave(): void } | null>(null);
  useEffect(() => {
    // A component that goes to another room leaves this one first.
    if (last.current?.key !== key) last.current?.leave();
    if (roomType === null) return;
    let isOver = false;
    const kept = takeBack(client, key), isKept = kept !== undefined && !kept.left;
    const join = (): Room<any, any> =>
      (client.connection as unknown as Core).join<T>(roomType, { again: true, ...how });
    const room: Room<T> = isKept ? kept : join();
    if (isKept && room.state !== null) setHandle({ room, error: null });
    // A room that has ended says so twice.
    const over = (error: PlayfieldError): void => {
      if (isOver) return;
      isOver = true;
      setHandle({ room: null, error });
    };
    room.joined.then(() => isOver || setHandle({ room, error: null }), over);
    const forget = room.onLeft((code, text) => over(new PlayfieldError(code, text)));
    return () => {
      isOver = true;
      forget();
      setHandle({ room: null, error: null });
      if (!room.left) last.current = { key, leave: release(client, key, room) };
    };
  }, [client, key]);
  return handle;
}

const isShallowEqual = (one: unknown, two: unknown): boolean => {
  if (Object.is(one, two)) return true;
  if (typeof one !== "object" || typeof two !== "object" || !one || !two) return false;
  const names = Object.keys(one);
  const at = (value: object, name: string): unknown => (value as Record<string, unknown>)[name];
  return names.length === Object.keys(two).length &&
    names.every((name) => Object.hasOwn(two, name) && Object.is(at(one, name), at(two, name)));
};

/**
 * A part of a room's state. The component renders again only when that part is another.
 *
 * @param room The room; without one, the result is `undefined`.
 * @param selector Selects the part. It may make an array or an object of parts: that is the same as
 *   long as the parts are.
 * @param isEqual Whether two selected parts are the same.
 */
export function useRoomState<T extends RoomTypes, Selected>(
  room: Room<T, RoomsConnection> | null, selector: (state: T["state"]) => Selected,
  isEqual: (one: Selected, two: Selected) => boolean = isShallowEqual,
): Selected | undefined {
  const last = useRef<{ state: unknown; selector: unknown; selected: Selected } | null>(null);
  const subscribe = useCallback(
    (changed: () => void) => room?.onState(changed) ?? (() => {}),
    [room],
  );
  const select = (): Selected | undefined => {
    const state = room?.state ?? null, known = last.current;
    if (state === null) return undefined;
    if (known && known.state === state && known.selector === selector) return known.selected;
    const selected = selector(state);
    if (!known) {
      last.current = { state, selector, selected };
      return selected;
    }
    // Each patch comes by here for each component: nothing is made.
    known.state = state;
    known.selector = selector;
    if (!isEqual(known.selected, selected)) known.selected = selected;
    return known.selected;
  };
  return useSyncExternalStore(subscribe, select, select);
}

/** What has a status: a client, or a room. */
interface HasStatus<S> {
  readonly status: string;
  onStatus(listener: (status: S, why: any) => void): () => void;
}

/** How a client, or a room, stands, for a page to show; without one, the result is `undefined`. */
export function useStatus<S extends string>(of: HasStatus<S>): S;
export function useStatus<S extends string>(of: HasStatus<S> | null): S | undefined;
export function useStatus<S extends string>(of: HasStatus<S> | null): S | undefined {
  const subscribe = useCallback(
    (changed: () => void) => of?.onStatus(changed) ?? (() => {}), [of],
  );
  const status = (): S | undefined => of?.status as S | undefined;
  return useSyncExternalStore(subscribe, status, status);
}
