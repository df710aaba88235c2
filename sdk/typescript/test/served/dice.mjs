/** Random numbers from a seed: SplitMix32. */
export function dice(seed) {
  const roll = () => {
    seed = (seed + 0x9e3779b9) | 0;
    let mixed = seed ^ (seed >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
  return { roll, pick: (count) => Math.floor(roll() * count) };
}
