/** A small day of the simulation (docs/simulation.md), lived in each `npm run test:long`: the planner and the lease as they run in production. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DayOutcome, type Scheme, simulateDay } from '../../bench/day/day.ts';
import { type Followed, waitsOf } from '../../bench/day/measure.ts';
import { type Trace, traceOf } from '../../bench/day/trace.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';

/** 20 repositories of six tenants, some fifty tickets in ten minutes. */
const DAY = { seed: 7, scale: 0.0004, hours: 0.15 };
/** By how much a dump elsewhere may move the p99 of those who have nothing to do with it: runners start as luck has it. */
const BOUND_S = 60;

const databases: TestDatabase[] = [];
afterAll(async () => {
  for (const one of databases) await one.drop();
});

async function live(trace: Trace, scheme: Scheme, lean: boolean): Promise<DayOutcome> {
  const place = await testDatabase({ max: 4 });
  databases.push(place);
  return simulateDay(place, trace, scheme, { lean });
}

/** TKT-6 has tests of its own, and the end of a poisoned file takes half a day here. */
function withoutPoison(trace: Trace): Trace {
  const arrivals = trace.arrivals.map((one) => ({
    ...one,
    files: one.files.map((file) => ({ ...file, poison: false })),
  }));
  return { ...trace, arrivals };
}

/** What became of each ticket, and when. */
const story = ({ tally }: DayOutcome) =>
  [...tally.tickets].map(([id, one]) => [id, one.startedMs, one.endedMs, one.end, one.grants]);
const elsewhere = (one: Followed) => !one.arrival.tenant.noisy;

describe('a small day', () => {
  const trace = withoutPoison(traceOf(DAY));
  let ours: DayOutcome;
  beforeAll(async () => {
    ours = await live(trace, 'ours', false);
  });

  test('every ticket ends exactly once, no cap is exceeded, and nothing is held at the end', () => {
    expect(ours.tally.violations).toEqual([]);
    expect(ours.tally.tickets.size).toBe(trace.tickets);
    expect([...ours.tally.tickets.values()].filter((one) => one.endedMs === null)).toEqual([]);
    expect(Object.fromEntries(ours.counts)).toEqual({});
  });

  test('the lean arrows of a day at full size come to the very same as the whole ones, ticket by ticket', async () => {
    expect(story(await live(trace, 'ours', true))).toEqual(story(ours));
  });

  test('POOL-2: fewer dispatches and fewer runner minutes than with a runner a ticket', async () => {
    const alone = await live(trace, 'alone', true);
    expect(alone.tally.violations).toEqual([]);
    expect(alone.tally.dispatches).toBeGreaterThanOrEqual(trace.tickets);
    expect(ours.tally.dispatches).toBeLessThan(alone.tally.dispatches / 2);
    expect(ours.tally.billedMinutes).toBeLessThan(alone.tally.billedMinutes);
  });

  test(`a dump of thousands elsewhere moves the p99 of a quiet tenant by less than ${BOUND_S} s`, async () => {
    const quiet = { ...trace, arrivals: trace.arrivals.filter((one) => one.kind === 'ordinary') };
    const without = await live(quiet, 'ours', true);
    const [mine, other] = [ours, without].map(({ tally }) => waitsOf(tally, elsewhere));
    expect(mine?.n).toBe(other?.n);
    expect(mine?.p99).toBeLessThan((other?.p99 ?? 0) + BOUND_S);
  });
});
