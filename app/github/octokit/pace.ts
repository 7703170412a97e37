/** How fast one installation may write (OPS-6): GitHub allows 80 content writes a minute and says nothing until it refuses. */
import { Fault } from '../../errors.ts';

/** Writes that may go out at once before the pace holds: the gate of a push and its neighbours never wait. */
const BURST = 20;
/** One more write a second: burst and refill together stay at 80 a minute. */
const REFILL_MS = 1000;
/** A wait longer than this is the queue's, not a promise's. */
const LONGEST_WAIT_MS = 5_000;

/** A pace and, once GitHub has refused, the time until which nothing is sent. */
export interface Pace {
  /** Resolves when a write may go out. Throws `github_rate_limited` with the wait when that is long. */
  write(): Promise<void>;
  /** Throws `github_rate_limited` while a refusal stands. */
  read(): void;
  /** Notes a refusal: nothing is sent for that long, so that a limit is not made worse. */
  hold(ms: number): void;
}

/** A pace of its own; `clock` is monotonic milliseconds. */
export function createPace(clock: () => number = () => performance.now()): Pace {
  let tokens = BURST;
  let filledAt = clock();
  let heldUntil = 0;
  const read = () => {
    const left = heldUntil - clock();
    if (left > 0) throw limited(left);
  };
  return {
    read,
    hold(ms) {
      heldUntil = Math.max(heldUntil, clock() + ms);
    },
    async write() {
      read();
      const now = clock();
      tokens = Math.min(BURST, tokens + (now - filledAt) / REFILL_MS);
      filledAt = now;
      // going below zero is the place in the line of those who wait
      tokens -= 1;
      const wait = -tokens * REFILL_MS;
      if (wait <= 0) return;
      if (wait > LONGEST_WAIT_MS) {
        tokens += 1;
        throw limited(wait);
      }
      await new Promise((done) => setTimeout(done, wait));
      read();
    },
  };
}

function limited(ms: number): Fault {
  return new Fault('github_rate_limited', 'waiting for the rate limit of this installation', {
    retryable: true,
    retryAfterMs: Math.ceil(ms),
  });
}
