import { describe, expect, test } from 'vitest';
import { reviewsOf } from '../../../app/domain/reuse.ts';
import { decided, FactList, HEAD, sha } from '../../helpers/facts.ts';

const a = decided('a.ts', { key: sha('key a') });
const b = decided('b.ts', { key: sha('key b') });
/** F1 on a.ts, carried to b.ts, whose review says nothing of it. */
const renamed = () =>
  new FactList()
    .policy()
    .head([a])
    .end(a, { verdict: 'findings', findings: [sha('finding 1')] })
    .finding(1, a)
    .head([b])
    .add('finding.carried', { finding: 1, from: 'a.ts', path: 'b.ts', fingerprint: sha('at b'), head: HEAD })
    .end(b);
const said = (list: FactList, rule: 'stays_open' | 'closed' = 'stays_open') =>
  reviewsOf(list.rows, new Set([sha('key b')]), rule)
    .get(sha('key b'))
    ?.findings.map((one) => [one.finding, one.path, one.fingerprint, one.severity]);

describe('TKT-4: what a key says where a rename brought a finding', () => {
  test('the review of the new path was told of it and did not end it: it goes along to other pull requests', () => {
    expect(said(renamed())).toEqual([[1, 'b.ts', sha('at b'), 'high']]);
  });

  test('a dismissal closes it for a merge group until it is found as worse', () => {
    const list = renamed().add('finding.ended', {
      finding: 1,
      state: 'dismissed',
      reason: 'by_a_person',
      head: HEAD,
      text: null,
    });
    list.finding(1, b, { fingerprint: sha('at b') });
    expect(said(list, 'closed')).toEqual([]);
    expect(said(list)).toHaveLength(1);
    list.finding(1, b, { fingerprint: sha('at b'), severity: 'critical' });
    expect(said(list, 'closed')).toEqual([[1, 'b.ts', sha('at b'), 'critical']]);
  });
});
