// A cluster, as its clients see it: rooms are at other nodes than the one that is asked.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, PlayfieldError } from "../dist/index.js";
import { Client as RoomsOnly } from "../dist/rooms.js";
import { PackedSocket, Socket } from "./node.mjs";
import { AFTER, BEFORE, shows, snapshot } from "./upgraded.mjs";

const KEPT = { resume: "t", grace_ms: 60_000 };
const A = "ws://a/", B = "ws://b/", C = "ws://c/";

/** Sockets, which a test meets in the order in which the client makes them. */
function network(Base = Socket) {
  const made = [];
  let wakes = () => {};
  class Net extends Base {
    constructor(url) {
      super();
      this.url = url;
      made.push(this);
      wakes();
    }
    close() {
      super.close();
      this.isClosed = true;
    }
  }
  /** The next socket, which must be to this address. */
  const next = async (url) => {
    while (!made.length) await new Promise((done) => (wakes = done));
    const socket = made.shift();
    assert.equal(socket.url, url);
    return socket;
  };
  return { WebSocket: Net, made, next };
}

const joins = ({ sent }) => sent.filter(({ type }) => /join|create/.test(type));

/** Waits for this number of joins, and returns the last. */
async function joined(node, count) {
  while (joins(node).length < count) await new Promise((done) => setTimeout(done, 1));
  return joins(node).at(-1);
}

/** Answers the last join by a redirect. */
const redirects = (node, addresses, reservation = "seat") =>
  node.says({ type: "redirect", request: joins(node).at(-1).request, addresses, reservation });
const refuses = (node, code) =>
  node.says({ type: "error", request: joins(node).at(-1).request, code, text: code });

/** A client at its first node. */
async function start(t, how = {}, welcome = KEPT) {
  const { WebSocket, ...net } = network();
  const client = new Client(A, { format: "json", WebSocket, backoffMs: 1, ...how });
  t.after(() => client.close());
  return { client, net, a: (await net.next(A)).open(welcome) };
}

/** A client with a room at another node. */
async function elsewhere(t, how) {
  const { client, net, a } = await start(t, how), joining = client.joinOrCreate("lab");
  redirects(a, [B]);
  const b = (await net.next(B)).open({ ...KEPT, resume: "b", addresses: [B] });
  b.joins({ round: 1 });
  return { client, net, a, b, room: await joining };
}

test("a client follows a redirect, with the reservation as the room", async (t) => {
  const { client, net, a } = await start(t, { name: "Ann", token: "secret" });
  assert.equal(a.sent[0].redirects, true);
  const joining = client.joinOrCreate("lab", { options: { bots: 1 } });
  redirects(a, ["tcp://b:7350", "wss://b", "ws://b"]);
  const b = await net.next(B);
  b.open(KEPT);
  const [hello, join] = b.sent;
  assert.deepEqual([hello.name, hello.token, hello.redirects], ["Ann", a.sent[0].token, true]);
  assert.deepEqual(join, { type: "join", request: 1, room: "seat" });
  b.joins({ round: 1 });
  const room = await joining;
  assert.deepEqual(room.state, { round: 1 });
  const drawn = room.request("Draw");
  b.says({ type: "reply", request: b.request("request"), payload: 7 });
  assert.equal(await drawn, 7);
  assert.equal(a.request("request"), undefined);
  // Its connection measures the way to its node; the rest is the first one's.
  assert.notEqual(room.connection, client.connection);
  room.connection.publishUnconfirmed("talk", 1);
  room.connection.list().catch(() => {});
  assert.deepEqual(a.sent.slice(-2).map(({ type }) => type), ["publish", "list"]);
  b.onclose();
  assert.deepEqual([room.status, client.status], ["lost", "connected"]);
  assert.equal(room.connection.status, "lost");
});

