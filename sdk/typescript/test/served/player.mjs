// Plays the conformance scenarios (conformance/README.md) with the browser's client, in Node and in
// browsers.

const STEP_MAX_MS = 20_000;
/** How many scenarios are played at the same time. */
const AT_ONCE_MAX = 8;

/** What comes, in order, until it is taken. */
class Queue {
  #items = [];
  #wake = () => {};
  put = (item) => {
    this.#items.push(item);
    this.#wake();
  };
  async next() {
    while (!this.#items.length) await new Promise((wake) => (this.#wake = wake));
    return this.#items.shift();
  }
}

const show = (value) => JSON.stringify(value);

/** Whether values are equal, however their integers are written. In `packed` floats are numbers. */
const isEqual = (expected, found) => {
  if (typeof found === "number" && (Math.fround(expected) === found || String(found) === expected))
    return true;
  if (typeof expected === "number" && typeof found === "string") return String(expected) === found;
  if (typeof expected === "string" && typeof found === "number") return String(found) === expected;
  if (typeof expected === "number" && typeof found === "number") {
    const isSingle = !Number.isInteger(expected) && Math.fround(expected) === Math.fround(found);
    return expected === found || isSingle;
  }
  if (typeof expected !== "object" || expected === null) return expected === found;
  if (typeof found !== "object" || found === null) return false;
  if (Array.isArray(expected) !== Array.isArray(found)) return false;
  const names = Object.keys(expected);
  return names.length === Object.keys(found).length &&
    names.every((name) => Object.hasOwn(found, name) && isEqual(expected[name], found[name]));
};
const equal = (expected, found) => {
  if (!isEqual(expected, found)) throw new Error(`it is ${show(found)}`);
};

/** Checks an error against what a step has as `refused`. */
const refusedAs = ({ code, text }, error) => {
  if (code !== undefined && String(error.code) !== code)
    throw new Error(`the code is ${error.code}: ${error.message}`);
  if (text !== undefined && text !== error.message) throw new Error(`the text is ${error.message}`);
};
/** The result, or `undefined` if it was refused as the step says. */
const taken = async ({ refused }, promise) => {
  if (refused === undefined) return promise;
  let error;
  try {
    await promise;
  } catch (caught) {
    error = caught;
  }
  if (!error) throw new Error("it was not refused");
  refusedAs(refused, error);
};

/** A client of a scenario. */
class Client {
  statuses = new Queue();
  rooms = new Map();
  answers = new Map();
  channels = new Map();

  constructor({ playfield, control }, link, format, { name, token, tokens, reconnects }) {
    this.link = link;
    this.control = control;
    this.opened = new Promise((opens, fails) => {
      const on = {
        lost: () => this.statuses.put({ status: "lost" }),
        resumed: () => this.statuses.put({ status: "resumed" }),
        newSession: () => this.statuses.put({ status: "new_session" }),
        ended: (code, text) => {
          this.statuses.put({ status: "ended", code });
          fails(Object.assign(new Error(text), { code }));
        },
      };
      let asked = 0;
      const next = () => tokens[Math.min(asked++, tokens.length - 1)];
      this.promises = new playfield.Client(`ws://${link}/`, {
        name, on, format, token: tokens ? next : token, backoffMs: 5, backoffMsMax: 20,
        reconnectTimeoutMs: reconnects === false ? 0 : undefined,
      });
      this.connection = this.promises.connection;
      this.promises.onStatus((status) => status === "connected" && opens());
    });
  }

  action(action) {
    return this.control(`/links/${this.link.split(":")[1]}/${action}`);
  }

  /** Joins by a promise of the client. */
  async join(step, joining) {
    const room = await taken(step, joining);
    if (!room) return;
    const events = new Queue(), changes = new Set(), wake = () => changes.forEach((wake) => wake());
    const inside = { room, events, changes, left: null };
    room.onEvent("*", (payload, event) => events.put({ event, payload }));
    room.onMissed((missed) => events.put({ missed }));
    room.onRefused((error) => events.put({ error }));
    room.onState(wake);
    room.onLeft((code, text) => {
      inside.left = { code, text };
      wake();
    });
    let isWeak = false;
    room.onStatus((status) => {
      if (status === "weak" || (isWeak && status === "back")) this.statuses.put({ status });
      isWeak = status === "weak";
    });
    this.rooms.set(step.room ?? "room", inside);
  }

