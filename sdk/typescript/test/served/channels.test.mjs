// Channels and devices in the browser's client. `make test` runs this if Node is installed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "./callbacks.mjs";
import { playfield, World } from "./model.mjs";

const { SUBSCRIPTIONS_MAX } = playfield;

/** A client of a node that the test speaks for. */
function start() {
  const world = new World();
  world.onsocket = (socket) => queueMicrotask(() => socket.open());
  const heard = [];
  const on = (...names) =>
    Object.fromEntries(names.map((name) => [name, (...values) => heard.push([name, ...values])]));
  const connection = connect("Ann");
  const socket = () => world.sockets.at(-1);
  const welcome = (resumed) => {
    const message = { type: "welcome", protocol: 1, session: 7, resume: "t", heartbeat_ms: 30_000 };
    socket().says({ ...message, grace_ms: 10_000, resumed });
  };
  const sent = (type) => socket().sent.filter((message) => message.type === type);
  const last = (type) => sent(type).at(-1);
  const comesBack = async (resumed) => {
    const before = socket();
    before.cut();
    while (socket() === before || socket().sent.length === 0) await world.advance(10);
    welcome(resumed);
  };
  return { world, heard, on, connection, socket, welcome, sent, last, comesBack };
}

const ALL = ["publication", "subscribed", "missed", "presence", "unsubscribed"];
const RESUMED = { received: 0 };

async function subscribed() {
  const game = start();
  await game.world.advance(1);
  game.welcome();
  const chat = game.connection.subscribe("chat", game.on(...ALL));
  const { request } = game.last("subscribe");
  game.socket().says({ type: "subscribed", request, channel: 77, epoch: 9, offset: 5, members: 2 });
  assert.deepEqual(game.heard.splice(0), [["subscribed", { recovered: true, missed: 0, members: 2 }]]);
  const publish = (offset) =>
    game.socket().says({ type: "publication", channel: 77, offset, user: "bob", payload: offset });
  return { ...game, chat, publish };
}

const publication = (offset) => ["publication", offset, { offset, user: "bob", payload: offset }];

test("a subscription is asked for again on each connection, and says what was missed", async () => {
  const { heard, chat, publish, last, comesBack, socket } = await subscribed();
  publish(6);
  publish(7);
  assert.deepEqual(heard.splice(0), [publication(6), publication(7)]);
  await comesBack(RESUMED);
  let { request, since, presence } = last("subscribe");
  assert.deepEqual([since, presence], [{ epoch: 9, offset: 7 }, true]);
  socket().says({ type: "subscribed", request, channel: 77, epoch: 9, offset: 7, recovered: true });
  publish(8);
  assert.deepEqual(heard.splice(0), [["subscribed", { recovered: true, missed: 0, members: 0 }], publication(8)]);
  // In a new session too.
  await comesBack();
  ({ request } = last("subscribe"));
  socket().says({ type: "subscribed", request, channel: 77, epoch: 9, offset: 20 });
  assert.deepEqual(heard.splice(0), [["subscribed", { recovered: false, missed: 12, members: 0 }]]);
  await comesBack(RESUMED);
  ({ request } = last("subscribe"));
  socket().says({ type: "subscribed", request, channel: 77, epoch: 10, offset: 3 });
  assert.deepEqual(heard.splice(0), [["subscribed", { recovered: false, missed: null, members: 0 }]]);
  assert.deepEqual(chat.position, { epoch: 10, offset: 3 });
});

test("a gap is reported, and what is known is dropped", async () => {
  const { heard, publish } = await subscribed();
  for (const offset of [4, 5, 6, 6, 9, 8, 10]) publish(offset);
  assert.deepEqual(heard, [publication(6), ["missed", 2], publication(9), publication(10)]);
});

test("a subscription made before the welcome waits, one that ended is not asked for again", async () => {
  const { world, heard, connection, chat, publish, sent, comesBack } = await subscribed();
  assert.throws(() => connection.subscribe("chat"), /already/);
  chat.unsubscribe();
  assert.deepEqual(sent("unsubscribe"), [{ type: "unsubscribe", channel: 77 }]);
  publish(6);
  assert.deepEqual(heard, []);
  world.sockets.at(-1).cut();
  connection.subscribe("news", {}, { since: { epoch: 4, offset: 2 } });
  await comesBack(RESUMED);
  const [news, ...rest] = sent("subscribe");
  assert.deepEqual([news.channel, news.since, news.presence, rest], ["news", { epoch: 4, offset: 2 }, false, []]);
});

test("a subscription that ends before its answer is ended after it, unless another took its place", async () => {
  for (const again of [false, true]) {
    const { world, welcome, connection, sent, socket, on, heard } = start();
    await world.advance(1);
    welcome();
    connection.subscribe("chat", on(...ALL)).unsubscribe();
    if (again) connection.subscribe("chat");
    const [{ request }] = sent("subscribe");
    socket().says({ type: "subscribed", request, channel: 77, epoch: 9, offset: 5 });
    assert.deepEqual([heard, sent("unsubscribe").length], [[], again ? 0 : 1]);
  }
});

