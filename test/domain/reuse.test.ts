import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DecidedPath } from '../../app/domain/ledger/row-fields.ts';
import type { RowData } from '../../app/domain/ledger/row-kinds.ts';
import { reviewsOf } from '../../app/domain/reuse.ts';
import { decided, FactList, HEAD, sha } from '../helpers/facts.ts';

const a = decided('a.ts');
/** The same path with other content. */
const other = decided('a.ts', { key: sha('other key'), blob: { base: null, head: 'e'.repeat(40) } });
const KEY = a.key ?? '';

/** Rows that a result under a lease appends; the lease names them. */
class Rows extends FactList {
  by(lease: string, write: (list: this) => void): this {
    const from = this.rows.length;
    write(this);
    const cause = { kind: 'lease', id: lease, sha256: null } as const;
    for (let i = from; i < this.rows.length; i++) {
      const row = this.rows[i];
      if (row !== undefined) this.rows[i] = { ...row, cause };
    }
    return this;
  }
  fixed(
    finding: number,
    reason = 'code_changed',
    state: 'fixed' | 'withdrawn' | 'dismissed' = 'fixed',
  ): this {
    return this.add('finding.ended', { finding, state, reason, head: HEAD, text: null });
  }
}
const start = (path: DecidedPath = a) => new Rows().policy().head([path]) as Rows;
const found = (n: number): Partial<RowData<'ticket.ended'>> => ({
  verdict: 'findings',
  findings: [sha(`finding ${n}`)],
});
const read = (list: FactList, dismissals: 'stays_open' | 'closed' = 'stays_open') => {
  const review = reviewsOf(list.rows, new Set([KEY]), dismissals).get(KEY);
  return review === undefined ? null : [review.seq, ...review.findings.map((one) => one.finding)];
};

describe('TKT-4: what a run’s rows say of a review key', () => {
  it('TKT-4: the newest counting result, and the union of the findings of all rounds', () => {
    expect(read(start())).toBeNull();
    expect(read(start().end(a))).toEqual([4]);
    const twice = start()
      .by('l1', (list) => list.end(a, found(1)).finding(1, a))
      .by('l2', (list) => list.end(a, { ...found(2), round: 1 }).finding(2, a))
      .by('l3', (list) => list.end(a, { round: 2 }));
    expect(read(twice)).toEqual([8, 1, 2]);
  });

  it('TKT-4: only results that count: none that is partial, unavailable, of another level, or unaccounted for', () => {
    expect(read(start().end(a, { partial: true }))).toBeNull();
    expect(read(start().end(a, { verdict: 'cannot_review' }))).toBeNull();
    expect(read(start().end(a, { end: 'timeout' }))).toBeNull();
    expect(read(start().end(a, { level: 'L2' })), 'BLK-6').toBeNull();
    expect(read(start().end(a, { blob: { base: null, head: '9'.repeat(40) } })), 'TKT-1').toBeNull();
    expect(read(start().end(a, { blob: a.blob }))).not.toBeNull();
    expect(read(start().end(a, found(1))), 'its finding was never raised').toBeNull();
    expect(read(start().end(other))).toBeNull();
  });

  it('TKT-4: a rule break gives nothing; a conflict nothing until a later review', () => {
    const ticket = sha('ticket a.ts');
    const broken = start().end(a).add('rule.break', { ticket, session: 's', detail: 'wrote a file' });
    expect(read(broken)).toBeNull();
    const twofold = start()
      .end(a)
      .add('ticket.conflict', { ticket, grant: 1, first: sha('1'), second: sha('2') });
    expect(read(twofold)).toBeNull();
    expect(read(twofold.end(a, { ticket: sha('again'), round: 1 }))).toEqual([6]);
  });

  it('LED-8: nothing of a sealed run is reused', () => {
    expect(
      read(
        start()
          .end(a)
          .add('run.sealed', { next: 'r2', text: sha('why') }),
      ),
    ).toBeNull();
  });

  it('RND-1: what another content mended is still said of this one', () => {
    const mended = start()
      .by('l1', (list) => list.end(a, found(1)).finding(1, a))
      .head([other])
      .by('l2', (list) => list.end(other).fixed(1)) as Rows;
    expect(read(mended)?.slice(1)).toEqual([1]);
    expect(read(mended.head([]).fixed(1, 'left_the_change') as Rows)?.slice(1)).toEqual([1]);
  });

  it('RND-1: a finding of other content that this round was told of and did not end stands here as well', () => {
    const heard = start(other)
      .by('l1', (list) => list.end(other, found(1)).finding(1, other))
      .head([a]) as Rows;
    expect(read(heard.by('l2', (list) => list.end(a)))?.slice(1)).toEqual([1]);
    expect(reviewsOf(heard.rows, new Set([KEY]), 'stays_open').get(KEY)?.findings[0]).toMatchObject({
      key: KEY,
    });
    const ended = start(other)
      .by('l1', (list) => list.end(other, found(1)).finding(1, other))
      .head([a]) as Rows;
    expect(read(ended.by('l2', (list) => list.end(a).fixed(1)))?.slice(1)).toEqual([]);
  });

  it('RUN-4: a late result heard nothing of what stands on the present content', () => {
    const late = start(other)
      .by('l1', (list) => list.end(other, found(1)).finding(1, other))
      .by('l2', (list) => list.end(a)) as Rows;
    const seq = late.rows.length;
    late.add('ticket.late', { ticket: sha('t'), key: KEY, path: 'a.ts', seq });
    expect(read(late)).toEqual([seq]);
  });

  it('FND-2, GAT-5: a dismissal closes it for a merge group, and for no other pull request', () => {
    const dismissed = start()
      .by('l1', (list) => list.end(a, found(1)).finding(1, a))
      .fixed(1, 'false alarm', 'dismissed') as Rows;
    expect(read(dismissed)?.slice(1)).toEqual([1]);
    expect(read(dismissed, 'closed')?.slice(1)).toEqual([]);
  });

  it('TKT-4: no further clean round ever takes a finding away (property)', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 8 }), (rounds) => {
        const list = start();
        const seen = new Set<number>();
        for (const [round, n] of rounds.entries()) {
          list.by(`l${round}`, (one) => {
            one.end(a, n === 0 ? { round } : { ...found(n), round });
            if (n > 0) one.finding(n, a);
          });
          if (n > 0) seen.add(n);
          expect(new Set(read(list)?.slice(1))).toEqual(seen);
        }
      }),
    );
  });
});
