import type { Room } from "playfield";
import { useRoom, useRoomState, useStatus } from "playfield/react";
import { useState } from "react";
import { client } from "./client";
import type { Counter } from "./types/counter";

type CounterRoom = { room: Room<Counter> | null };

export function App() {
  const { room, error } = useRoom<Counter>(client, "counter");
  const connection = useStatus(client), stay = useStatus(room);
  return (
    <main>
      <Value room={room} />
      <Buttons room={room} />
      <Players room={room} />
      <p className="status">
        {error?.message ?? (room ? `${stay} ${room.reason.message}` : connection)}
      </p>
    </main>
  );
}

/** Renders only when the number has changed. */
function Value({ room }: CounterRoom) {
  const value = useRoomState(room, (state) => state.value);
  const last = useRoomState(room, (state) => state.last);
  return (
    <>
      <h1>{value === undefined ? "–" : String(value)}</h1>
      <p>{last && `last changed by ${last}`}</p>
    </>
  );
}

function Buttons({ room }: CounterRoom) {
  const [said, setSaid] = useState("");
  const add = (step: number) => () =>
    room?.request("Add", { step }).then(() => setSaid(""), (error: Error) => setSaid(error.message));
  return (
    <p>
      <button onClick={add(-1)}>−1</button> <button onClick={add(1)}>+1</button> {said}
    </p>
  );
}

function Players({ room }: CounterRoom) {
  const names = useRoomState(room, (state) => Object.values(state.players)) ?? [];
  return <p>{names.join(", ")}</p>;
}