  room({ room: as = "room" }) {
    const inside = this.rooms.get(as);
    if (!inside) throw new Error(`it is in no room ${as}`);
    return inside;
  }
}

const untilState = async ({ room, changes }, { at = [], is, absent }) => {
  for (;;) {
    let found = room.state;
    for (const step of at) {
      found = found !== null && typeof found === "object" && Object.hasOwn(found, step)
        ? found[step]
        : undefined;
    }
    if (absent ? found === undefined : found !== undefined && isEqual(is, found)) return;
    await new Promise((wake, fails) => {
      const again = () => (changes.delete(again), clearTimeout(timer), wake());
      const timer = setTimeout(
        () => fails(new Error(`the state is ${show(room.state)}`)),
        STEP_MAX_MS - 1000,
      );
      changes.add(again);
    });
  }
};

const inChannel = (event) => async (client, step) => {
  const { kind, ...found } = await client.channels.get(step.channel).events.next();
  if (kind !== event) throw new Error(`${kind} came: ${show(found)}`);
  delete found.missed;
  for (const name of Object.keys(found)) equal(step[name], found[name]);
};

const actions = {
  join: async (client, step) => {
    const { type, key, name } = step.ticket ?? {};
    const id = type ? await client.control(`/ticket/${type}/${key}/${name}`) : step.id;
    await client.join(step, client.promises.joinById(id));
  },
  join_by_key: (client, step) => client.join(step, client.promises.join(step.type, step.key)),
  create: (client, step) => {
    const { type, key, code, options, private: isPrivate } = step;
    const how = { key, code, options, private: isPrivate };
    return client.join(step, client.promises.create(type, how));
  },
  join_or_create: (client, step) => {
    const { type, key, options } = step;
    return client.join(step, client.promises.joinOrCreate(type, { key, options }));
  },
  leave: async (client, step) => {
    await client.room(step).room.leave();
    client.rooms.delete(step.room ?? "room");
  },
  send: (client, step) => {
    const sent = client.room(step).room.send(step.message, step.payload);
    if (!sent) throw new Error("it can't be sent");
  },
  request: async (client, step) => {
    const asking = client.room(step).room.request(step.message, step.payload);
    if (step.as) {
      asking.catch(() => {});
      client.answers.set(step.as, asking);
      return;
    }
    const reply = await taken(step, asking);
    if ("reply" in step) equal(step.reply, reply ?? null);
  },
  close: (client) => client.connection.close(),
  cut: (client) => client.action("cut"),
  cut_after: (client, { bytes }) => client.action(`cut_after/${bytes}`),
  restore: (client) => client.action("restore"),
  hold: (client) => client.action("hold"),
  move: (client) => client.action("move"),
  alone: (client) => client.action("alone"),
  stop: (client) => client.action("stop"),
  lose_patch: (client) => client.action("lose_patch"),
  spoil_check: (client) => client.action("spoil_check"),
  subscribe: async (client, step) => {
    const events = new Queue();
    let isBegun = false;
    await taken(step, new Promise((begins, fails) => {
      const on = {
        publication: (payload) => events.put({ kind: "publication", payload }),
        missed: (missed) => events.put({ kind: "missed", missed }),
        subscribed: ({ recovered, missed }) => {
          if (isBegun) events.put({ kind: "subscribed", recovered, missed });
          isBegun = true;
          client.channels.set(step.channel, { subscription, events });
          begins();
        },
        unsubscribed: (code, text) => {
          events.put({ kind: "unsubscribed", code });
          fails(Object.assign(new Error(text), { code }));
        },
      };
      const presence = ({ name, joined }) => events.put({ kind: "presence", name, joined });
      if (step.presence) on.presence = presence;
      const subscription = client.connection.subscribe(step.channel, on);
    }));
  },
  list: async (client, step) => {
    const { type, filter, limit, rooms } = step;
    const listed = await taken(step, client.connection.list({ roomType: type, filter, limit }));
    if (!listed) return;
    if (listed.length !== rooms.length)
      throw new Error(`there are ${listed.length}: ${show(listed)}`);
    for (const room of rooms) {
      // A member that is absent is null.
      const isLike = (one) =>
        Object.keys(room).every((name) => isEqual(room[name], one[name] ?? null));
      if (!listed.some(isLike)) throw new Error(`${show(room)} is not in ${show(listed)}`);
    }
  },
  schema: async (client, { type, has, refused }) => {
    const schema = await taken({ refused }, client.connection.schema(type));
    if (!schema) return;
    for (const [member, names] of Object.entries(has))
      equal(
        names,
        schema[member].map(({ name }) => name),
      );
  },
  unsubscribe: (client, step) => {
    client.channels.get(step.channel).subscription.unsubscribe();
    client.channels.delete(step.channel);
  },
  register: async (client, step) => {
    const { device: id, metadata, tags } = step, commands = new Queue();
    let isNew;
    const on = {
      command: (payload) => (commands.put(payload), payload + 1),
      registered: (how) => (isNew ??= how.isNew),
    };
    const device = client.connection.register(id, on, { metadata, tags });
    if (!(await taken(step, device.registered))) return;
    if ("is_new" in step) equal(step.is_new, isNew);
    Object.assign(client, { device, commands });
  },
  report: async (client, step) => {
    const reply = await taken(step, client.device.report(step.payload));
    if ("reply" in step) equal(step.reply, reply);
  },
  push: (client, { device, payload }) => client.control(`/devices/${device}/push/${payload}`),
  end_sessions: (client, { user, text }) => client.control(`/users/${user}/end/${text}`),
  take_out: (client, { user, channel }) => client.control(`/users/${user}/take_out/${channel}`),
  command: async (client, { device, payload, answer }) => {
    equal(answer, Number(await client.control(`/devices/${device}/request/${payload}`)));
  },
  publish: (client, step) => taken(step, client.connection.publish(step.channel, step.payload)),
  members: async (client, step) => {
    const answer = await taken(step, client.connection.members(step.channel));
    if (answer) equal(step.names.sort(), answer.members.map(({ name }) => name).sort());
  },
  history: async (client, step) => {
    const { channel, limit } = step;
    const answer = await taken(step, client.connection.history(channel, { limit }));
    if (answer) equal(step.payloads, answer.publications.map(({ payload }) => payload));
  },
};

const expectations = {
  lost_patch: (client) => client.action("lost_patch"),
  spoiled_check: (client) => client.action("spoiled_check"),
  snapshot: (client) => client.action("snapshot"),
  all_cut: (client) => client.action("all_cut"),
  played: (client) => client.action("played"),
  state: (client, step) => untilState(client.room(step), step),
  info: (client, step) => equal(step.is, client.room(step).room.info[step.member] ?? null),
  event: async (client, step) => {
    const { event, payload = null, missed } = await client.room(step).events.next();
    if (event !== step.event) throw new Error(`${show({ event, payload, missed })} came`);
    if ("payload" in step) equal(step.payload, payload);
  },
  error: async (client, step) => {
    const { error, event, missed } = await client.room(step).events.next();
    if (String(error) !== step.code) throw new Error(`${show({ error, event, missed })} came`);
  },
  missed: async (client, step) => {
    const { missed, event } = await client.room(step).events.next();
    if (missed === undefined) throw new Error(`the event ${event} came`);
    if ("events" in step) equal(step.events, missed);
  },
  answer: async (client, step) => {
    const { as, lost } = step;
    const asking = client.answers.get(as);
    if (lost) return taken({ refused: { code: "connection_lost" } }, asking);
    const reply = await taken(step, asking);
    if ("reply" in step) equal(step.reply, reply ?? null);
  },
  left: async (client, step) => {
    const inside = client.room(step);
    while (!inside.left) await new Promise((wake) => inside.changes.add(wake));
    refusedAs(step, { code: inside.left.code, message: inside.left.text });
  },
  status: async (client, step) => {
    const { status, code } = await client.statuses.next();
    if (status !== step.status) throw new Error(`it is ${status}: ${code}`);
    if ("code" in step && status === "ended") equal(step.code, code);
  },
  commanded: async (client, { payload }) => equal(payload, await client.commands.next()),
  publication: inChannel("publication"),
  publications: async (client, { channel, payloads, some_missed: someMissed }) => {
    const { events } = client.channels.get(channel);
    for (let place = 0; place < payloads.length; ) {
      const { kind, payload, missed } = await events.next();
      if (kind === "publication") equal(payloads[place++], payload);
      else if (missed > 0 && someMissed) place += missed;
      else if (missed !== 0) throw new Error(`${kind} came after ${place}: ${missed} missed`);
    }
  },
  presence: inChannel("presence"),
  subscribed: inChannel("subscribed"),
  unsubscribed: inChannel("unsubscribed"),
};

/** A value with its references replaced. */
const filled = (value, run, clients) => {
  if (typeof value === "string") {
    return value.replace(/\$\{([^}]*)\}/g, (_, name) => {
      if (name === "run") return run;
      const [client, room, member] = name.split(".");
      return String(clients.get(client).room({ room }).room[member]);
    });
  }
  if (Array.isArray(value)) return value.map((element) => filled(element, run, clients));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, of]) => [name, filled(of, run, clients)]),
  );
};

