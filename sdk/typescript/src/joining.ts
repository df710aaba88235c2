/** Joining with promises. */

import { type Core, patient } from "./links.js";
import type {
  AnyRoom,
  ConnectHow,
  ConnectionCallbacks,
  Current,
  How,
  ListedRoom,
  ListHow,
  JoinHow,
  Patience,
  Room,
  RoomsConnection,
  RoomTypes,
  Status,
  TypeName,
} from "./types.js";

/** How to connect, and as whom. All are optional. */
export interface ClientHow extends Omit<ConnectHow, "url"> {
  /** The player's display name. */
  name?: string;
  /** The connection's callbacks. */
  on?: ConnectionCallbacks;
  /** What `again` is in a join that does not say. `false` without it. */
  again?: boolean;
}

/** Rooms by promises, over a connection. */
export class RoomsClient<C extends RoomsConnection> {
  /** The connection: what it measures, and what it can do beside rooms. */
  readonly connection: C;

  constructor(connection: C, private readonly again?: boolean) {
    this.connection = connection;
  }

  /** How the connection stands: a `Status`. */
  get status(): Current<Status> {
    return this.connection.status;
  }

  /** Calls a function when `status`, or why it is so, has changed. Returns one that removes it. */
  onStatus(listener: (status: Status, text: string) => void): () => void {
    return this.connection.onStatus(listener);
  }

  /**
   * Joins a room that exists: one with a key.
   *
   * @throws {PlayfieldError} With the node's reason as its `code`.
   */
  join<T extends RoomTypes = AnyRoom>(
    roomType: TypeName<T>,
    key: string,
    how: JoinHow = {},
  ): Promise<Room<T, C>> {
    return this.enter(roomType, { key, create: false }, how);
  }

  /** Joins a room by its id, or by a reservation or a ticket. */
  joinById<T extends RoomTypes = AnyRoom>(id: string, how: JoinHow = {}): Promise<Room<T, C>> {
    return this.enter("", { id }, how);
  }

  /** Joins a room of the type that is not full, or that has the key, or creates it. */
  joinOrCreate<T extends RoomTypes = AnyRoom>(
    roomType: TypeName<T>, { key, options, ...how }: Pick<How<T>, "key" | "options"> & JoinHow = {},
  ): Promise<Room<T, C>> {
    return this.enter(roomType, { key, options }, how);
  }

  /** Creates a room. */
  create<T extends RoomTypes = AnyRoom>(
    roomType: TypeName<T>, how: Omit<How<T>, "id" | "create"> & JoinHow = {},
  ): Promise<Room<T, C>> {
    return this.enter(roomType, { ...how, create: true }, how);
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
    patience: JoinHow,
  ): Promise<Room<T, C>> {
    return patient(patience, (resolve, reject) => {
      const again = patience.again ?? this.again;
      const room = (this.connection as unknown as Core).join<T>(roomType, { ...how, again });
      room.joined.then(resolve, reject);
      return () => void room.leave().catch(() => {});
    });
  }
}
