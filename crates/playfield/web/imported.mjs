// The client as a module. Node takes `playfield.js` for a script, by its name.

import { readFileSync } from "node:fs";

const source = readFileSync(new URL("./playfield.js", import.meta.url), "utf8");
export const playfield = await import(`data:text/javascript,${encodeURIComponent(source)}`);
