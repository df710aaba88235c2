// Pages that use channels and are devices, against real nodes, over connections that are cut. Run
// by `cargo test -p playfield` (tests/browser_channels.rs), with the port of a node whose fleet has
// JSON and of one whose fleet has bytes, the number of cuts and a seed. Prints what went wrong, or
// how many cuts there were.

import assert from "node:assert/strict";
import { connect as dial, createServer } from "node:net";

const [jsonPort, bytesPort, cutsMax, seed] = process.argv.slice(2).map(Number);
if (typeof WebSocket === "undefined") {
  console.log("no WebSocket");
  process.exit();
}
const { connect } = await import("./callbacks.mjs");
const { dice } = await import("./dice.mjs");
const { roll, pick } = dice(seed);
// No waits before attempts to connect.
Math.random = () => 0;

/** Forwards connections to a node. `cut` ends them, and no other is let through before `mend`. */
async function proxy(port) {
  const ends = new Set();
  let waiting = null, bytesMax = () => Infinity;
  const forward = (page) => {
    const node = dial(port, "127.0.0.1"), both = [page, node];
    ends.add(both);
    const end = () => {
      ends.delete(both);
      for (const one of both) one.destroy();
    };
    const pipe = (from, to, left) => {
      from.on("data", (data) => {
        to.write(data.subarray(0, left));
        left -= data.length;
        if (left > 0) return;
        if (ends.has(both)) through.cuts += 1;
        end();
      });
      from.on("error", end);
      from.on("close", end);
    };
    const isUp = roll() < 0.5, most = bytesMax();
    pipe(page, node, isUp ? most : Infinity);
    pipe(node, page, isUp ? Infinity : most);
  };
  const server = createServer((page) => {
    page.on("error", () => {});
    if (waiting) waiting.push(page);
    else forward(page);
  });
  await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
  const through = {
    cuts: 0,
    url: `ws://127.0.0.1:${server.address().port}/`,
    cut() {
      waiting ??= [];
      for (const both of [...ends]) for (const one of both) one.destroy();
    },
    mend() {
      const pages = waiting ?? [];
      waiting = null;
      for (const page of pages) if (!page.destroyed) forward(page);
    },
    /** How many bytes of one way each later connection passes before it is cut. */
    limit: (how) => (bytesMax = how),
  };
  return through;
}

/** What was heard, in order. `next` takes the first that is there, or that comes. */
function hearing(...names) {
  const heard = [];
  let wanted = null;
  const hear = (name) => (...values) => {
    heard.push([name, ...values]);
    wanted?.();
  };
  const next = async () => {
    if (!heard.length) await new Promise((comes) => (wanted = comes));
    wanted = null;
    return heard.shift();
  };
  return { heard, next, on: Object.fromEntries(names.map((name) => [name, hear(name)])) };
}

const IN_CHANNEL = ["publication", "subscribed", "missed", "presence", "unsubscribed"];
/** Where the rule shows nobody who else subscribes. */
const WITHOUT_PRESENCE = IN_CHANNEL.filter((name) => name !== "presence");
const IN_FLEET = ["registered", "unregistered"];
const url = (port) => `ws://127.0.0.1:${port}/`;

async function post(port, path, body) {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", body });
  const text = await answer.text();
  if (!answer.ok) throw Object.assign(new Error(text), { status: answer.status });
  return text;
}

