import { Client } from "playfield";

// In development Vite serves the page, and the node is beside it.
const url = import.meta.env.DEV ? `ws://${location.hostname}:7350` : "/";

export const client = new Client(url, { name: `Player ${Math.ceil(Math.random() * 99)}` });
