// A node that is upgraded: its messages by the schema of a room type before, and by the one after.

import { schemaOf } from "./node.mjs";
import { bytes, stories } from "./vectors.mjs";

const story = stories().find(({ name }) => name === "owners.json");
export const [snapshot, , later] = story.viewers.find(({ viewer }) => viewer === 1).steps;
const struct = (fields) => ({
  struct: "S", fields: Object.entries(fields).map(([name, type]) => ({ name, type })),
});
const own = (name) => story.schema.state.fields.find((field) => field.name === name);

export const BEFORE = schemaOf(story.schema.state, struct({ bots: "u8", lives: "u8" }), [
  { name: "Old", type: "u8", reply: "unit" },
  { name: "Draw", type: struct({ count: "u8" }), reply: struct({ left: "u8" }) },
  { name: "Note", type: struct({ text: "text" }), reply: "unit" },
], [{ name: "Dealt", type: struct({ to: "u8" }) }]);

/** New things are declared first. A message is gone, as in no compatible schema. */
export const AFTER = schemaOf(
  {
    struct: "S",
    fields: [
      { ...own("hands"), name: "wishes" }, { name: "title", type: "text" },
      ...story.schema.state.fields,
    ],
  },
  struct({ lives: "u8", bots: "u8" }),
  [
    { name: "Alert", type: "u8", reply: "unit" },
    { name: "Draw", type: struct({ from: { option: "u8" }, count: "u8" }),
      reply: struct({ deck: "text", left: "u8" }) },
    { name: "Dance", type: "unit", reply: "unit" },
    { name: "Note", type: struct({ tags: { list: "text" }, text: "text" }), reply: "unit" },
  ],
  [{ name: "Opened", type: "unit" }, { name: "Dealt", type: struct({ by: "u8", to: "u8" }) }],
);
export const LAST = schemaOf(AFTER.state, AFTER.options, AFTER.messages.toReversed(), AFTER.events);

// The story's first snapshot and third step, by `AFTER`: two bits more in each mask of the state.
export const SNAPSHOT = `01 61 ${snapshot.packed.slice(0, 16)} 0c ${snapshot.packed.slice(18)}`;
export const PATCH = `14 ${later.packed.slice(2, 14)} 08 ${later.packed.slice(16)}`;

/** The node answers a join, shows a room's state, or sends another schema. */
export const joined = (node, room, { fingerprint }, roomType = "lab") =>
  node.says({
    type: "joined", request: node.request("join_or_create"), room, id: `r${room}`,
    room_type: roomType, player: 1, epoch: 3, fingerprint,
  });
export const shows = (node, room, version, hex) =>
  node.says({ type: "snapshot", room, epoch: 3, version, body: bytes(hex) });
export const switches = (node, schema = AFTER, roomType = "lab") =>
  node.saysSchema(schema, { room_type: roomType });
