// What a page's requests cost a node with 1,000 rooms of 30 players at rest, more exactly than an open
// page shows: they are sent as often as a page does, and many times as often. In hundredths of a core:
// what the console's thread takes, and the whole node.

import { readdirSync, readFileSync } from "node:fs";
import { Agent, get } from "node:http";

import { showcase } from "../test/showcase.mjs";
import { filled } from "./rooms.mjs";

const ROUNDS = 2,
  SECONDS = Number(process.argv[2] ?? 3),
  OFTEN_HZ = 50;

const served = await showcase({ release: true });
const agent = new Agent({ keepAlive: true, maxSockets: 6 });
try {
  const [room] = await filled(served);
  const list = ["api/node", "api/rooms?type=&find=&order=players&skip=0&limit=100"],
    one = ["api/node", `api/rooms/${room}?messages&as=1`];
  for (let round = 1; round <= ROUNDS; round++) {
    await measured(round, "nobody asks", 1, []);
    await measured(round, "the list, once a second", 1, list);
    await measured(round, `the list, ${OFTEN_HZ} times a second`, OFTEN_HZ, list);
    await measured(round, `a room, ${OFTEN_HZ} times a second`, OFTEN_HZ, one);
  }
} finally {
  agent.destroy();
  await served.stop();
}

async function measured(round, name, hz, paths) {
  const [before, begun] = [used(), performance.now()];
  for (let turn = 1; turn <= SECONDS * hz; turn++) {
    await Promise.all(paths.map(asked));
    const left = begun + (turn * 1000) / hz - performance.now();
    if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
  }
  const seconds = (performance.now() - begun) / 1000,
    after = used();
  const share = (of) => Number(((after[of] - before[of]) / 1e7 / seconds).toFixed(2));
  const hz_measured = Number(((SECONDS * hz) / seconds).toFixed(1));
  const row = { suite: "console", row: name, round, hz_measured };
  console.log(
    JSON.stringify({ ...row, console: share("console"), node: share("node"), verified: true }),
  );
}

/** Resolves when the whole answer has come. */
function asked(path) {
  return new Promise((resolve, reject) => {
    const request = get(new URL(path, served.console), { agent }, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`${path}: ${answer.statusCode}`));
      answer.on("error", reject).on("end", resolve).resume();
    });
    request.on("error", reject);
  });
}

/** The processor time that the node has used, in ns. */
function used() {
  const tasks = `/proc/${served.node.pid}/task`,
    sum = { console: 0, node: 0 };
  for (const task of readdirSync(tasks)) {
    const ns = Number(readFileSync(`${tasks}/${task}/schedstat`, "utf8").split(" ")[0]);
    sum.node += ns;
    // The kernel keeps 15 letters of a thread's name.
    const name = readFileSync(`${tasks}/${task}/comm`, "utf8").trim();
    if (name === "playfield-conso") sum.console += ns;
  }
  return sum;
}