test("without a reservation the same request is sent to the other node", async (t) => {
  const { client, net, a } = await start(t);
  const joining = client.joinById("a ticket"), [{ request, ...asked }] = joins(a);
  redirects(a, [B], "");
  const b = (await net.next(B)).open(KEPT);
  assert.deepEqual(joins(b), [{ ...asked, request: 1 }]);
  b.joins({});
  assert.equal((await joining).id, "r1");
});

test("a join that is given up leaves the room at the other node", async (t) => {
  const { client, net, a } = await start(t), controller = new AbortController();
  const joining = client.joinOrCreate("lab", { signal: controller.signal });
  controller.abort();
  await assert.rejects(joining, { name: "AbortError" });
  redirects(a, [B]);
  const b = (await net.next(B)).open(KEPT);
  b.joins({});
  assert.ok(b.request("leave"));
});

test("in packed, the other node writes the room by its own schema", async (t) => {
  const { WebSocket, ...net } = network(PackedSocket);
  const client = new RoomsOnly(A, { WebSocket });
  t.after(() => client.close());
  const a = (await net.next(A)).open();
  const joining = client.joinOrCreate("lab");
  a.gives(AFTER);
  redirects(a, [B]);
  const b = (await net.next(B)).open({ addresses: [B] }), [{ type, request, room }] = joins(b);
  assert.deepEqual([type, room], ["join", "seat"]);
  b.says({
    type: "joined", request, room: 1, player: 1, id: "r1", room_type: "lab", epoch: 3,
    fingerprint: BEFORE.fingerprint,
  });
  b.gives(BEFORE);
  shows(b, 1, 1, snapshot.packed);
  assert.equal((await joining).state.score, 10);
});

test("rooms at one node share the session there, by whatever address it is known", async (t) => {
  const { client, net, a } = await start(t, {}, { ...KEPT, addresses: ["ws://a1"] });
  const rooms = [client.create("lab"), client.create("lab")];
  for (const { request } of joins(a))
    a.says({ type: "redirect", request, addresses: [B], reservation: "seat" });
  const b = (await net.next(B)).open({ ...KEPT, addresses: ["ws://b1"] });
  assert.equal(joins(b).length, 2);
  for (const [address, node] of [["ws://b1", b], ["ws://a1", a]]) {
    const before = joins(node).length;
    rooms.push(client.join("lab", "k"));
    redirects(a, [address], "again");
    assert.equal((await joined(node, before + (node === a ? 2 : 1))).room, "again");
  }
  assert.deepEqual(net.made, []);
  client.close();
  for (const room of rooms) await assert.rejects(room, { code: "left" });
});

test("a node that is away: the first one is asked again, and names another", async (t) => {
  const { client, net, a } = await start(t), joining = client.joinOrCreate("lab");
  redirects(a, [B]);
  (await net.next(B)).onclose();
  assert.equal((await joined(a, 2)).type, "join_or_create");
  redirects(a, [C]);
  (await net.next(C)).open(KEPT).joins({ round: 1 });
  assert.deepEqual((await joining).state, { round: 1 });
  assert.equal(client.status, "connected");
});

test("a node that shuts down: the first one is asked again", async (t) => {
  const { client, net, a } = await start(t), joining = client.joinOrCreate("lab");
  redirects(a, [B]);
  const b = await net.next(B);
  b.onopen();
  b.says({ type: "goodbye", code: "shutting_down", text: "it is" });
  await joined(a, 2);
  redirects(a, [C], "");
  const c = (await net.next(C)).open(KEPT);
  refuses(c, "shutting_down");
  await joined(a, 3);
  a.joins({ round: 1 });
  assert.deepEqual((await joining).state, { round: 1 });
});

