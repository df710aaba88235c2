/** Connecting and joining with promises. */

import { connect } from "./connection.js";
import { patient } from "./links.js";
import type {
  AnyRoom,
  ConnectHow,
  Connection,
  ConnectionCallbacks,
  How,
  ListedRoom,
  ListHow,
  Patience,
  Room,
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

/**
 * A client of one node, which connects at once, and again by itself.
 *
 * @example
 * const client = new Client("wss://game.example", { name: "Ann", token });
 * const room = await client.joinOrCreate<Duel>("duel");
 * room.onChange("players.*", ({ kind, path, value }) => draw(kind, path[1], value));
 * const drawn = await room.request("Draw", { count: 2 }, { timeoutMs: 5000 });
 */
export class Client {
  /** The connection, for channels, devices and what it measures. */
  readonly connection: Connection;

  /**
   * @param url The node: `wss://…`, `https://…`, or in a page a path at the host that served it.
   */
  constructor(url: string, { name = "", on = {}, format = "packed", ...how }: ClientHow = {}) {
    this.connection = connect(name, on, { ...how, format, url });
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
  ): Promise<Room<T>> {
    return this.enter(roomType, { key, create: false }, how);
  }

  /** Joins a room by its id, or by a reservation or a ticket. */
  joinById<T extends RoomTypes = AnyRoom>(id: string, how: Patience = {}): Promise<Room<T>> {
    return this.enter("", { id }, how);
  }

  /** Joins a room of the type that is not full, or that has the key, or creates it. */
  joinOrCreate<T extends RoomTypes = AnyRoom>(
    roomType: string, { key, options, ...how }: Pick<How<T>, "key" | "options"> & Patience = {},
  ): Promise<Room<T>> {
    return this.enter(roomType, { key, options }, how);
  }

  /** Creates a room. */
  create<T extends RoomTypes = AnyRoom>(
    roomType: string, { timeoutMs, signal, ...how }: Omit<How<T>, "id" | "create"> & Patience = {},
  ): Promise<Room<T>> {
    return this.enter(roomType, { ...how, create: true }, { timeoutMs, signal });
  }

  /** The rooms that the node lists. */
  list(how: ListHow & Patience = {}): Promise<ListedRoom[]> {
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
  ): Promise<Room<T>> {
    return patient(patience, (resolve, reject) => {
      const room = this.connection.join<T>(roomType, {}, how);
      room.joined.then(resolve, reject);
      return () => void room.leave().catch(() => {});
    });
  }
}
