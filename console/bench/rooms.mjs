// Rooms at rest, for the benchmarks.

export const ROOMS = 1000,
  PLAYERS = 30;

/** Creates the rooms, and has each client join them all. */
export async function filled(served) {
  const first = served.client("player 1", "packed"),
    ids = [];
  while (ids.length < ROOMS) {
    const made = await Promise.all(Array.from({ length: 50 }, () => first.create("counter")));
    ids.push(...made.map(({ id }) => id));
  }
  for (let number = 2; number <= PLAYERS; number++) {
    const client = served.client(`player ${number}`, "packed");
    for (let at = 0; at < ROOMS; at += 100) {
      await Promise.all(ids.slice(at, at + 100).map((id) => client.joinById(id)));
    }
  }
  return ids;
}