test("what can't be reached three times is unreachable, and the error names it", async (t) => {
  const { client, net, a } = await start(t), joining = client.joinOrCreate("lab");
  const fails = assert.rejects(joining, (error) => {
    assert.deepEqual([error instanceof PlayfieldError, error.code], [true, "unreachable"]);
    return /ws:\/\/b\//.test(error.message) && /ECONNREFUSED/.test(error.message);
  });
  for (const count of [1, 2, 3]) {
    await joined(a, count);
    redirects(a, [B]);
    const b = await net.next(B);
    b.onerror({ message: "connect ECONNREFUSED" });
    b.onclose({ code: 1006, reason: "" });
  }
  await fails;
  assert.deepEqual([joins(a).length, client.status], [3, "connected"]);
});

test("a reservation that is over three times is unreachable; other refusals stay", async (t) => {
  for (const code of ["bad_reservation", "room_not_found"]) {
    const { client, net, a } = await start(t), joining = client.joinOrCreate("lab");
    const fails = assert.rejects(joining, { code: "unreachable", message: /ws:\/\/b\/.*_/ });
    redirects(a, [B]);
    const b = (await net.next(B)).open(KEPT);
    for (const count of [2, 3]) {
      refuses(b, code);
      await joined(a, count);
      redirects(a, [B]);
      await joined(b, count);
    }
    refuses(b, code);
    await fails;
    client.close();
  }
  const { client, net, a } = await start(t), joining = client.joinOrCreate("lab");
  redirects(a, [B]);
  const b = (await net.next(B)).open(KEPT);
  refuses(b, "room_full");
  await assert.rejects(joining, { code: "room_full" });
  // A ticket is no reservation.
  const ticket = client.joinById("a ticket");
  redirects(a, [B], "");
  refuses(b, "room_not_found");
  await assert.rejects(ticket, { code: "room_not_found" });
  // Nor is the other node's refusal of the client a matter of the way there.
  const guest = client.joinOrCreate("lab");
  redirects(a, [C]);
  const c = await net.next(C);
  c.onopen();
  c.says({ type: "goodbye", code: "unauthorized", text: "who is it?" });
  await assert.rejects(guest, { code: "unauthorized", message: "who is it?" });
  assert.equal(joins(a).length, 3);
});

test("a redirect loop ends after three hops", async (t) => {
  const { client, net, a } = await start(t), joining = client.joinOrCreate("lab");
  const fails = assert.rejects(joining, { code: "unreachable", message: /ws:\/\/c.*3/ });
  redirects(a, [B]);
  const b = (await net.next(B)).open({ ...KEPT, addresses: [B] });
  redirects(b, [C]);
  const c = (await net.next(C)).open({ ...KEPT, addresses: [C] });
  redirects(c, [B]);
  assert.equal(joins(b).length, 2);
  redirects(b, [C]);
  await fails;
  assert.deepEqual([joins(a).length, joins(c).length, net.made], [1, 1, []]);
});

test("a session whose node is another is looked for there, with the same token", async (t) => {
  const { client, net, a } = await start(t, { token: () => "secret" }, { ...KEPT, addresses: [A] });
  const joining = client.joinOrCreate("lab");
  a.joins({ round: 1 });
  const room = await joining;
  a.onclose();
  const balanced = await net.next(A);
  balanced.onopen();
  while (!balanced.sent.length) await null;
  balanced.says({ type: "redirect", request: 0, addresses: [B], reservation: "" });
  const b = await net.next(B);
  b.onopen();
  while (!b.sent.length) await null;
  assert.deepEqual(b.sent[0], balanced.sent[0]);
  assert.equal(b.sent[0].resume.token, "t");
  b.says({
    type: "welcome", ...KEPT, resume: "u", resumed: { received: 1, lost: [] }, addresses: [B],
  });
  assert.deepEqual([room.status, client.status], ["back", "connected"]);
  // It is at that node from here on.
  b.onclose();
  (await net.next(B)).onclose();
  (await net.next(A)).onclose();
  await net.next(B);
});

