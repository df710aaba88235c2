// A page with several rooms, whose connections are cut at random bytes. Run by
// `cargo test -p playfield` (tests/browser_cuts.rs), with the port of a node, the number of cuts and
// a seed. Prints what went wrong, or how many cuts there were.

import assert from "node:assert/strict";
import { connect as dial, createServer } from "node:net";

const [port, cutsMax, seed] = process.argv.slice(2).map(Number);
if (typeof WebSocket === "undefined") {
  console.log("no WebSocket");
  process.exit();
}
const { connect } = await import("./callbacks.mjs");
const { dice } = await import("./dice.mjs");
const { roll, pick } = dice(seed);

/** Forwards a connection, and cuts both ends of it after a random number of bytes of one way. */
let cuts = 0, isFirst = true;
const proxy = createServer((page) => {
  const node = dial(port, "127.0.0.1");
  const cut = () => {
    if (page.destroyed) return;
    cuts += 1;
    for (const end of [page, node]) roll() < 0.5 ? end.resetAndDestroy() : end.destroy();
  };
  const isCut = cuts < cutsMax, isUp = roll() < 0.5;
  // Some in the handshake, most in the traffic.
  const isEarly = roll() < 0.1 && !isFirst;
  const bytes = isEarly ? pick(400) : (isFirst ? 5_000 : 200) + pick(isUp ? 4_000 : 12_000);
  isFirst = false;
  const forward = (from, to, left) => {
    from.on("data", (data) => {
      to.write(data.subarray(0, left));
      left -= data.length;
      if (left <= 0) cut();
    });
    from.on("error", () => to.destroy());
    from.on("close", () => to.destroy());
  };
  forward(page, node, isCut && isUp ? bytes : Infinity);
  forward(node, page, isCut && !isUp ? bytes : Infinity);
});
const AHEAD_MAX = 50;
const KEYS = ["a", "b", "c", "d"];
// Rooms are made by other pages, so that they are on several shards.
globalThis.location = { protocol: "http:", host: `127.0.0.1:${port}` };
for (const key of KEYS) {
  await new Promise((made) => {
    const change = (room) => made(room.close());
    connect("", {}).join("ledger", { change }, { key });
  });
}
await new Promise((listens) => proxy.listen(0, "127.0.0.1", listens));
location.host = `127.0.0.1:${proxy.address().port}`;
// No waits before attempts to connect.
Math.random = () => 0;

const count = { lost: 0, resumed: 0 };
let finished, failed;
const isOver = new Promise((resolve, reject) => ([finished, failed] = [resolve, reject]));
const never = (what) => (...values) => failed(new Error(`${what}: ${values}`));
const connection = connect("Ann", {
  lost: () => (count.lost += 1),
  resumed: ({ lost }) => (lost.length ? never("lost")(JSON.stringify(lost)) : (count.resumed += 1)),
  newSession: never("a new session"),
  ended: never("ended"),
});

const rooms = KEYS.map((key) => {
  const page = { sent: [], heard: [], beats: null, waiting: 0 };
  const speak = () => {
    // Each connection passes little before it is cut, so the page must not say ever more.
    if (page.isDone || page.sent.length > page.heard.length + AHEAD_MAX) return;
    const number = page.sent.length + 1;
    page.sent.push(number);
    if (roll() < 0.5) return page.room.send("Note", { number }) || never("send")();
    page.waiting += 1;
    page.room.request("Add", { number }).then((answer) => {
      assert.equal(answer, number);
      page.waiting -= 1;
    }).catch(failed);
  };
  page.room = connection.join("ledger", {
    event(name, { number }) {
      if (name === "Did") return page.heard.push(number);
      if (number !== (page.beats ?? number - 1) + 1) failed(new Error(`beat ${number} came after ${page.beats}`));
      page.beats = number;
      // The room's beat sets the pace.
      for (let times = pick(4); times > 0; times--) speak();
      if (cuts >= cutsMax) finish();
    },
    missed: never("missed"),
    left: never("left"),
    outOfStep: never("out of step"),
  }, { key });
  return page;
});

// Nothing is waited for by time, but a test that hangs says so.
let seen;
setInterval(() => {
  const bytes = connection.bytes;
  if (bytes === seen) failed(new Error(`nothing came for a minute; the connection is ${connection.status}`));
  seen = bytes;
}, 60_000);

let isFinishing = false;
async function finish() {
  if (isFinishing) return;
  isFinishing = true;
  for (const page of rooms) {
    page.isDone = true;
    const { executed, sum, beats } = await page.room.request("Stop");
    assert.deepEqual(executed, page.sent, "each message is executed once, in order");
    assert.deepEqual(page.heard, page.sent, "each event comes once, in order");
    assert.deepEqual([page.beats, page.waiting], [beats, 0]);
    while (page.room.state.beats !== beats || page.room.state.sum !== sum) await new Promise((soon) => setTimeout(soon));
    const marks = {};
    for (const number of page.sent) marks[number % 10] = number;
    assert.deepEqual(page.room.state, { sum, beats, marks });
  }
  assert.ok(count.resumed === count.lost && count.resumed > 0, JSON.stringify(count));
  finished();
}

try {
  await isOver;
  console.log(`${cuts} cuts`);
  process.exit();
} catch (error) {
  console.log(`after ${cuts} cuts: ${error.message}`);
  process.exit(1);
}
