import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decideGate, type GateFacts } from '../../../app/domain/gate/decide.ts';
import { blockStatuses } from '../../../app/domain/gate/dependency.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { decided, FactList, sha } from '../../helpers/facts.ts';
import { facts, HOUR, NOW, policy } from '../../helpers/gate-facts.ts';

const ids = ['one', 'two', 'three', 'four'] as const;
const files = Object.fromEntries(ids.map((id) => [id, decided(`${id}.ts`, { block: id })]));
const file = (id: string) => {
  const found = files[id];
  if (found === undefined) throw new Error(`no file of ${id}`);
  return found;
};
/** Blocks in a chain, each after the one before. */
const chain = () =>
  new FactList()
    .policy()
    .block('one')
    .block('two', { after: ['one'] })
    .block('three', { after: ['two'] })
    .head([file('one'), file('two'), file('three')])
    .allow();
const bad = (list: FactList, id: string, number = 1) =>
  list.finding(number, file(id)).end(file(id), { verdict: 'findings', findings: [sha(`finding ${number}`)] });

function judge(list: FactList, more: Partial<GateFacts> = {}, now = NOW) {
  const state = foldRows(list.rows);
  const decision = decideGate(state, policy, facts(more), now);
  return {
    conclusion: decision.conclusion,
    reasons: decision.reasons.map((one) => `${one.code} ${one.class} ${one.blocks.join(' ')}`.trim()),
    statuses: Object.fromEntries(blockStatuses(state, decision.reasons)),
  };
}

describe('BLK-5: statuses, and what waits', () => {
  test('BLK-5, GAT-2: what waits is under no review: the class is that of what holds the first, over any distance', () => {
    expect(judge(chain())).toEqual({
      conclusion: 'in_progress',
      reasons: ['reviews_pending machine one', 'dependency_open machine three two'],
      statuses: { one: 'open', two: 'waiting', three: 'waiting' },
    });
    expect(judge(bad(chain(), 'one'))).toEqual({
      conclusion: 'failure',
      reasons: ['open_findings wrong', 'dependency_open wrong three two'],
      statuses: { one: 'failed', two: 'waiting', three: 'waiting' },
    });
    expect(judge(chain().end(file('one')))).toEqual({
      conclusion: 'in_progress',
      reasons: ['reviews_pending machine two', 'dependency_open machine three'],
      statuses: { one: 'passed', two: 'open', three: 'waiting' },
    });
    expect(judge(chain().end(file('one')).end(file('two')).end(file('three')))).toEqual({
      conclusion: 'success',
      reasons: [],
      statuses: { one: 'passed', two: 'passed', three: 'passed' },
    });
  });

  test('GAT-2: two classes are two reasons; each block has the worst of what it waits for', () => {
    const list = new FactList()
      .policy()
      .block('one')
      .block('two', { accept_human: [sha('look')] })
      .block('three', { after: ['two'] })
      .block('four', { after: ['one', 'two'] })
      .head(ids.map(file))
      .allow()
      .end(file('two'))
      .end(file('three'))
      .end(file('four'));
    expect(judge(bad(list, 'one')).reasons).toEqual([
      'open_findings wrong',
      'dependency_open wrong four',
      'human_check person two',
      'dependency_open person three',
    ]);
    expect(judge(list).statuses).toEqual({
      one: 'failed',
      two: 'awaiting_human_check',
      three: 'waiting',
      four: 'waiting',
    });
  });

  test('BLK-5: a rerun of what waits is no review under way, one of what does not wait is', () => {
    const held = bad(chain(), 'one');
    expect(judge(held, { openTickets: 0 }).conclusion).toBe('failure');
    expect(judge(held, { openTickets: 1 }).conclusion).toBe('in_progress');
  });

  test('BLK-5: the machine’s time for what waited begins when it may go on', () => {
    const list = chain();
    list.at = new Date(NOW + 5.9 * HOUR).toISOString();
    list.end(file('one')).add('block.ended', { block: 'one', status: 'passed' });
    expect(judge(list, {}, NOW + 8 * HOUR).conclusion).toBe('in_progress');
    expect(judge(list, {}, NOW + 12 * HOUR).conclusion).toBe('failure');
  });

  test('BLK-5: a circle that no note names (rows of before) holds all the same', () => {
    const list = new FactList()
      .policy()
      .block('one', { after: ['two'] })
      .block('two', { after: ['one'] })
      .head([file('one'), file('two')])
      .allow();
    expect(judge(list).conclusion).toBe('in_progress');
    expect(judge(list).reasons[0]).toBe('reviews_pending machine one two');
    expect(judge(list, {}, NOW + 9 * HOUR).conclusion).toBe('failure');
  });

  test('BLK-5: one that owns nothing has no verdict, holds nobody by itself, and passes on what holds it', () => {
    const list = () =>
      new FactList()
        .policy()
        .block('one')
        .block('empty', { after: ['one'] })
        .block('two', { after: ['empty'] })
        .head([file('one'), file('two')])
        .allow();
    expect(judge(list()).statuses).toEqual({ one: 'open', empty: 'waiting', two: 'waiting' });
    expect(judge(list().end(file('one'))).statuses).toEqual({ one: 'passed', empty: 'open', two: 'open' });
    expect(judge(list().end(file('one')).end(file('two'))).conclusion).toBe('success');
  });

  test('GAT-1: whatever comes after whatever, no path without a result is ever green', () => {
    const graph = fc.record({
      after: fc.tuple(...ids.map(() => fc.subarray([...ids]))),
      done: fc.subarray([...ids]),
      bad: fc.subarray([...ids]),
      human: fc.subarray([...ids]),
      openTickets: fc.nat(2),
      late: fc.boolean(),
    });
    fc.assert(
      fc.property(graph, ({ after, done, bad: wrong, human, openTickets, late }) => {
        const list = new FactList().policy();
        ids.forEach((id, i) => {
          const before = (after[i] ?? []).filter((one) => one !== id);
          list.block(id, { after: before, accept_human: human.includes(id) ? [sha(id)] : [] });
        });
        list.head(ids.map(file)).allow();
        done.forEach((id, i) => {
          if (wrong.includes(id)) bad(list, id, i + 1);
          else list.end(file(id));
        });
        const { conclusion, statuses } = judge(list, { openTickets }, late ? NOW + 9 * HOUR : NOW);
        const clean =
          done.length === ids.length && human.length === 0 && !done.some((id) => wrong.includes(id));
        if (!clean || openTickets > 0) expect(conclusion).not.toBe('success');
        else expect(conclusion).toBe('success');
        for (const id of ids) {
          if (!done.includes(id)) expect(['passed', 'awaiting_human_check']).not.toContain(statuses[id]);
          if (statuses[id] === 'passed') {
            expect(done.includes(id) && !wrong.includes(id) && !human.includes(id)).toBe(true);
          }
        }
        // waiting means that something before it has not passed, and only that
        ids.forEach((id, i) => {
          const before = (after[i] ?? []).filter((one) => one !== id);
          const held = before.some((one) => statuses[one] !== 'passed');
          expect(statuses[id] === 'waiting').toBe(held);
        });
      }),
      { numRuns: 1500 },
    );
  });
});