async function followsAChannel() {
  const through = await proxy(jsonPort);
  const ann = connect("Ann", {}, { url: through.url, token: "ann" });
  const bob = connect("Bob", {}, { url: url(jsonPort), token: "bob" });
  const guest = connect("Guest", {}, { url: url(jsonPort) });
  const annHears = hearing(...IN_CHANNEL), bobHears = hearing(...IN_CHANNEL);
  const begins = (members) => ["subscribed", { recovered: true, missed: 0, members }];
  const goesOn = (members) => ["subscribed", { recovered: true, missed: 0, members }];
  const skips = (missed) => ["subscribed", { recovered: false, missed, members: 0 }];
  const said = (offset, user, payload) => ["publication", payload, { offset, user, payload }];

  const lobby = ann.subscribe("chat:lobby", annHears.on);
  assert.deepEqual(await annHears.next(), begins(1));
  const bobs = bob.subscribe("chat:lobby", bobHears.on);
  assert.deepEqual(await bobHears.next(), begins(2));
  const [, { session: bobId, ...joined }] = await annHears.next();
  assert.deepEqual(joined, { joined: true, sequence: 2, user: "bob", name: "Bob" });
  const { count, members, sequence } = await ann.members("chat:lobby");
  assert.deepEqual([count, sequence], [2, 2]);
  assert.deepEqual(members.map(({ name }) => name).sort(), ["Ann", "Bob"]);

  assert.equal(await bob.publish("chat:lobby", { text: "hi" }), 1);
  assert.equal(ann.publishUnconfirmed("chat:lobby", null), true);
  for (const hears of [annHears, bobHears]) {
    assert.deepEqual(await hears.next(), said(1, "bob", { text: "hi" }));
    assert.deepEqual(await hears.next(), said(2, "ann", null));
  }
  await post(jsonPort, "/publish/chat:lobby", "of the program");
  assert.deepEqual(await annHears.next(), said(3, undefined, "of the program"));
  await bobHears.next();
  const { epoch, offset, bytes, publications } = await ann.history("chat:lobby", { limit: 2 });
  assert.deepEqual([epoch, offset, bytes], [lobby.position.epoch, 3, false]);
  assert.deepEqual(publications.map(({ offset }) => offset), [1, 2]);
  const rest = await bob.history("chat:lobby", { since: { epoch, offset: 2 } });
  assert.deepEqual(rest.publications, [{ offset: 3, payload: "of the program" }]);

  // What a client may not do.
  const refused = hearing("unsubscribed");
  const codes = { "inbox:bob": "forbidden", "other": "unknown_channel", "a::b": "unknown_channel" };
  for (const [channel, code] of Object.entries(codes)) {
    ann.subscribe(channel, refused.on);
    assert.equal((await refused.next())[1], code);
    await assert.rejects(ann.publish(channel, 1), { code });
  }
  await assert.rejects(guest.publish("chat:lobby", 1), { code: "forbidden" });
  await assert.rejects(guest.members("other"), { code: "unknown_channel" });
  const curious = hearing(...IN_CHANNEL);
  bob.subscribe("inbox:bob", curious.on);
  assert.deepEqual((await curious.next()).slice(0, 2), ["unsubscribed", "forbidden"]);
  await assert.rejects(guest.history("inbox:bob"), { code: "forbidden" });
  const inbox = hearing(...WITHOUT_PRESENCE);
  bob.subscribe("inbox:bob", inbox.on);
  assert.equal((await inbox.next())[0], "subscribed");

  // What is published while the connection is lost comes after it, and what is sent is published.
  const short = hearing(...WITHOUT_PRESENCE);
  const ofShort = ann.subscribe("short", short.on);
  assert.equal((await short.next())[0], "subscribed");
  through.cut();
  for (const text of ["a", "b", "c"]) await bob.publish("chat:lobby", text);
  for (const text of ["d", "e", "f", "g", "h"]) await bob.publish("short", text);
  const waits = ann.publish("chat:lobby", "while away");
  through.mend();
  assert.equal(await waits, 7);
  assert.deepEqual(await annHears.next(), goesOn(2));
  for (const [at, text] of ["a", "b", "c"].entries()) {
    assert.deepEqual(await annHears.next(), said(4 + at, "bob", text));
  }
  assert.deepEqual(await annHears.next(), said(7, "ann", "while away"));
  assert.deepEqual(annHears.heard, []);
  // The history has two of five.
  assert.deepEqual(await short.next(), skips(3));
  assert.deepEqual(await short.next(), said(4, "bob", "g"));
  assert.deepEqual(await short.next(), said(5, "bob", "h"));
  assert.deepEqual(ofShort.position.offset, 5);
  for (let times = 0; times < 4; times++) await bobHears.next();
  assert.deepEqual(bobHears.heard, [], "a connection that comes back is no news");

  // Another page goes on from a position; one of another channel's epoch is unknown.
  const later = hearing(...IN_CHANNEL);
  guest.subscribe("chat:lobby", later.on, { since: { epoch, offset: 6 } });
  assert.deepEqual(await later.next(), goesOn(3));
  assert.deepEqual(await later.next(), said(7, "ann", "while away"));
  const unknown = hearing(...WITHOUT_PRESENCE);
  guest.subscribe("short", unknown.on, { since: { epoch, offset: 4 } });
  assert.deepEqual(await unknown.next(), skips(null));
  assert.deepEqual(await unknown.next(), said(4, "bob", "g"));

  // The guest joins and leaves, and then Bob's session ends.
  const [, { session, ...came }] = await annHears.next();
  assert.deepEqual(came, { joined: true, sequence: 3, name: "Guest" });
  guest.close();
  const went = { joined: false, sequence: 4, session, name: "Guest" };
  assert.deepEqual(await annHears.next(), ["presence", went]);
  bobs.unsubscribe();
  const gone = { joined: false, sequence: 5, session: bobId, user: "bob", name: "Bob" };
  assert.deepEqual(await annHears.next(), ["presence", gone]);

  // Bytes.
  const raw = hearing(...WITHOUT_PRESENCE);
  ann.subscribe("raw", raw.on);
  await raw.next();
  await ann.publish("raw", "AP8=");
  assert.deepEqual(await raw.next(), said(1, "ann", "AP8="));
  const kept = await bob.history("raw");
  assert.equal(kept.bytes, true);
  assert.deepEqual(kept.publications, [{ offset: 1, user: "ann", payload: "AP8=" }]);
  await assert.rejects(ann.publish("raw", { not: "bytes" }), { code: "bad_payload" });
  ann.close();
  bob.close();
}

