/** Chance that a seed always gives again: streams for the trace, and draws by name that no order of events changes. */

/** Numbers in [0, 1), one after another. */
export type Stream = () => number;

/** The stream of a seed. */
export function stream(seed: number): Stream {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One number in [0, 1) for these parts: the same whoever asks, and when. */
export function draw(...parts: readonly (string | number)[]): number {
  let hash = 0x811c9dc5;
  for (const char of parts.join(' ')) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193);
  return stream(hash)();
}

/** A log-normal value with this median; `sigma` 1 puts a tenth of all above 3.6 medians. */
export function logNormal(u: number, v: number, median: number, sigma: number): number {
  const normal = Math.sqrt(-2 * Math.log(Math.max(u, 1e-12))) * Math.cos(2 * Math.PI * v);
  return median * Math.exp(sigma * normal);
}

/** Shares of `n` by Zipf's law with this exponent, largest first; their sum is 1. */
export function zipf(n: number, exponent: number): number[] {
  const weights = Array.from({ length: n }, (_, i) => 1 / (i + 1) ** exponent);
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((one) => one / sum);
}

/** The index that a number in [0, 1) falls on, by cumulated shares. */
export function pick(cumulated: readonly number[], u: number): number {
  let [low, high] = [0, cumulated.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((cumulated[middle] as number) > u) high = middle;
    else low = middle + 1;
  }
  return low;
}
