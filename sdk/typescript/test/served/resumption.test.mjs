// What only the browser's client does over lost connections, and what depends on time. The rest are
// scenarios (conformance/README.md). `make test` runs this if Node is installed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, join } from "./callbacks.mjs";
import { ModelNode, playfield, World } from "./model.mjs";

const { UNCONFIRMED_LENGTH_MAX } = playfield;
const CASES = Number(process.env.PLAYFIELD_CUT_CASES ?? 30);

/** A client of a node that keeps sessions, in `count` rooms, and what its callbacks heard. */
async function start(count, seed = 1, how = {}) {
  const world = new World(seed);
  const node = new ModelNode(world);
  const heard = [];
  const names = ["lost", "resumed", "newSession", "ended"];
  const on = Object.fromEntries(names.map((name) => [name, (...values) => heard.push([name, ...values])]));
  const connection = connect("Ann", on, how);
  const rooms = Array.from({ length: count }, () => enter(connection, world));
  await world.advance(1000);
  return { world, node, heard, connection, rooms, socket: () => world.sockets.at(-1) };
}

/** A room with what the page did and heard. */
function enter(connection) {
  const log = { events: [], missed: 0, faults: [], left: [], sent: [], answers: [], failed: [], next: 0 };
  log.room = connection.join("counter", {
    event: (name, payload) => log.events.push(payload),
    missed: (count) => (log.missed += count),
    outOfStep: (error) => log.faults.push(error.message),
    left: (code, text) => log.left.push([code, text]),
  });
  return log;
}

function speak(log, isRequest) {
  const number = ++log.next;
  if (!isRequest) return log.room.send("Note", number) && log.sent.push(number);
  log.sent.push(number);
  log.room.request("Add", number).then(
    (answer) => log.answers.push([number, answer]),
    (error) => log.failed.push([number, error.code]),
  );
}

/** Random traffic and cuts; afterwards the connection stays. */
async function storm({ world, node, rooms }, steps) {
  const { roll, pick } = world.dice;
  for (let step = 0; step < steps; step++) {
    await world.advance(roll() * 60);
    const log = rooms[pick(rooms.length)];
    if (roll() < 0.8) speak(log, roll() < 0.5);
    if (roll() < 0.3 && node.session?.rooms.size) node.event([...node.session.rooms.values()][pick(node.session.rooms.size)], 0);
    if (roll() < 0.12) world.sockets.at(-1).cut(roll() < 0.2);
    // A page that is shown again looks at once.
    if (roll() < 0.2) world.happens("visibilitychange");
  }
  await world.advance(120_000);
}

test("what the node had to forget is reported by room: events as missed, and requests fail", async () => {
  for (let seed = 1; seed <= CASES; seed++) {
    const game = await start(2, seed);
    game.node.logMax = 4;
    await storm(game, 60);
    const { node, rooms, heard, connection } = game;
    // One more event, so that each room notices what is missing before it.
    node.logMax = Infinity;
    for (const room of node.rooms) node.event(room, 0);
    await game.world.advance(1000);
    assert.equal(connection.status, "connected", `seed ${seed}: ${JSON.stringify(heard.at(-1))}`);
    rooms.forEach((log, index) => {
      const room = node.rooms[index];
      assert.deepEqual(room.executed, log.sent, `seed ${seed}`);
      assert.equal(log.events.length + log.missed, room.events, `seed ${seed}`);
      assert.deepEqual(log.room.state, room.state, `seed ${seed}`);
      assert.ok(log.failed.every(([, code]) => code === "connection_lost"));
      const events = log.events.filter((n) => n > 0);
      assert.deepEqual(events, [...new Set(events)].sort((a, b) => a - b), `seed ${seed}: in order`);
    });
    const lost = heard.flatMap(([what, how]) => (what === "resumed" ? how.lost : []));
    assert.ok(lost.every(({ room }) => room === null || rooms.some((log) => log.room === room)));
    if (seed === 1) assert.ok(lost.length > 0 && rooms.some((log) => log.missed > 0) && rooms.some((log) => log.failed.length > 0));
    connection.close();
  }
});

