/** Numbers for people. */

import type { Cost, Load } from "./api.js";

/** Bytes with three digits or so. */
export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const unit = Math.min(Math.floor(Math.log10(Math.max(count, 1)) / 3), units.length - 1);
  const value = count / 1000 ** unit;
  return `${value.toFixed(unit > 0 && value < 100 ? 1 : 0)} ${units[unit]}`;
}

/** A number with few digits, as for the axis of a chart. */
export const short = new Intl.NumberFormat("en", {
  notation: "compact",
  maximumFractionDigits: 1,
}).format;

/** How late a room was lately, and what it has missed since it began. */
export function lateness({ late_us, syncs_missed }: Load): string {
  const missed = syncs_missed > 0 ? `, ${syncs_missed.toLocaleString()} missed` : "";
  return duration(late_us) + missed;
}

export const total = ({ ticks_us, sync_us, patches_us }: Cost): number =>
  ticks_us + sync_us + patches_us;

/** Microseconds in the unit that fits. */
export function duration(us: number): string {
  if (us < 1000) return `${us} µs`;
  if (us < 10_000_000) return `${(us / 1000).toFixed(us < 100_000 ? 1 : 0)} ms`;
  return `${(us / 1e6).toFixed(1)} s`;
}

/** What a sync consisted of. */
export const parts = ({ ticks_us, sync_us, patches_us }: Cost): string =>
  `ticks ${duration(ticks_us)}, comparing ${duration(sync_us)}, patches ${duration(patches_us)}`;

/** A time in a room: hours, minutes, seconds and milliseconds. */
export function clock(ms: number): string {
  const part = (value: number, digits = 2): string =>
    String(Math.floor(value)).padStart(digits, "0");
  const hours = ms >= 3_600_000 ? `${Math.floor(ms / 3_600_000)}:` : "";
  return `${hours}${part((ms / 60_000) % 60)}:${part((ms / 1000) % 60)}.${part(ms % 1000, 3)}`;
}

/** How long something lasts, in the two largest units. */
export function span(ms: number): string {
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  const h = Math.floor(s / 3600);
  return h < 48 ? `${h} h ${Math.floor((s % 3600) / 60)} min` : `${Math.floor(h / 24)} d ${h % 24} h`;
}
