import { describe, expect, it } from 'vitest';
import type { Fact } from '../../../app/domain/run-state/fact.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { actRefs, readActs } from '../../../app/flow/read-run/acts.ts';
import { findingRefs, readFindings } from '../../../app/flow/read-run/findings.ts';
import { decided, FactList, HEAD, sha } from '../../helpers/facts.ts';

const REF = 'a'.repeat(64);
const row = (
  seq: number,
  kind: string,
  data: object,
  actor: { kind: string; id: string } = { kind: 'person', id: '7' },
) =>
  ({
    seq,
    kind,
    data,
    actor: { via: 'comment', ...actor },
    at: '2026-11-29T10:00:00.000Z',
    block: null,
  }) as unknown as Fact;
const acted = {
  act: 'approve',
  head: 'f'.repeat(40),
  permission: 'write',
  clause: 'guarded',
  paths: [],
  self: true,
  text: REF,
};

describe('OPS-8: what people did, by rows', () => {
  const rows = [
    row(1, 'run.opened', {}, { kind: 'app', id: '1' }),
    row(2, 'human.acted', acted),
    row(3, 'finding.answered', { finding: 4, text: REF }, { kind: 'person', id: '8' }),
    row(4, 'human.revoked', { act: 'approve', seq: 2, reason: 'dismissed' }, { kind: 'app', id: '1' }),
    row(5, 'control.requested', { control: 'c', action: 'pause', generation: 2, text: null }),
  ];

  it('people alone, newest first, by login where it is known, and what was taken back says so', () => {
    const acts = readActs(rows, new Map([['7', 'rita']]), new Map([[REF, 'looks \u202efine']]));
    expect(acts.map(({ seq, act, who, revoked }) => [seq, act, who, revoked])).toEqual([
      [5, 'pause', 'rita', false],
      [3, 'answer F4', 'account 8', false],
      [2, 'approve guarded', 'rita', true],
    ]);
    expect(acts[2]).toMatchObject({ self: true, permission: 'write', said: 'looks \ufffdfine' });
    expect(actRefs(rows)).toEqual([REF, REF]);
  });

  it('a text that was erased is none', () => {
    expect(readActs(rows, new Map(), new Map([[REF, null]])).map((act) => act.said)).toEqual([
      null,
      null,
      null,
    ]);
  });
});

describe('OPS-8: findings, by rows', () => {
  const path = decided('src/a.ts');
  const facts = new FactList()
    .policy()
    .head([path])
    .finding(1, path, { severity: 'low', title: sha('low') })
    .finding(2, path, { severity: 'critical', title: sha('worst'), suggestion: sha('erased') })
    .finding(3, path, { severity: 'critical', title: sha('mended') })
    .add('finding.ended', { finding: 3, state: 'fixed', reason: 'code_gone', head: HEAD, text: null });
  const state = foldRows(facts.rows);

  it('open before ended and worst first, each with the rows that say so', () => {
    const texts = new Map([
      [sha('worst'), '<b>worst\u0007'],
      [sha('erased'), null],
    ]);
    const found = readFindings(state, [2], facts.rows, texts);
    expect(found.map(({ number, state: of, blocks }) => [number, of, blocks])).toEqual([
      [2, 'open', true],
      [1, 'open', false],
      [3, 'fixed', false],
    ]);
    expect(found[0]).toMatchObject({ title: '<b>worst', suggestion: null });
    expect(found[1]?.title, 'a text that is not there').toBeNull();
    expect(found[2]?.rows.map((one) => one.kind)).toEqual(['finding.raised', 'finding.ended']);
    expect(findingRefs(state)).toEqual(expect.arrayContaining([sha('worst'), sha('erased'), sha('low')]));
  });
});