test("the client waits as long as the node wants it to, and says why", async () => {
  for (const code of ["busy", "limit", "internal"]) {
    const texts = [];
    const world = new World();
    const node = new ModelNode(world);
    const connection = connect("Ann", { status: (text) => texts.push(text) });
    world.sockets[0].onmessage({ data: JSON.stringify({ type: "error", code, text: "full", retry_after_ms: 4000 }) });
    world.sockets[0].onmessage({ data: JSON.stringify({ type: "goodbye", code, text: "full" }) });
    await world.advance(3999);
    assert.deepEqual([connection.status, world.sockets.length, texts], ["connecting", 1, ["full; trying again"]]);
    await world.advance(1000);
    assert.deepEqual([connection.status, texts.at(-1), node.sessions], ["connected", "connected", 1]);
  }
});

test("the first connection is tried again for as long as a lost one, and each change is said once", async () => {
  for (const [reconnectTimeoutMs, sockets] of [[0, 1], [20_000, 4]]) {
    const world = new World();
    const node = new ModelNode(world);
    node.isDown = true;
    const texts = [], ended = [];
    const on = { status: (text) => texts.push(text), ended: (code) => ended.push(code) };
    join("counter", "Ann", on, { reconnectTimeoutMs });
    await world.advance(120_000);
    assert.ok(world.sockets.length >= sockets && world.sockets.length < 50, `${world.sockets.length} attempts`);
    const text = "no connection to ws://here/";
    assert.deepEqual(texts, reconnectTimeoutMs ? [`${text}; trying again`, text] : [text]);
    assert.deepEqual(ended, ["connection_lost"]);
  }
});

test("the attempts are planned by the room that keeps its seat for the shortest time", async () => {
  const { world, node, connection, socket } = await start(0);
  node.seat = 300;
  enter(connection);
  await world.advance(1000);
  node.isDown = true;
  socket().cut();
  const before = world.sockets.length;
  await world.advance(300);
  assert.ok(world.sockets.length - before >= 2, "several attempts within the room's grace");
});

test("a page may name the node, and bring the WebSocket", () => {
  const urls = [];
  const how = { WebSocket: class { constructor(url) { urls.push(url); } close() {} } };
  const world = new World();
  for (const url of [undefined, "/play?x=1", "wss://node.example/play", "https://node.example:7350", "ws://[::1]:9"]) {
    connect("Ann", {}, { ...how, url }).close();
  }
  assert.deepEqual(urls, ["ws://here/", "ws://here/play?x=1", "wss://node.example/play", "wss://node.example:7350/", "ws://[::1]:9/"]);
  assert.throws(() => connect("Ann", {}, { ...how, url: "ftp://node" }), /ftp:\/\/node/);
  const { location, WebSocket } = globalThis;
  delete globalThis.location;
  delete globalThis.WebSocket;
  assert.throws(() => connect("Ann", {}, how), /in a page a path/);
  assert.throws(() => connect("Ann", {}, { url: "ws://node" }), /no WebSocket/);
  Object.assign(globalThis, { location, WebSocket });
});