/** Plays a scenario once. */
async function play({ steps }, { playfield, controls, leftOut }, run, format) {
  const clients = new Map();
  /** Asks the scenario server for something. */
  const control = async (path) => {
    const answer = await fetch(controls + path), text = await answer.text();
    if (!answer.ok) throw new Error(text);
    return text;
  };
  for (const [index, raw] of steps.entries()) {
    let timer;
    const late = new Promise((_, fails) => {
      timer = setTimeout(() => fails(new Error(`nothing in ${STEP_MAX_MS} ms`)), STEP_MAX_MS);
    });
    const once = async () => {
      const step = filled(raw, run, clients), kind = step.do ?? step.expect;
      if (leftOut.steps[kind] !== undefined) return;
      if (kind === "connect") {
        const link = await control(step.link ? `/link/${step.link}` : "/link");
        const client = new Client({ playfield, control }, link, format, {
          name: step.client,
          ...step,
        });
        await taken(step, client.opened);
        return clients.set(step.client, client);
      }
      const does = (step.do ? actions : expectations)[kind];
      if (!does) throw new Error(`the runner can't ${kind}`);
      await does(clients.get(step.client), step);
    };
    try {
      await Promise.race([once(), late]);
    } catch (error) {
      throw new Error(`step ${index + 1}, ${show(raw)}: ${error.message}`);
    } finally {
      clearTimeout(timer);
    }
  }
  for (const { connection } of clients.values()) connection.close();
}

