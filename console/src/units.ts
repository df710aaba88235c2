/** Numbers for people. */

import type { Load } from "./api.js";

/** Bytes with three digits or so. */
export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const unit = Math.min(Math.floor(Math.log10(Math.max(count, 1)) / 3), units.length - 1);
  const value = count / 1000 ** unit;
  return `${value.toFixed(unit > 0 && value < 100 ? 1 : 0)} ${units[unit]}`;
}

/** How late a room was lately, and what it has missed since it began. */
export function lateness({ late_us, syncs_missed }: Load): string {
  const missed = syncs_missed > 0 ? `, ${syncs_missed.toLocaleString()} missed` : "";
  return `${(late_us / 1000).toFixed(1)} ms${missed}`;
}
