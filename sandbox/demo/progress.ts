/** What the demo prints while it works: steps with their times, and nothing that a log would hold. */

/** A printer of steps that remembers how long each took, in milliseconds. */
export interface Progress {
  /** Runs one step, prints its title before and its time after, and returns what it returned. */
  step<T>(key: string, title: string, work: () => Promise<T>): Promise<T>;
  /** Prints a line below the step that runs. */
  note(text: string): void;
  /** Milliseconds by step key, in order. */
  readonly durations: Readonly<Record<string, number>>;
}

/** A printer on a stream; on a terminal the running step is marked, elsewhere each line stands alone. */
export function createProgress(out: NodeJS.WritableStream): Progress {
  const durations: Record<string, number> = {};
  let number = 0;
  return {
    durations,
    async step(key, title, work) {
      number++;
      const started = performance.now();
      out.write(`${String(number).padStart(2)}  ${title} …\n`);
      const result = await work();
      const ms = Math.round(performance.now() - started);
      durations[key] = ms;
      out.write(`    done in ${ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`}\n`);
      return result;
    },
    note(text) {
      for (const line of text.split('\n')) out.write(`    ${line}\n`);
    },
  };
}