test("a refusal ends a subscription; one that passes delays it once it has begun", async () => {
  const { world, heard, connection, on, sent, last, comesBack, socket } = await subscribed();
  const refuse = (code, retry_after_ms) =>
    socket().says({ type: "error", request: last("subscribe").request, code, text: "no", retry_after_ms });
  connection.subscribe("news", on("unsubscribed"));
  refuse("limit");
  assert.deepEqual(heard.splice(0), [["unsubscribed", "limit", "no"]]);
  await comesBack(RESUMED);
  refuse("too_fast", 300);
  await world.advance(299);
  assert.equal(sent("subscribe").length, 1);
  await world.advance(1);
  assert.equal(sent("subscribe").length, 2);
  refuse("forbidden");
  assert.deepEqual(heard.splice(0), [["unsubscribed", "forbidden", "no"]]);
  connection.subscribe("more", on("unsubscribed"));
  connection.close();
  assert.deepEqual(heard, [["unsubscribed", "left", "disconnected"]]);
});

test("subscriptions are bounded, and the node may end them", async () => {
  const { world, heard, connection, on, socket } = await subscribed();
  for (let number = 1; number < SUBSCRIPTIONS_MAX; number++) connection.subscribe(`${number}`);
  connection.subscribe("news", on("unsubscribed"));
  await world.advance(1);
  assert.equal(heard.splice(0)[0][1], "limit");
  socket().says({ type: "unsubscribed", channel: 77, code: "too_slow", text: "read faster" });
  assert.deepEqual(heard, [["unsubscribed", "too_slow", "read faster"]]);
});

test("publish, members and history are answered, over a lost connection too", async () => {
  const { connection, last, comesBack, socket } = await subscribed();
  const published = connection.publish("chat", { text: "hi" });
  const members = connection.members("chat"), history = connection.history("chat", { limit: 3 });
  assert.equal(connection.publishUnconfirmed("chat", 1), true);
  await comesBack(RESUMED);
  const of = (type) => socket().sent.find((message) => message.type === type).request;
  socket().says({ type: "published", request: of("publish"), offset: 6 });
  socket().says({ type: "members", request: of("members"), sequence: 1, count: 1, members: [{ session: 7, name: "Ann" }] });
  socket().says({ type: "history", request: of("history"), epoch: 9, offset: 6, publications: [] });
  assert.equal(await published, 6);
  assert.deepEqual(await members, { sequence: 1, count: 1, members: [{ session: 7, name: "Ann" }] });
  assert.deepEqual(await history, { epoch: 9, offset: 6, bytes: false, publications: [] });
  const lost = connection.publish("chat", 1);
  await comesBack({ received: 5, lost: [{ messages: 1 }] });
  await assert.rejects(lost, { code: "connection_lost" });
  const refused = connection.publish("chat", 1);
  socket().says({ type: "error", request: last("publish").request, code: "forbidden", text: "no" });
  await assert.rejects(refused, { code: "forbidden" });
});

async function registered(command) {
  const game = start();
  await game.world.advance(1);
  game.welcome();
  const on = { ...game.on("registered", "unregistered"), command };
  const device = game.connection.register("d1", on, { metadata: { model: "x" }, tags: ["north"] });
  const { request, ...message } = game.last("register");
  assert.deepEqual(message, { type: "register", device: "d1", metadata: { model: "x" }, tags: ["north"] });
  game.socket().says({ type: "registered", request, is_new: true });
  assert.equal(await device.registered, device);
  assert.deepEqual(game.heard.splice(0), [["registered", { isNew: true, bytes: false }]]);
  return { ...game, device };
}

test("a device answers commands, with what the callback returns or throws", async () => {
  const { world, sent, socket } = await registered(async (payload) => {
    if (payload === "jam") throw new Error("it is stuck");
    return payload + 1;
  });
  socket().says({ type: "command", payload: 1 });
  socket().says({ type: "command", command: 5, payload: 1 });
  socket().says({ type: "command", command: 6, payload: "jam" });
  await world.advance(1);
  assert.deepEqual(sent("answer"), [
    { type: "answer", command: 5, payload: 2 },
    { type: "answer", command: 6, error: "it is stuck" },
  ]);
});

test("a device registers again in a new session, and reports are answered", async () => {
  const { world, heard, device, sent, last, comesBack, socket } = await registered();
  await comesBack({ received: 1 });
  assert.deepEqual(sent("register"), []);
  const reply = device.report({ c: 20 });
  assert.equal(device.reportUnconfirmed({ c: 21 }), true);
  socket().says({ type: "reply", request: sent("report")[0].request, payload: "ok" });
  assert.equal(await reply, "ok");
  await comesBack();
  socket().says({ type: "error", request: last("register").request, code: "limit", text: "no", retry_after_ms: 200 });
  await world.advance(200);
  assert.equal(sent("register").length, 2);
  socket().says({ type: "registered", request: last("register").request, is_new: false, bytes: true });
  await comesBack();
  socket().says({ type: "error", request: last("register").request, code: "device_taken", text: "no" });
  assert.deepEqual(heard, [["registered", { isNew: false, bytes: true }], ["unregistered", "device_taken", "no"]]);
});

test("an answer to a command of an earlier session is dropped", async () => {
  let answer;
  const { world, sent, comesBack, socket } = await registered(() => new Promise((resolve) => (answer = resolve)));
  socket().says({ type: "command", command: 5, payload: 1 });
  await comesBack();
  answer(1);
  await world.advance(1);
  assert.deepEqual(sent("answer"), []);
});
