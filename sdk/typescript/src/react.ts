/**
 * Rooms in React components, which render only when what they show has changed.
 *
 * @module playfield/react
 */

import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import type { Client } from "./client.js";
import type { AnyRoom, How, Room, RoomTypes, Status } from "./types.js";

export interface RoomHandle<T extends RoomTypes> {
  /** The room, once it is joined and its state is there; `null` after it has ended. */
  room: Room<T> | null;
  /** Why there is no room, if there will be none. */
  error: Error | null;
}

/**
 * Joins a room while the component is there, and leaves it after that.
 *
 * @param roomType The room type. Without one, the component is in no room.
 * @param how Which room. The component joins another one if `id`, `key`, `create`, `code`, `private`
 *   or the JSON of `options` is another.
 */
export function useRoom<T extends RoomTypes = AnyRoom>(
  client: Client, roomType: string | null, how: How<T> = {},
): RoomHandle<T> {
  const [handle, setHandle] = useState<RoomHandle<T>>({ room: null, error: null });
  const which = JSON.stringify(how);
  useEffect(() => {
    if (roomType === null) return;
    let isGone = false;
    const set = (handle: RoomHandle<T>): void => {
      if (!isGone) setHandle(handle);
    };
    const room = client.connection.join<T>(roomType, {}, how);
    room.joined.then(
      () => set({ room, error: null }),
      (error) => set({ room: null, error }),
    );
    room.onLeft((code, text) => set({ room: null, error: Object.assign(new Error(text), { code }) }));
    return () => {
      isGone = true;
      setHandle({ room: null, error: null });
      room.leave().catch(() => {});
    };
  }, [client, roomType, which]);
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
  room: Room<T> | null, selector: (state: T["state"]) => Selected,
  isEqual: (one: Selected, two: Selected) => boolean = isShallowEqual,
): Selected | undefined {
  const last = useRef<{ state: unknown; selector: unknown; selected: Selected } | null>(null);
  const subscribe = useCallback((changed: () => void) => room?.onState(changed) ?? (() => {}), [room]);
  const select = (): Selected | undefined => {
    const state = room?.state ?? null, known = last.current;
    if (state === null) return undefined;
    if (known && known.state === state && known.selector === selector) return known.selected;
    const next = selector(state);
    const selected = known && isEqual(known.selected, next) ? known.selected : next;
    last.current = { state, selector, selected };
    return selected;
  };
  return useSyncExternalStore(subscribe, select, select);
}

/** How the connection stands, for a page to show. */
export function useStatus(client: Client): Status {
  const subscribe = useCallback((changed: () => void) => client.onStatus(changed), [client]);
  const status = (): Status => client.status;
  return useSyncExternalStore(subscribe, status, status);
}