async function isADevice() {
  const through = await proxy(jsonPort);
  const commands = [];
  const command = async (payload) => {
    commands.push(payload);
    if (payload === "jam") throw new Error("it is stuck");
    return `${payload}!`;
  };
  const ended = hearing("ended");
  const ann = connect("Ann", ended.on, { url: through.url, token: "ann" });
  const hears = hearing(...IN_FLEET);
  const how = { tags: ["pump"], metadata: { model: "x" } };
  const pump = ann.register("pump-1", { ...hears.on, command }, how);
  assert.equal(await pump.registered, pump);
  assert.deepEqual(await hears.next(), ["registered", { isNew: true, bytes: false }]);
  const bob = connect("Bob", {}, { url: url(jsonPort), token: "bob" });
  const second = hearing("pushed"), on = { command: second.on.pushed };
  await bob.register("pump-2", on, { tags: ["pump", "north"] }).registered;

  assert.deepEqual(await pump.report({ c: 20 }), [{ c: 20 }, "pump-1"]);
  assert.equal(pump.reportUnconfirmed(21), true);
  await assert.rejects(pump.report("refuse"), { code: "refused" });
  assert.equal(await post(jsonPort, "/devices/pump-1", "on"), "on!");
  await assert.rejects(post(jsonPort, "/devices/pump-1", "jam"), /stuck/);
  await assert.rejects(post(jsonPort, "/devices/pump-3", "on"), { status: 404 });
  assert.equal(await post(jsonPort, "/tags/pump", "all"), "2");
  assert.deepEqual(await second.next(), ["pushed", "all"]);
  assert.equal(await post(jsonPort, "/tags/north", "some"), "1");
  assert.equal(await post(jsonPort, "/tags/south", "none"), "0");

  // A command waits for a device that comes back, and so does a report.
  through.cut();
  const answer = post(jsonPort, "/devices/pump-1", "wait");
  const reported = pump.report("back");
  through.mend();
  assert.equal(await answer, "wait!");
  assert.deepEqual(await reported, ["back", "pump-1"]);
  assert.deepEqual(commands, ["on", "jam", "all", "wait"]);

  // Tags change by registering again. An id is not taken from another user.
  await ann.register("pump-1", { command }, { tags: ["well"] }).registered;
  assert.equal(await post(jsonPort, "/tags/pump", "others"), "1");
  await assert.rejects(ann.register("pump-9").registered, { code: "limit" });
  assert.equal(await post(jsonPort, "/devices/pump-1", "still"), "still!");
  const eve = connect("Eve", {}, { url: url(jsonPort), token: "eve" });
  await assert.rejects(eve.register("pump-1").registered, { code: "device_taken" });
  // By another page of the same user it is.
  const other = connect("Ann", {}, { url: url(jsonPort), token: "ann" });
  await other.register("pump-1", { command: () => "other" }).registered;
  assert.equal((await ended.next())[1], "taken_over");
  assert.equal(await post(jsonPort, "/devices/pump-1", "who"), "other");
  for (const connection of [bob, eve, other]) connection.close();
}