test("nodes that pass a session on for ever are an attempt that failed", async (t) => {
  const { client, net, a } = await start(t), texts = [];
  client.onStatus((status, text) => texts.push(text));
  a.onclose();
  for (const [url, to] of [[A, B], [B, C], [C, B], [B, C]]) {
    const node = await net.next(url);
    node.onopen();
    node.says({ type: "redirect", request: 0, addresses: [to], reservation: "" });
  }
  const again = await net.next(A);
  assert.deepEqual(texts.at(-1), "the session is not at ws://c/; trying again");
  assert.equal(again.open(KEPT).sent[0].resume.token, "t");
  assert.equal(client.status, "connected");
});

test("a connection is restored at the node's own address, then at the given one", async (t) => {
  const addresses = ["tls://n1:7350", "ws://n1:7350/play?x=1"];
  const { net, a } = await start(t, {}, { ...KEPT, addresses });
  a.onclose();
  for (let round = 0; round < 2; round += 1) {
    (await net.next("ws://n1:7350/play?x=1")).onclose();
    (await net.next(A)).onclose();
  }
  (await net.next("ws://n1:7350/play?x=1")).open({ ...KEPT, resumed: { received: 0 } }).onclose();
  // It says no other address.
  await net.next("ws://n1:7350/play?x=1");
});

test("a session at another node is found through the cluster's own address", async (t) => {
  const { net, b, room } = await elsewhere(t);
  b.onclose();
  (await net.next(B)).onclose();
  const balanced = await net.next(A);
  balanced.onopen();
  assert.equal(balanced.sent[0].resume.token, "b");
  balanced.says({ type: "redirect", request: 0, addresses: [C], reservation: "" });
  (await net.next(C)).open({ ...KEPT, resumed: { received: 1, lost: [] }, addresses: [C] });
  assert.equal(room.status, "back");
});

test("a room whose node is gone is joined again where the first node says", async (t) => {
  const { net, a, b, room } = await elsewhere(t, { again: true }), heard = [];
  room.onStatus((status, { code }) => heard.push([status, code]));
  b.onclose();
  (await net.next(B)).onclose();
  // Another node has its session's name, and begins a new one.
  (await net.next(A)).open({ ...KEPT, resume: "c" });
  assert.equal((await joined(a, 2)).room, "r1");
  refuses(a, "room_not_found");
  assert.equal(joins(a).at(-1).type, "join_or_create");
  redirects(a, [C]);
  const c = (await net.next(C)).open({ ...KEPT, addresses: [C] });
  c.joins({ round: 2 });
  // One whose node shuts down is no reason to wait for the first one's next connection.
  c.says({ type: "left", room: 1, code: "shutting_down", text: "it is" });
  await joined(a, 4);
  // And one that is away for a while does not end the stay.
  for (const count of [4, 5, 6]) {
    await joined(a, count);
    redirects(a, [B]);
    (await net.next(B)).onclose();
  }
  await joined(a, 7);
  a.joins({ round: 3 });
  assert.deepEqual(room.state, { round: 3 });
  assert.deepEqual(heard, [
    ["lost", "connection_lost"], ["joined", ""], ["lost", "shutting_down"], ["lost", "unreachable"],
    ["joined", ""],
  ]);
});

test("closing the first connection closes all", async (t) => {
  const { client, a, b, room } = await elsewhere(t), lefts = [];
  room.onLeft((code) => lefts.push(code));
  room.close();
  assert.equal(client.status, "ended");
  assert.deepEqual([a, b].map(({ sent }) => sent.at(-1).type), ["goodbye", "goodbye"]);
  assert.deepEqual([a, b].map(({ isClosed }) => isClosed), [true, true]);
  assert.deepEqual(lefts, ["left"]);
  // Or losing it for good.
  const lost = await elsewhere(t, { reconnectTimeoutMs: 0 });
  lost.a.onclose();
  assert.deepEqual([lost.room.reason.code, lost.b.isClosed], ["connection_lost", true]);
});

