/**
 * Callers at once become few statements: what is asked while others are under way goes together with
 * the next. 32 backends on two cores are slower than 8 (performance.md), and a commit for all costs what
 * a commit for one does.
 */

interface Waiting<I, O> {
  readonly input: I;
  readonly done: (output: O) => void;
  readonly failed: (error: unknown) => void;
}

/** What fewer callers than these share goes in one flight: most of what a small one costs, it costs whoever is in it. */
const LEAST = 4;

/**
 * Makes of `work`, which does many at once and answers in their order, a function of one. At most
 * `flights` of it are under way, each for at most `most` inputs; who finds one free waits for nobody, and
 * who waits is shared out among those that are free, so that one does not fly full beside an empty one.
 * Inputs of one `keyOf` are never in two flights at once: who would wait there for a lock waits here, and
 * nobody with it. When a flight fails, each of its callers fails with that error.
 */
export function gather<I, O>(
  flights: number,
  most: number,
  work: (inputs: readonly I[]) => Promise<readonly O[]>,
  keyOf: (input: I) => string | null = () => null,
): (input: I) => Promise<O> {
  let queue: Waiting<I, O>[] = [];
  const aloft = new Set<string>();
  let flying = 0;
  let called = false;

  /** Takes up to `share` of those who may go now, in order, and who has a key in common with them. */
  const board = (share: number): Waiting<I, O>[] => {
    const taken: Waiting<I, O>[] = [];
    const keys = new Set<string>();
    const rest: Waiting<I, O>[] = [];
    for (const one of queue) {
      const key = keyOf(one.input);
      const along = key !== null && keys.has(key);
      if (taken.length < (along ? most : share) && (key === null || !aloft.has(key))) {
        taken.push(one);
        if (key !== null) keys.add(key);
      } else rest.push(one);
    }
    queue = rest;
    for (const key of keys) aloft.add(key);
    return taken;
  };
  const launch = (): void => {
    called = false;
    while (flying < flights && queue.length > 0) {
      const share = Math.max(LEAST, Math.ceil(queue.length / (flights - flying)));
      const batch = board(Math.min(most, share));
      if (batch.length === 0) return;
      void fly(batch);
    }
  };
  // one turn of the loop later: what arrives together is shared out together
  const call = (): void => {
    if (called || flying >= flights || queue.length === 0) return;
    called = true;
    queueMicrotask(launch);
  };
  const fly = async (batch: readonly Waiting<I, O>[]): Promise<void> => {
    flying += 1;
    try {
      const outputs = await work(batch.map((one) => one.input));
      for (const [i, one] of batch.entries()) one.done(outputs[i] as O);
    } catch (error) {
      for (const one of batch) one.failed(error);
    } finally {
      flying -= 1;
      for (const one of batch) {
        const key = keyOf(one.input);
        if (key !== null) aloft.delete(key);
      }
      call();
    }
  };
  return (input) =>
    new Promise((done, failed) => {
      queue.push({ input, done, failed });
      call();
    });
}