/** The fleet has bytes, which are base64 here; and the node keeps no session. */
async function isADeviceOfBytes() {
  const through = await proxy(bytesPort);
  const hears = hearing(...IN_FLEET, "newSession");
  const commands = hearing("command");
  const command = (payload) => {
    commands.on.command(payload);
    return payload;
  };
  const ann = connect("Ann", hears.on, { url: through.url });
  const meter = ann.register("meter", { ...hears.on, command }, { tags: ["m"] });
  await meter.registered;
  assert.deepEqual(await hears.next(), ["registered", { isNew: true, bytes: true }]);
  assert.equal(atob(await meter.report(btoa("\x00\xff"))), '[\x00\xff,"meter"]');
  await assert.rejects(meter.report({ not: "bytes" }), { code: "bad_payload" });
  assert.equal(await post(bytesPort, "/devices/meter", "raw"), "raw");
  assert.equal(await post(bytesPort, "/tags/m", "push"), "1");
  assert.deepEqual(await commands.next(), ["command", btoa("raw")]);
  assert.deepEqual(await commands.next(), ["command", btoa("push")]);
  through.cut();
  through.mend();
  assert.equal((await hears.next())[0], "newSession");
  const [name, { bytes }] = await hears.next();
  assert.deepEqual([name, bytes], ["registered", true]);
  assert.equal(await post(bytesPort, "/devices/meter", "again"), "again");
  ann.close();
  assert.deepEqual((await hears.next()).slice(0, 2), ["unregistered", "left"]);
}

const AHEAD_MAX = 50;

/** Publishes, hears, reports and obeys while connections are cut at random bytes. */
async function losesNothing() {
  const through = await proxy(jsonPort);
  const bytesMax = () => (roll() < 0.1 ? 1 : 600) + pick(6_000);
  through.limit(() => (through.cuts < cutsMax ? bytesMax() : Infinity));
  const heard = [], answers = [], commands = [], reports = [];
  let published = 0, failed, heardAll;
  const isOver = new Promise((resolve, reject) => ([heardAll, failed] = [resolve, reject]));
  const never = (what) => (...values) => failed(new Error(`${what}: ${JSON.stringify(values)}`));
  const isDone = () => through.cuts >= cutsMax;
  const speak = () => {
    if (isDone() || published >= heard.length + AHEAD_MAX) return;
    const number = ++published;
    if (roll() < 0.3) return ann.publishUnconfirmed("long", number) || never("publish")();
    ann.publish("long", number).then((offset) => answers.push([number, offset])).catch(failed);
  };
  const ann = connect("Ann", {
    newSession: never("a new session"),
    ended: (code, text) => code === "left" || never("ended")(code, text),
    resumed: ({ lost }) => lost.length && never("lost")(lost),
  }, { url: through.url });
  ann.subscribe("long", {
    subscribed: ({ recovered, missed }) => {
      if (heard.length && !recovered) never("not recovered")(missed);
      speak();
    },
    publication: (number, { offset }) => {
      heard.push([number, offset]);
      for (let times = 1 + pick(2); times > 0; times--) speak();
      if (isDone() && heard.length === published) heardAll();
    },
    missed: never("missed"),
    unsubscribed: (code, text) => code === "left" || never("unsubscribed")(code, text),
  });
  const device = ann.register("runner", {
    command: (payload) => {
      commands.push(Number(payload));
      return payload;
    },
    unregistered: (code, text) => code === "left" || never("unregistered")(code, text),
  });
  await device.registered;
  const commanded = (async () => {
    let number = 0;
    do {
      number += 1;
      assert.equal(await post(jsonPort, "/devices/runner", `${number}`), `${number}`);
      const [report] = await device.report(number);
      reports.push(report);
    } while (!isDone());
    return number;
  })();
  commanded.catch(failed);
  await isOver;
  const last = await commanded, upTo = (last) => Array.from({ length: last }, (_, at) => at + 1);
  assert.deepEqual(heard, upTo(published).map((number) => [number, number]), "once each, in order");
  assert.ok(answers.every(([number, offset]) => number === offset), "each has its offset");
  assert.deepEqual([commands, reports], [upTo(last), upTo(last)], "commands and reports come once");
  ann.close();
  return through.cuts;
}

// Nothing is waited for by time, but a test that hangs says so.
let part = "";
const watchdog = setTimeout(() => {
  console.log(`${part} hangs`);
  process.exit(1);
}, 300_000 + cutsMax * 100);
try {
  for (const run of [followsAChannel, isADevice, isADeviceOfBytes, losesNothing]) {
    part = run.name;
    const cuts = await run();
    if (cuts !== undefined) console.log(`${cuts} cuts`);
  }
  clearTimeout(watchdog);
  process.exit();
} catch (error) {
  console.log(`${part}: ${error.stack}`);
  process.exit(1);
}
