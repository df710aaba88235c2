/** Joining with promises. */

import { patient } from "./links.js";
import type {
  AnyRoom,
  ConnectHow,
  ConnectionCallbacks,
  How,
  ListedRoom,
  ListHow,
  Patience,
  Room,
  RoomsConnection,
  RoomTypes,
  Status,
} from "./types.js";

/** How to connect, and as whom. All are optional. */
export interface ClientHow extends Omit<ConnectHow, "url"> {
  /** The player's display name. */
  name?: string;
  /** The connection's callbacks. */
  on?: ConnectionCallbacks;
}

/** Rooms by promises, over a connection. */
export class RoomsClient<C extends RoomsConnection> {
  /** The connection: what it measures, and what it can do beside rooms. */
  readonly connection: C;

  constructor(connection: C) {
    this.connection = connection;
  }

  get status(): Status {
    return this.connection.status;
  }

  /** Calls a function when `status` has changed. Returns one that removes it. */
  onStatus(listener: (status: Status, text: string) => void): () => void {
    return this.connection.onStatus(listener);
  }

  /**
   * Joins a room that exists: one with a key.
   *
   * @throws {PlayfieldError} With the node's reason as its `code`.
   */
  join<T extends RoomTypes = AnyRoom>(
    roomType: string,
    key: string,
    how: Patience = {},
  ): Promise<Room<T, C>> {
    return this.enter(roomType, { key, create: false }, how);
  }

  /** Joins a room by its id, or by a reservation or a ticket. */
  joinById<T extends RoomTypes = AnyRoom>(id: string, how: Patience = {}): Promise<Room<T, C>> {
    return this.enter("", { id }, how);
  }

  /** Joins a room of the type that is not full, or that has the key, or creates it. */
  joinOrCreate<T extends RoomTypes = AnyRoom>(
    roomType: string, { key, options, ...how }: Pick<How<T>, "key" | "options"> & Patience = {},
  ): Promise<Room<T, C>> {
    return this.enter(roomType, { key, options }, how);
  }

  /** Creates a room. */
  create<T extends RoomTypes = AnyRoom>(
    roomType: string, { timeoutMs, signal, ...how }: Omit<How<T>, "id" | "create"> & Patience = {},
  ): Promise<Room<T, C>> {
    return this.enter(roomType, { ...how, create: true }, { timeoutMs, signal });
  }

  /** The rooms that the node lists. */
  list(how?: ListHow & Patience): Promise<ListedRoom[]> {
    return this.connection.list(how);
  }

  /** Says goodbye, and so leaves all rooms. */
  close(): void {
    this.connection.close();
  }

  private enter<T extends RoomTypes>(
    roomType: string,
    how: How<T>,
    patience: Patience,
  ): Promise<Room<T, C>> {
    return patient(patience, (resolve, reject) => {
      const room = this.connection.join<T>(roomType, {}, how);
      room.joined.then(resolve, reject);
      return () => void room.leave().catch(() => {});
    });
  }
}
