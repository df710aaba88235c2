/** The names of the protocol's codes, from 1 on (docs/protocol.md, "Errors"). */
export const NAMES = (
  "bad_preamble hello_expected unsupported_protocol wrong_format bad_message too_large " +
  "bad_payload unknown_message not_joined room_not_found unknown_room_type room_full " +
  "room_locked refused already_joined busy limit room_closed room_failed kicked timeout " +
  "too_slow shutting_down unauthorized schema_mismatch internal left duplicate_request too_fast " +
  "room_exists bad_key creation_closed bad_reservation taken_over connection_lost already_here " +
  "bad_ticket forbidden unknown_channel device_taken unknown_device elsewhere room_moved " +
  "unreachable"
).split(" ");

const ROOM_MIN = 1000, ROOM_MAX = 65_535;

/** The name of a code, or a room's own number. */
export type Code = string | number;

/** The code with a number, if there is one. */
export const codeOf = (number: number): Code | undefined =>
  number >= ROOM_MIN && number <= ROOM_MAX ? number : NAMES[number - 1];

/** Whether it is a code as `json` has it. */
export function isCode(code: unknown): code is Code {
  if (typeof code === "string") return NAMES.includes(code);
  return Number.isInteger(code) && (code as number) >= ROOM_MIN && (code as number) <= ROOM_MAX;
}