test("a session without rooms is closed after ten seconds", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { client, net, a, b, room } = await elsewhere(t);
  const leaves = (node) => node.says({
    type: "left", request: node.request("leave"), room: 1, code: "left", text: "",
  });
  const leaving = room.leave();
  leaves(b);
  await leaving;
  t.mock.timers.tick(9_999);
  // One more room comes in time.
  const second = client.joinOrCreate("lab");
  redirects(a, [B]);
  b.joins({});
  t.mock.timers.tick(60_000);
  assert.ok(!b.isClosed);
  const left = (await second).leave();
  leaves(b);
  await left;
  t.mock.timers.tick(9_999);
  assert.ok(!b.isClosed);
  t.mock.timers.tick(1);
  assert.ok(b.isClosed);
  assert.equal(b.sent.at(-1).type, "goodbye");
  assert.equal(client.status, "connected");
  // A later room opens another.
  client.joinOrCreate("lab").catch(() => {});
  redirects(a, [B]);
  assert.equal((await net.next(B)).url, B);
});

test("a secure client is never led to a node without TLS", async (t) => {
  const { WebSocket, ...net } = network();
  const client = new Client("wss://a", { format: "json", WebSocket, backoffMs: 1 });
  t.after(() => client.close());
  const a = (await net.next("wss://a/")).open({ ...KEPT, addresses: ["ws://a"] });
  const joining = client.joinOrCreate("lab");
  redirects(a, ["ws://b", "tcp://b:7350", "http://b"]);
  await assert.rejects(joining, { code: "unreachable", message: /ws:\/\/b, tcp:\/\/b:7350.*wss:/ });
  a.onclose();
  const again = await net.next("wss://a/");
  again.onopen();
  again.says({ type: "redirect", request: 0, addresses: ["ws://b"], reservation: "" });
  await net.next("wss://a/");
  // The other way round it is.
  const open = await start(t), second = open.client.joinOrCreate("lab");
  second.catch(() => {});
  redirects(open.a, ["tls://b", "wss://b"]);
  await open.net.next("wss://b/");
});

test("absurd addresses do no harm", async (t) => {
  const many = Array.from({ length: 100_000 }, (_, index) => `tcp://node${index}`);
  const long = `ws://b/${"b".repeat(10_000)}`;
  const absurd = [[], [""], ["ws://"], ["ws://["], ["ws:"], ["javascript:1"], many, [long]];
  for (const addresses of absurd) {
    const { client, net, a } = await start(t, {}, { ...KEPT, addresses });
    const joining = client.joinOrCreate("lab");
    redirects(a, addresses);
    await assert.rejects(joining, ({ code, message }) =>
      code === "unreachable" && message.length < 300);
    assert.equal(client.status, "connected");
    a.onclose();
    await net.next(A);
    client.close();
  }
});

test("a redirect that nothing asked for ends the client, and nothing hangs", async (t) => {
  const of = (request) => ({ type: "redirect", request, addresses: [B], reservation: "seat" });
  // Of a request that was never made, of one that is no join, and of a first hello.
  for (const unasked of [
    ({ a }) => a.says(of(9)),
    ({ a }) => a.says(of(a.request("list"))),
  ]) {
    const world = await start(t), listing = world.client.list();
    unasked(world);
    await assert.rejects(listing, { code: "bad_message" });
    assert.deepEqual([world.client.status, world.net.made], ["ended", []]);
  }
  const { WebSocket, ...net } = network();
  const client = new Client(A, { format: "json", WebSocket });
  const a = await net.next(A);
  a.onopen();
  a.says(of(0));
  assert.deepEqual([client.status, net.made], ["ended", []]);
  // Of a join that is given up, or was answered.
  const late = await start(t), joining = late.client.joinOrCreate("lab");
  late.a.joins({});
  await joining;
  redirects(late.a, [B]);
  assert.deepEqual([late.client.status, late.net.made], ["connected", []]);
});
