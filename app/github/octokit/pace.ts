/**
 * How fast one installation may write (OPS-6, PUB-1): GitHub allows 80 content writes a minute and
 * 500 an hour, and says nothing until it refuses. When writes have to wait, those whose turn comes
 * first go first, and the last of the budget is kept for verdicts.
 */
import { Fault } from '../../errors.ts';
import { WRITE_TURNS, type WriteTurn } from '../port/check.ts';

/** Writes that may go out at once before the pace holds: the gate of a push and its neighbours never wait. */
const BURST = 20;
/** One more write a second: burst and refill together stay at 80 a minute. */
const REFILL_MS = 1000;
const HOUR_MS = 3_600_000;
const MOST_AN_HOUR = 500;
/** A wait longer than this is the queue's, not a promise's. */
const LONGEST_WAIT_MS = 5_000;

/** How long a write that nobody looks at is told to stay away at least. */
const OLD_WAIT_MS = 30_000;

/** What each turn leaves of the burst, and of the hour, to those before it. Little of the burst: an empty one fills up to it within the longest wait. */
const LEAVES: Readonly<Record<WriteTurn, { readonly burst: number; readonly hour: number }>> = {
  verdict: { burst: 0, hour: 0 },
  work: { burst: 1, hour: 20 },
  findings: { burst: 2, hour: 50 },
  block: { burst: 3, hour: 80 },
  comment: { burst: 3, hour: 100 },
  old: { burst: 8, hour: 150 },
};

/** A pace and, once GitHub has refused, the time until which nothing is sent. */
export interface Pace {
  /** Resolves when a write may go out. Throws `github_rate_limited` with the wait when that is long. */
  write(turn?: WriteTurn): Promise<void>;
  /** Throws `github_rate_limited` while a refusal stands. */
  read(): void;
  /** Notes a refusal: nothing is sent for that long, so that a limit is not made worse. */
  hold(ms: number): void;
}

interface Waiter {
  readonly turn: WriteTurn;
  readonly until: number;
  go(): void;
  giveUp(wait: number): void;
}

/** A pace of its own. `clock` is monotonic milliseconds; `mostAnHour` is `Infinity` for calls that make no content. */
export function createPace({
  clock = () => performance.now(),
  mostAnHour = MOST_AN_HOUR,
}: {
  readonly clock?: () => number;
  readonly mostAnHour?: number;
} = {}): Pace {
  let tokens = BURST;
  let filledAt = clock();
  let heldUntil = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** When each write of the last hour went out, oldest first. */
  const sent: number[] = [];
  /** Those who wait, in the order in which they will go. */
  const line: Waiter[] = [];

  const read = () => {
    const left = heldUntil - clock();
    if (left > 0) throw limited(left);
  };
  /** How long until a write of that turn may go, were nobody before it. */
  const waitOf = (turn: WriteTurn): number => {
    const now = clock();
    tokens = Math.min(BURST, tokens + (now - filledAt) / REFILL_MS);
    filledAt = now;
    while ((sent[0] ?? now) <= now - HOUR_MS) sent.shift();
    const share = mostAnHour - LEAVES[turn].hour;
    const first = sent.length < share ? undefined : sent[sent.length - share];
    const hour = first === undefined ? 0 : first + HOUR_MS - now;
    // a fraction of a token is a rounding, not a reason to wait
    const missing = 1 + LEAVES[turn].burst - tokens;
    return Math.max(0, hour, missing > 1e-6 ? missing * REFILL_MS : 0);
  };
  const take = () => {
    tokens -= 1;
    if (Number.isFinite(mostAnHour)) sent.push(clock());
  };
  const serve = () => {
    timer = undefined;
    const now = clock();
    const held = heldUntil - now;
    for (const waiter of held > 0 ? line.splice(0) : line.filter((one) => one.until <= now)) {
      const at = line.indexOf(waiter);
      if (at >= 0) line.splice(at, 1);
      waiter.giveUp(held > 0 ? held : waitOf(waiter.turn) + REFILL_MS);
    }
    for (let first = line[0]; first !== undefined; first = line[0]) {
      const wait = waitOf(first.turn);
      if (wait > 0) {
        const soonest = Math.min(wait, ...line.map((one) => one.until - now));
        timer = setTimeout(serve, Math.ceil(Math.max(1, soonest)));
        return;
      }
      take();
      line.shift();
      first.go();
    }
  };

  return {
    read,
    hold(ms) {
      heldUntil = Math.max(heldUntil, clock() + ms);
    },
    async write(turn = 'work') {
      read();
      const before = line.filter((one) => rank(one.turn) <= rank(turn)).length;
      const wait = waitOf(turn) + before * REFILL_MS;
      if (wait <= 0) return take();
      // nobody looks at an old commit: its write takes no place in the line
      if (turn === 'old') throw limited(Math.max(wait, OLD_WAIT_MS));
      if (wait > LONGEST_WAIT_MS) throw limited(wait);
      await new Promise<void>((go, refuse) => {
        const until = clock() + LONGEST_WAIT_MS + REFILL_MS;
        line.splice(before, 0, { turn, until, go, giveUp: (ms) => refuse(limited(ms)) });
        clearTimeout(timer);
        serve();
      });
      read();
    },
  };
}

const rank = (turn: WriteTurn) => WRITE_TURNS.indexOf(turn);

function limited(ms: number): Fault {
  return new Fault('github_rate_limited', 'waiting for the rate limit of this installation', {
    retryable: true,
    retryAfterMs: Math.ceil(ms),
  });
}