test("the waits between attempts are random parts of a time that doubles, and end", async () => {
  const { world, node, heard, connection, socket } = await start(0);
  // The node keeps the session for long.
  node.grace = 3_600_000;
  socket().cut();
  await world.advance(10_000);
  heard.length = 0;
  world.delay = () => 0;
  Math.random = () => 1;
  node.isDown = true;
  const begun = world.time;
  const { onsocket } = world;
  const at = [];
  world.onsocket = (socket) => (at.push(world.time - begun), onsocket(socket));
  socket().cut();
  await world.advance(200_000);
  const waits = at.map((time, index) => time - (at[index - 1] ?? 0));
  assert.deepEqual(waits.slice(0, 8), [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
  // The last wait ends when the time does.
  assert.ok(at.at(-2) < 60_000 && Math.abs(at.at(-1) - 60_000) < 1, `${at.at(-1)}`);
  assert.equal(connection.status, "ended");
  assert.deepEqual(heard.map(([what, code]) => [what, code]), [["lost", "disconnected"], ["ended", "connection_lost"]]);
  assert.match(heard.at(-1)[2], /could not be reached again/);
});

/** What the client waits for before it comes back each time, if each connection ends at once. */
async function returns({ world, node, socket }, times, between) {
  node.grace = 3_600_000;
  socket().cut();
  await world.advance(10_000);
  world.delay = () => 0;
  Math.random = () => 1;
  const at = [];
  const { onsocket } = world;
  world.onsocket = (socket) => (at.push(world.time), onsocket(socket));
  const waits = [];
  for (let n = 0; n < times; n++) {
    await between(n);
    const cut = world.time, count = at.length;
    socket().cut();
    while (at.length === count) await world.advance(10);
    waits.push(at.at(-1) - cut);
    await world.advance(0);
  }
  return waits;
}

test("on a flaky line where each return works the waits stay short, and a node that ends at once is asked ever less", async () => {
  let game = await start(1);
  const flaky = await returns(game, 10, async (n) => {
    game.node.event(game.node.rooms[0], n + 1);
    await game.world.advance(20);
  });
  assert.deepEqual(flaky, Array(10).fill(100));
  assert.equal(game.rooms[0].events.length, 10);
  game.connection.close();
  // State alone is progress, too; so is what the node confirms.
  game = await start(1);
  const shown = await returns(game, 5, async (n) => {
    game.node.rooms[0].state.sum = n + 1;
    await game.world.advance(200);
  });
  assert.deepEqual(shown, Array(5).fill(100));
  game.connection.close();
  game = await start(0);
  const idle = await returns(game, 8, () => game.world.advance(20));
  assert.deepEqual(idle, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
  game.connection.close();
  game = await start(0, 1, { backoffMs: 10, backoffMsMax: 50 });
  assert.deepEqual(await returns(game, 4, () => game.world.advance(20)), [10, 20, 40, 50]);
  game.connection.close();
});

test("a hidden page goes on trying, and tries at once when it is shown or the network is back", async () => {
  for (const type of ["visibilitychange", "online", "pageshow"]) {
    const { world, node, connection, socket } = await start(1);
    document.hidden = true;
    node.isDown = true;
    socket().cut();
    await world.advance(3_600_000);
    assert.equal(connection.status, "lost");
    const tried = world.sockets.length;
    // The network is gone: no reason to try.
    document.hidden = false;
    world.happens("offline");
    assert.equal(world.sockets.length, tried);
    node.isDown = false;
    world.happens(type);
    assert.equal(world.sockets.length, tried + 1);
    await world.advance(100);
    assert.equal(connection.status, "connected");
  }
});

test("a connection that died in silence is noticed on waking, and by its heartbeat", async () => {
  for (const [type, within] of [["visibilitychange", 5000], ["offline", 5000], ["pageshow", 5000], [null, 60_000]]) {
    const { world, heard, connection, rooms: [log], socket } = await start(1);
    socket().cut(true);
    speak(log, true);
    if (type) world.happens(type);
    await world.advance(within - 100);
    assert.deepEqual(heard.filter(([what]) => what === "lost"), type ? [] : [["lost", "the server does not answer"]]);
    await world.advance(1000);
    assert.deepEqual([heard[0], heard[1][0]], [["lost", "the server does not answer"], "resumed"]);
    assert.deepEqual([log.answers, connection.status], [[[1, 1]], "connected"]);
  }
});

test("a room shortens the silence after which a connection counts as lost, while the page is there", async () => {
  for (const leaves of [false, true]) {
    const { world, node, heard, connection, socket } = await start(0);
    node.silence = 3000;
    const log = enter(connection);
    await world.advance(10_000);
    assert.deepEqual([heard, log.room.left], [[], false]);
    if (leaves) await Promise.all([log.room.leave(), world.advance(4000)]);
    socket().cut(true);
    await world.advance(3100);
    assert.deepEqual(heard.map(([what]) => what), leaves ? [] : ["lost", "resumed"]);
  }
});

test("a page that was stored away comes back without having heard of the end", async () => {
  const { world, heard, socket } = await start(1);
  socket().cut(true);
  socket().readyState = 3;
  world.happens("pageshow", { persisted: true });
  await world.advance(100);
  assert.deepEqual(heard.map(([what]) => what), ["lost", "resumed"]);
});

test("a device that slept keeps a living connection, and soon notices a dead one", async () => {
  for (const isDead of [false, true]) {
    const { world, heard, socket } = await start(1);
    if (isDead) socket().cut(true);
    world.sleep(8 * 3_600_000);
    await world.advance(11_000);
    assert.deepEqual(heard.map(([what]) => what), isDead ? ["lost", "resumed"] : []);
  }
});

test("nothing depends on timers while messages come: a page whose timers stand still acknowledges", async () => {
  const { world, node, heard, socket } = await start(1);
  globalThis.setTimeout = () => 0;
  for (let count = 1; count <= 100; count++) {
    node.event(node.rooms[0], count);
    await world.advance(1000);
  }
  const acks = socket().sent.filter(({ type }) => type === "ack").map(({ received }) => received);
  const last = acks.at(-1);
  assert.deepEqual([acks.slice(-3), heard], [[last - 64, last - 32, last], []]);
  assert.ok(last > 101 - 32);
});

test("acknowledgements are due after 32 messages, 16 KiB, or a second", async () => {
  const acks = async (events, payload) => {
    const { world, node, socket } = await start(1);
    await world.advance(2000); // `joined` is acknowledged
    world.delay = () => 0;
    for (let count = 0; count < events; count++) node.event(node.rooms[0], payload);
    await world.advance(10);
    const before = socket().sent.filter(({ type }) => type === "ack").length;
    await world.advance(1000);
    return [before, socket().sent.filter(({ type }) => type === "ack").length];
  };
  assert.deepEqual(await acks(0), [1, 1]);
  assert.deepEqual(await acks(31, 1), [1, 2]);
  assert.deepEqual(await acks(32, 1), [2, 2]);
  const overhead = JSON.stringify({ type: "event", room: 1, sequence: 1, version: 1, message: "Did", payload: "" }).length;
  assert.deepEqual(await acks(1, "x".repeat(16_383 - overhead)), [1, 2]);
  assert.deepEqual(await acks(1, "x".repeat(16_384 - overhead)), [2, 2]);
});

test("what waits for the node is limited, and what was taken is carried out", async () => {
  const { world, node, rooms: [log], socket } = await start(1);
  node.says({ type: "ack", received: 1 });
  await world.advance(100);
  node.isDown = true;
  socket().cut();
  await world.advance(100);
  const overhead = JSON.stringify({ type: "send", room: 1, message: "Note", payload: "" }).length;
  assert.ok(log.room.send("Note", "x".repeat(UNCONFIRMED_LENGTH_MAX - overhead - 1)));
  assert.ok(log.room.send("Note", 1), "one below the limit");
  assert.equal(log.room.send("Note", 2), false, "at the limit");
  await assert.rejects(log.room.request("Add", 3), { code: "limit" });
  const refused = enter(log.room.connection);
  await world.advance(1);
  assert.equal(refused.left[0][0], "limit");
  node.isDown = false;
  await world.advance(10_000);
  assert.deepEqual(node.rooms[0].executed.slice(1), [1]);
  assert.ok(log.room.send("Note", 4));
});

test("round trip and clock offset are those of the quickest of the last eight pings", async () => {
  const { world, connection, socket } = await start(0);
  const measure = async (up, down) => {
    const delays = [up, down];
    world.delay = () => delays.shift() ?? 0;
    connection.ping();
    await world.advance(up + down);
  };
  await measure(5, 5);
  assert.deepEqual([connection.roundTrip, connection.clockOffset], [10, 2_000_000]);
  for (let count = 0; count < 7; count++) await measure(40, 10);
  assert.deepEqual([connection.roundTrip, connection.clockOffset], [10, 2_000_000]);
  await measure(30, 10);
  assert.deepEqual([connection.roundTrip, connection.clockOffset], [40, 2_000_010]);
  world.delay = () => 5;
  socket().cut();
  assert.equal(connection.roundTrip, 40);
  await world.advance(6000);
  assert.deepEqual([connection.roundTrip, Math.round(connection.clockOffset)], [10, 2_000_000], "a new connection, a new path");
});

test("a page that goes for good says goodbye, one that is stored does not", async () => {
  const { world, node, connection, heard } = await start(1);
  world.happens("pagehide", { persisted: true });
  await world.advance(100);
  assert.ok(node.session && connection.status === "connected");
  world.happens("pagehide", { persisted: false });
  await world.advance(100);
  assert.deepEqual([node.session, heard], [null, [["ended", "left", "disconnected", { unconfirmed: 0 }]]]);
});

test("a callback that throws is reported, and stops nothing", async () => {
  const world = new World();
  const node = new ModelNode(world);
  const thrown = [];
  globalThis.queueMicrotask = (call) => {
    try {
      call();
    } catch (error) {
      thrown.push(error.message);
    }
  };
  const fault = (what) => () => {
    throw new Error(what);
  };
  const connection = connect("Ann", { status: fault("status"), lost: fault("lost"), newSession: fault("new") });
  const room = connection.join("counter", { left: fault("left"), event: fault("event"), change: fault("change") });
  await world.advance(1000);
  node.event(node.rooms[0], 1);
  await world.advance(100);
  world.sockets.at(-1).cut();
  node.session = null;
  await world.advance(1000);
  assert.deepEqual([connection.status, room.left], ["connected", true]);
  assert.deepEqual(thrown, ["status", "change", "event", "status", "lost", "left", "status", "new"]);
});

test("a callback may close the connection", async () => {
  for (const [grace, sockets] of [[10_000, 2], [0, 1]]) {
    const world = new World();
    const node = new ModelNode(world);
    node.grace = grace;
    const heard = [];
    const on = Object.fromEntries(["lost", "newSession", "resumed", "ended"].map((name) => [name, () => heard.push(name)]));
    const connection = connect("Ann", on);
    connection.join("counter", { left: () => connection.close() });
    await world.advance(1000);
    world.sockets.at(-1).cut();
    node.session = null;
    await world.advance(10_000);
    assert.deepEqual([connection.status, world.sockets.length, heard.at(-1)], ["ended", sockets, "ended"]);
    assert.ok(!heard.includes("newSession"));
  }
});

test("a JSON Web Token is renewed when it is about to expire, if the clocks agree", async () => {
  const jwt = (seconds) => `a.${btoa(JSON.stringify({ exp: Date.now() / 1000 + seconds }))}.b`;
  for (const [seconds, expected] of [[600, 1], [5, 1], [-60, 1], [12, 2]]) {
    let asked = 0;
    const { world, socket } = await start(1, 1, { token: () => (++asked, jwt(seconds)) });
    await world.advance(3000);
    socket().cut();
    await world.advance(1000);
    assert.equal(asked, expected, `${seconds}`);
  }
});

/** A client in a room of 20 ticks, whose state changes with each for a second. */
async function ticking() {
  const all = await start(0), { world, node, connection, socket } = all;
  Object.assign(node, { ticks: 20, silence: 5000 });
  const { room } = enter(connection), heard = [];
  await world.advance(1000);
  room.onStatus((status) => heard.push([status, world.time]));
  const ticks = async (count) => {
    while (count--) {
      node.session.rooms.get(1).state.sum += 1;
      node.sync();
      await world.advance(50);
    }
  };
  await ticks(20);
  const pings = () => socket().sent.filter(({ type }) => type === "ping").length;
  return { ...all, room, heard, ticks, pings };
}

test("a room at rest costs one ping, and is no weak connection", async () => {
  const { world, heard, ticks, pings } = await ticking();
  let before = pings();
  await ticks(40);
  assert.ok(pings() - before <= 1, "one that is sent anyway: the room speaks");
  before = pings();
  await world.advance(20_000);
  // One every 2.5 s shows that the node is there, and one that the room rests.
  assert.ok(pings() - before <= 20_000 / 2500 + 1, `${pings() - before} pings`);
  for (let count = 0; count < 20; count += 1) {
    await ticks(1);
    await world.advance(700);
  }
  assert.deepEqual(heard, []);
});

test("a room with ticks that is silent for a second is on a weak connection", async () => {
  const { world, node, room, heard, ticks, socket } = await ticking();
  const began = world.time, { onmessage } = socket();
  socket().onmessage = null;
  await ticks(30);
  assert.deepEqual(heard.map(([status]) => status), ["weak"]);
  const took = heard[0][1] - began;
  assert.ok(took > 900 && took < 1200, `${took} ms`);
  assert.deepEqual([room.status, room.reason.code, room.left], ["weak", "timeout", false]);
  socket().onmessage = onmessage;
  node.says({ type: "ack", received: node.session.received });
  await world.advance(100);
  assert.deepEqual(heard.map(([status]) => status), ["weak", "back"]);
  // A dead one is noticed within the silence that the room asks for.
  const cut = world.time;
  socket().cut(true);
  await world.advance(10_000);
  assert.deepEqual(heard.map(([status]) => status), ["weak", "back", "weak", "lost", "back"]);
  assert.ok(heard[3][1] - cut <= 5000, `${heard[3][1] - cut} ms`);
});

test("a page that stood still has not met a weak connection", async () => {
  const { world, heard, ticks } = await ticking();
  world.sleep(1500);
  await world.advance(0);
  await ticks(10);
  assert.deepEqual(heard, []);
});

test("however short the session is kept, several attempts fall within that time, and one comes shortly before its end", async () => {
  for (const grace of [1000, 10_000, 60_000]) {
    for (const random of [() => 1, () => 0.5, null]) {
      const { world, node, socket } = await start(1);
      node.grace = grace;
      socket().cut();
      await world.advance(10_000);
      Math.random = random ?? Math.random;
      const at = [], begun = world.time, { onsocket } = world;
      world.onsocket = (socket) => (at.push(world.time - begun), onsocket(socket));
      node.isDown = true;
      socket().cut();
      await world.advance(grace);
      const within = at.filter((time) => time < grace);
      assert.ok(within.length >= (grace > 1000 ? 4 : 2), `${grace}: ${within}`);
      assert.ok(within.at(-1) >= grace - 250, `${grace}: ${within}`);
      // All clients of a node that is away have the same end.
      const near = within.filter((time) => grace > 1000 && time > grace - 900);
      assert.ok(near.length <= 4, `${grace}: ${within}`);
    }
  }
  // An attempt that hangs leaves time for others.
  const { world, heard, socket } = await start(1);
  const { onsocket } = world;
  let hung = 0;
  world.onsocket = (socket) => (hung++ < 2 ? undefined : onsocket(socket));
  socket().cut();
  await world.advance(10_000);
  assert.deepEqual([hung, heard.map(([what]) => what)], [3, ["lost", "resumed"]]);
});

test("a token function may be async, and fail: the client says so, and tries again", async () => {
  const texts = [];
  let asked = 0;
  const token = () => {
    asked += 1;
    if (asked === 2) throw new Error("the account service is away");
    if (asked === 3) return Promise.reject(new Error("nobody is logged in"));
    if (asked === 4) return new Promise(() => {});
    return new Promise((given) => setTimeout(() => given(`token ${asked}`), 500));
  };
  const world = new World();
  const node = new ModelNode(world);
  const connection = connect("Ann", { status: (text) => texts.push(text) }, { token });
  const log = enter(connection);
  await world.advance(2000);
  assert.equal(atob(world.sockets[0].sent[0].token), "token 1");
  const { hello } = node;
  node.hello = (socket) => {
    node.hello = hello;
    node.transmit(socket, { type: "goodbye", code: "unauthorized", text: "expired" });
  };
  world.sockets[0].cut();
  speak(log, true);
  await world.advance(8000);
  assert.equal(atob(world.sockets.at(-1).sent[0].token), "token 5");
  assert.deepEqual([log.answers, node.faults, connection.status], [[[1, 1]], [], "connected"]);
  assert.deepEqual(texts, [
    "connected",
    "disconnected; reconnecting",
    "expired; trying again",
    "there is no token: the account service is away; trying again",
    "there is no token: nobody is logged in; trying again",
    "there is no token: its function gave none within 3333 ms; trying again",
    "connected",
  ]);
  // Without a time for attempts it ends the connection, after `connect` has returned.
  let ended;
  const fails = () => { throw new Error("no"); };
  const never = connect("Ann", { ended: (...how) => (ended = [never.status, ...how]) }, { token: fails, reconnectTimeoutMs: 0 });
  await world.advance(1);
  assert.deepEqual(ended, ["ended", "connection_lost", "there is no token: no", { unconfirmed: 0 }]);
});

test("requests made while a room is being joined follow the join, and `joined` says when it is done", async () => {
  const world = new World();
  const node = new ModelNode(world);
  const connection = connect("Ann");
  const log = enter(connection);
  const payload = { value: 1 };
  speak(log, true);
  speak(log, true);
  const changed = log.room.request("Add", payload).then((answer) => log.answers.push(answer.value));
  payload.value = 2;
  assert.equal(log.room.send("Note", 1), false);
  let joined;
  log.room.joined.then((room) => (joined = [room === log.room, room.state.sum, room.number]));
  // Over a connection that is lost meanwhile, too.
  while (!node.rooms.length) await world.advance(1);
  world.sockets.at(-1).cut();
  await world.advance(5000);
  await changed;
  assert.deepEqual([joined, log.answers, node.rooms[0].executed.slice(0, 2)], [[true, 0, 1], [[1, 1], [2, 2], 1], [1, 2]]);

  // Those of a room that is not joined fail with the reason.
  node.join_or_create = function ({ request }) {
    this.says({ type: "error", request, code: "room_full", text: "it is full" });
  };
  const full = enter(connection);
  speak(full, true);
  const refused = assert.rejects(full.room.joined, { code: "room_full", message: "it is full" });
  await world.advance(1000);
  await refused;
  assert.deepEqual([full.left, full.failed], [[["room_full", "it is full"]], [[1, "room_full"]]]);
  await assert.rejects(full.room.request("Add", 1), { code: "room_full" });

  // They are bounded.
  const much = enter(connection);
  much.room.request("Add", "x".repeat(UNCONFIRMED_LENGTH_MAX)).catch(() => {});
  await assert.rejects(much.room.request("Add", 1), { code: "limit" });
});

test("sends that the node has not confirmed are counted in a new session and at the end", async () => {
  const { world, node, heard, connection, rooms: [log], socket } = await start(1);
  // The join counts; the node confirms each third message.
  for (let count = 0; count < 4; count++) speak(log, false);
  await world.advance(100);
  socket().cut();
  speak(log, false);
  speak(log, true);
  node.session = null;
  await world.advance(1000);
  const { away } = heard[1][1];
  assert.deepEqual(heard[1], ["newSession", { away, unconfirmed: 3 }]);
  for (const closes of [true, false]) {
    const { world, node, heard, connection, rooms: [log], socket } = await start(1);
    node.isDown = true;
    socket().cut();
    speak(log, false);
    speak(log, false);
    if (closes) connection.close();
    await world.advance(200_000);
    assert.deepEqual([connection.status, heard.at(-1)[0], heard.at(-1)[3]], ["ended", "ended", { unconfirmed: 2 }]);
  }
  connection.close();
  assert.deepEqual(heard.at(-1), ["ended", "left", "disconnected", { unconfirmed: 0 }]);
});
