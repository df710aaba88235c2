import { Client } from "playfield";

// In development Vite serves the page, and the node is beside it: `playfield dev` says at which port.
const port = import.meta.env.VITE_PLAYFIELD_PORT ?? 7350;
const url = import.meta.env.DEV ? `ws://${location.hostname}:${port}` : "/";

export const client = new Client(url, {
  name: `Player ${Math.ceil(Math.random() * 99)}`,
  again: true,
});