/**
 * Plays scenarios, each in all formats of the client.
 *
 * @param playfield The client's module.
 * @param controls The URL of the scenario server.
 * @param leftOut What the client leaves out: its file in conformance/clients.
 * @param scenarios The scenarios, of all files.
 * @param run A letter that no other run with this server has.
 * @returns `runs`, how many were played; `failed`, texts of those that failed; `passed`, of those
 *   that were left out.
 */
export async function playAll({ playfield, controls, leftOut, scenarios, run }) {
  const failed = [], passed = [], waiting = [];
  let runs = 0;
  for (const scenario of scenarios) {
    const isWatch = (step) => step.do === "watch";
    const action = scenario.steps.find(
      (step) => !isWatch(step) && leftOut.steps[step.do] !== undefined,
    );
    const why = leftOut.scenarios[scenario.name] ?? leftOut.steps[action?.do];
    if (why !== undefined) passed.push(`${scenario.name}: ${why}`);
    else waiting.push(...leftOut.formats.map((format) => [scenario, format]));
  }
  const playSome = async () => {
    for (let next; (next = waiting.shift());) {
      const [scenario, format] = next;
      try {
        await play(scenario, { playfield, controls, leftOut }, `${run}${++runs}`, format);
      } catch (error) {
        failed.push(`${scenario.name}, ${format}: ${error.message}`);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE_MAX }, playSome));
  return { runs, failed, passed };
}
