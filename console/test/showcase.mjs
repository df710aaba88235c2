// The showcase with a console, for tests and benchmarks.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

import { root } from "../../sdk/typescript/test/browser/chromium.mjs";
// As the SDK's own tests do: Node 20 has no WebSocket.
import WebSocket from "../../sdk/typescript/node_modules/ws/wrapper.mjs";
import { Client } from "../../sdk/typescript/dist/index.js";

/** Starts it, with limits that one program with many rooms does not reach. */
export async function showcase({ release = false, env = {} } = {}) {
  const node = spawn(
    "cargo",
    ["run", "--quiet", "--package", "playfield-showcase", ...(release ? ["--release"] : [])],
    {
      cwd: root,
      stdio: ["ignore", "pipe", "inherit"],
      env: {
        ...process.env,
        PLAYFIELD_LISTEN: "127.0.0.1:0",
        PLAYFIELD_CONSOLE: `127.0.0.1:${await freePort()}`,
        PLAYFIELD_LOG: "error",
        PLAYFIELD_LIMITS_SESSION_ROOMS_CREATED_PER_MINUTE: "100000",
        PLAYFIELD_LIMITS_ADDRESS_ROOMS_CREATED_PER_MINUTE: "100000",
        PLAYFIELD_LIMITS_ADDRESS_JOINS_PER_MINUTE: "100000",
        PLAYFIELD_LIMITS_SESSION_ROOMS: "1000",
        ...env,
      },
    },
  );
  const urls = [],
    clients = [];
  for await (const line of createInterface(node.stdout)) {
    const [url] = /http:\/\/\S+/.exec(line) ?? [];
    if (url) urls.push(url);
    if (urls.length === 2) break;
  }
  const [rooms, console] = urls;
  return {
    node,
    console,
    /** A client of its rooms. */
    client(name, format = "json") {
      const made = new Client(rooms, { name, format, WebSocket });
      clients.push(made);
      return made;
    },
    async stop() {
      for (const client of clients) client.close();
      if (node.exitCode !== null) return;
      node.kill("SIGINT");
      await once(node, "exit");
    },
  };
}

/** A port of the loopback interface that nobody listens on. */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
