import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createPace, type Pace } from '../../../app/github/octokit/pace.ts';
import { WRITE_TURNS, type WriteTurn } from '../../../app/github/port/check.ts';

const HOUR = 3_600_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Writes until one has to wait; how many went out at once. */
async function spend(pace: Pace, turn: WriteTurn, most = 1_000): Promise<number> {
  for (let n = 0; n < most; n++) {
    let out = false;
    pace.write(turn).then(
      () => {
        out = true;
      },
      () => {},
    );
    await vi.advanceTimersByTimeAsync(0);
    if (!out) return n;
  }
  return most;
}

describe('PUB-1: the budget of writes', () => {
  it('OPS-6: 20 go out at once, then one a second: never more than 80 in a minute', async () => {
    const pace = createPace();
    const at: number[] = [];
    const started = performance.now();
    for (let n = 0; n < 400; n++) {
      try {
        await Promise.all([pace.write('verdict'), vi.advanceTimersByTimeAsync(1_000)]);
        at.push(performance.now() - started);
      } catch {
        // told to come back
      }
    }
    expect(at.length).toBeGreaterThan(100);
    for (const [i, time] of at.entries()) {
      const within = at.slice(i).filter((other) => other < time + 60_000).length;
      expect(within).toBeLessThanOrEqual(80);
    }
  });

  it('500 go out in an hour, the 501st when the first is an hour old; the last of them are for verdicts', async () => {
    const pace = createPace();
    const sent = new Map<WriteTurn, number>(WRITE_TURNS.map((turn) => [turn, 0]));
    let refused = 0;
    // 55 minutes of everybody writing as much as they may
    for (let second = 0; second < 3_300; second++) {
      for (const turn of [...WRITE_TURNS].reverse()) {
        if (turn === 'verdict' && second < 3_000) continue;
        pace.write(turn).then(
          () => sent.set(turn, (sent.get(turn) ?? 0) + 1),
          () => refused++,
        );
      }
      await vi.advanceTimersByTimeAsync(1_000);
    }
    const all = [...sent.values()].reduce((a, b) => a + b);
    expect(all).toBe(500);
    expect(refused).toBeGreaterThan(0);
    expect(sent.get('verdict')).toBe(20);
    await expect(pace.write('verdict')).rejects.toMatchObject({ code: 'github_rate_limited' });
    const { retryAfterMs } = await pace.write('verdict').then(
      () => ({ retryAfterMs: 0 }),
      (error: { retryAfterMs: number }) => error,
    );
    expect(retryAfterMs).toBeGreaterThan(0);
    expect(retryAfterMs).toBeLessThanOrEqual(HOUR);
    await vi.advanceTimersByTimeAsync(retryAfterMs);
    await pace.write('verdict');
  });

  it('the first gate of a new head never waits behind updates of old ones', async () => {
    const pace = createPace();
    const old = await spend(pace, 'old');
    expect(old).toBe(12);
    expect(await spend(pace, 'comment')).toBe(5);
    expect(await spend(pace, 'findings')).toBe(1);
    expect(await spend(pace, 'verdict')).toBe(2);
  });

  it('those who wait go in the order of their turn, and of one turn the oldest first', async () => {
    const pace = createPace();
    await spend(pace, 'work');
    const went: string[] = [];
    const wait = (turn: WriteTurn, name: string) => {
      pace.write(turn).then(
        () => went.push(name),
        () => went.push(`${name} later`),
      );
    };
    await vi.advanceTimersByTimeAsync(1_500);
    wait('old', 'old');
    wait('findings', 'findings');
    wait('work', 'update');
    wait('work', 'second update');
    wait('verdict', 'first');
    await vi.advanceTimersByTimeAsync(60_000);
    // nobody waits for an old commit: its job comes again
    expect(went).toEqual(['old later', 'first', 'update', 'second update', 'findings']);
  });

  it('a verdict that comes late overtakes an update that waits; the one overtaken too long is given back to the queue', async () => {
    const pace = createPace();
    await spend(pace, 'work');
    const went: string[] = [];
    pace.write('work').then(
      () => went.push('update'),
      () => went.push('update later'),
    );
    for (let n = 0; n < 12; n++) {
      pace.write('verdict').then(
        () => went.push('verdict'),
        () => went.push('verdict later'),
      );
      await vi.advanceTimersByTimeAsync(600);
    }
    await vi.advanceTimersByTimeAsync(10_000);
    expect(went.filter((one) => one === 'verdict')).toHaveLength(12);
    expect(went).toContain('update later');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('case 77: while GitHub has refused nothing is sent, those who wait are told how long', async () => {
    const pace = createPace();
    await spend(pace, 'verdict', 20);
    const waiting = pace.write('verdict').catch((error: unknown) => error);
    pace.hold(120_000);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await waiting).toMatchObject({ code: 'github_rate_limited', retryable: true });
    expect(() => pace.read()).toThrow(expect.objectContaining({ code: 'github_rate_limited' }));
    await vi.advanceTimersByTimeAsync(120_000);
    await pace.write('old');
  });

  it('calls that make no content have no hour', async () => {
    const pace = createPace({ mostAnHour: Number.POSITIVE_INFINITY });
    for (let n = 0; n < 700; n++) {
      await pace.write();
      await vi.advanceTimersByTimeAsync(1_000);
    }
  });

  it('case 77: 120 pull requests updated within a minute: gates in order of age, never over the budget, all final', async () => {
    const pace = createPace();
    const began = performance.now();
    const sent: { readonly at: number; readonly name: string }[] = [];
    let open = 0;
    /** A job of the queue: told to come back, it comes back then. */
    const job = async (turn: WriteTurn, name: string, then?: () => void) => {
      open += 1;
      for (;;) {
        try {
          await pace.write(turn);
          break;
        } catch (error) {
          const { retryAfterMs } = error as { retryAfterMs: number };
          await new Promise((done) => setTimeout(done, retryAfterMs));
        }
      }
      sent.push({ at: performance.now() - began, name });
      open -= 1;
      then?.();
    };
    for (let n = 0; n < 120; n++) {
      // what is old, and what people are told, is in the way from the start
      void job('old', `old ${n}`);
      void job('verdict', `gate ${n}`, () => void job('verdict', `end ${n}`));
      void job('comment', `sticky ${n}`);
      await vi.advanceTimersByTimeAsync(500);
    }
    for (let minute = 0; minute < 150 && open > 0; minute++) await vi.advanceTimersByTimeAsync(60_000);
    const times = (what: string) => sent.filter((one) => one.name.startsWith(what)).map((one) => one.at);
    const last = (what: string) => Math.max(...times(what));
    expect([times('gate'), times('end'), times('sticky'), times('old')].map((all) => all.length)).toEqual([
      120, 120, 120, 120,
    ]);
    // 240 verdicts at one a second: comments and old heads begin when verdicts leave them room
    expect(last('end')).toBeLessThan(240_000 + 60_000);
    expect(last('sticky')).toBeLessThan(30 * 60_000);
    const order = sent.filter((one) => one.name.startsWith('gate')).map((one) => Number(one.name.slice(5)));
    for (const [place, n] of order.entries()) expect(Math.abs(place - n)).toBeLessThan(40);
    for (const { at } of sent)
      expect(sent.filter((one) => one.at >= at && one.at < at + 60_000).length).toBeLessThanOrEqual(80);
  });
});
