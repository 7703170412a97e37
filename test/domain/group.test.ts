import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GateFacts } from '../../app/domain/gate/decide.ts';
import { groupDeadlineMs } from '../../app/domain/group/deadline.ts';
import { decideGroup } from '../../app/domain/group/decide.ts';
import { knownPaths } from '../../app/domain/group/known.ts';
import type { DecidedPath } from '../../app/domain/ledger/row-fields.ts';
import type { RowData } from '../../app/domain/ledger/row-kinds.ts';
import { pathKey } from '../../app/domain/path.ts';
import { foldRows } from '../../app/domain/run-state/fold.ts';
import type { FileFact } from '../../app/domain/run-state/state.ts';
import { commit, decided, FactList, HEAD, sha } from '../helpers/facts.ts';
import { policy as POLICY } from '../helpers/gate-facts.ts';

const NOW = Date.parse('2026-11-29T12:10:00.000Z');
const ARRIVED = Date.parse('2026-11-29T12:00:00.000Z');
const facts = (more: Partial<GateFacts> = {}): GateFacts => ({
  head: HEAD,
  baseRef: 'main',
  headAtMs: ARRIVED,
  draft: false,
  mode: 'enforce',
  openTickets: 0,
  reasons: [],
  ledger: null,
  ...more,
});

type Member = RowData<'group.member'>;
const member = (position: number, more: Partial<Member> = {}): Member => ({
  position,
  pull: String(position + 1),
  head: commit(String(position)),
  run: `run-${position}`,
  seq: 9,
  digest: sha(`verdict ${position}`),
  conclusion: 'success',
  policy: sha('policy'),
  reasons: [],
  ...more,
});

/** A group that was read: these paths, these members, and which of the paths are known. */
function group(
  paths: readonly DecidedPath[],
  members: readonly Member[] | null,
  known: readonly DecidedPath[] = [],
  more: Partial<RowData<'group.read'>> = {},
): FactList {
  const list = new FactList().policy().head(paths);
  list.add('group.read', {
    head: HEAD,
    base: commit('b'),
    listed: members !== null,
    timeout_ms: 60 * 60_000,
    tree: commit('e'),
    merged: null,
    members: members?.length ?? 0,
    ...more,
  });
  for (const one of members ?? []) list.add('group.member', one);
  if (known.length > 0)
    list.add('group.known', {
      proof: 'content',
      paths: known.map((path) => ({ path: path.path, member: 0 })),
    });
  return list;
}
const decide = (list: FactList, more: Partial<GateFacts> = {}, now = NOW) =>
  decideGroup(foldRows(list.rows), POLICY, facts(more), now);
const says = (...given: Parameters<typeof decide>) => {
  const { conclusion, reasons } = decide(...given);
  return [conclusion, ...reasons.map((reason) => reason.code)];
};
const a = decided('a.ts');
const b = decided('b.ts');

describe('GAT-5: the gate of a merge group', () => {
  it('GAT-5: green when every member is and every path is known or reviewed', () => {
    expect(says(group([a, b], [member(0), member(1)], [a, b]))).toEqual(['success']);
    expect(says(group([a, b], [member(0)], [a]).end(b))).toEqual(['success']);
    expect(decide(group([a, b], [member(0)], [a]).end(b)).counts).toEqual({
      files: 2,
      counted: 2,
      unreviewed: 0,
    });
    expect(says(group([], [member(0)])), 'all of it is in the base already').toEqual(['success']);
  });

  it('GAT-5: pending before it was read, and a failure once the queue is about to give up', () => {
    const unread = new FactList().policy();
    expect(says(unread)).toEqual(['in_progress', 'reviews_pending']);
    expect(decide(unread).dueAtMs).toBe(ARRIVED + 55 * 60_000);
    expect(says(unread, {}, ARRIVED + 55 * 60_000)).toEqual(['failure', 'reviews_pending']);
    const quick = group([a], [member(0)], [], { timeout_ms: 6 * 60_000 });
    expect(decide(quick, {}, ARRIVED).dueAtMs).toBe(ARRIVED + 3 * 60_000);
    expect(says(quick, {}, ARRIVED + 3 * 60_000)).toEqual(['failure', 'reviews_pending']);
    const down = { code: 'provider_down', sinceMs: NOW, untilMs: NOW + 6 * 3_600_000, detail: null };
    expect(decide(quick, { reasons: [down] }, ARRIVED).dueAtMs, 'no other deadline is later').toBe(
      ARRIVED + 3 * 60_000,
    );
  });

  it.each([
    [{ run: null, conclusion: null }, 'in_progress'],
    [{ conclusion: null, seq: null, digest: null, policy: null }, 'in_progress'],
    [{ conclusion: 'in_progress', reasons: ['reviews_pending'] }, 'in_progress'],
    [{ policy: sha('another') }, 'in_progress'],
    [{ conclusion: 'failure', policy: sha('another') }, 'in_progress'],
    [{ conclusion: 'failure', reasons: ['open_findings'] }, 'failure'],
    [{ conclusion: 'action_required', reasons: ['guarded'] }, 'failure'],
    [{ conclusion: 'cancelled', policy: null, reasons: ['closed'] }, 'failure'],
    [{ conclusion: 'failure', policy: null, reasons: ['ledger_invalid'] }, 'failure'],
    [{ conclusion: 'success', policy: null }, 'in_progress'],
  ] as const)('GAT-5: a member that is %j holds the group: %s', (more, conclusion) => {
    const held = group([a], [member(0), member(1, more as Partial<Member>)], [a]);
    expect(says(held)).toEqual([conclusion, 'dependency_open']);
    expect(decide(held).reasons[0]?.detail).toMatch(/^#2: /);
    expect(says(held, {}, ARRIVED + 55 * 60_000)[0], 'never green by waiting').toBe('failure');
  });

  it('GAT-5: a red member is not hidden by one that is waited for', () => {
    const both = group([a], [member(0, { conclusion: null }), member(1, { conclusion: 'failure' })], [a]);
    expect(says(both)).toEqual(['failure', 'dependency_open']);
    expect(decide(both).reasons[0]?.detail).toMatch(/^#2: /);
  });

  it('GAT-5: members that were promised and are not recorded are a gap', () => {
    expect(says(group([a], [member(0)], [a], { members: 2 }))).toEqual(['failure', 'coverage_gap']);
  });

  it('GAT-5: an unknown path waits for its review, and its finding fails the group', () => {
    const open = group([a, b], [member(0)], [a]);
    expect(says(open)).toEqual(['in_progress', 'reviews_pending']);
    expect(decide(open).reasons[0]?.paths).toEqual(['b.ts']);
    const found = group([a, b], [member(0)], [a])
      .finding(1, b)
      .end(b, { verdict: 'findings', findings: [sha('finding 1')] });
    expect(says(found)).toEqual(['failure', 'open_findings']);
    const failed = group([a, b], [member(0)], [a]).end(b, { end: 'bad_output' });
    expect(says(failed)).toEqual(['failure', 'ticket_unavailable']);
  });

  it('GAT-5: an unknown path that nobody reviews, or that is guarded, is no member’s to clear', () => {
    const binary = decided('x.bin', { level: 'L0', reason: 'binary' });
    expect(says(group([a, binary], [member(0)], [a]))).toEqual(['failure', 'unreviewed_files']);
    expect(says(group([a, binary], [member(0)], [a, binary]))).toEqual(['success']);
    const workflow = decided('.github/workflows/countersign.yml', { ownership: 'guarded', block: 'guarded' });
    expect(says(group([workflow], [member(0)]).end(workflow))).toEqual(['action_required', 'guarded']);
    expect(says(group([workflow], [member(0)], [workflow])), 'its people approved it there').toEqual([
      'success',
    ]);
  });

  it('GAT-5: where members cannot be listed each path must be known by its key', () => {
    expect(says(group([a, b], null).end(a).end(b))).toEqual(['success']);
    expect(says(group([a, b], null).end(a))).toEqual(['in_progress', 'reviews_pending']);
  });

  it('LED-8: a ledger that does not verify, or a policy that is none, is never green', () => {
    const ledger = { code: 'ledger_invalid', detail: 'row 3: edited' } as const;
    expect(says(group([a], [member(0)], [a]), { ledger })).toEqual(['failure', 'ledger_invalid']);
    const invalid = new FactList().policy('invalid');
    expect(says(invalid)[1]).toBe('config_invalid');
    expect(says(invalid)[0]).toBe('failure');
    expect(decideGroup(foldRows(group([a], [member(0)], [a]).rows), null, facts(), NOW).conclusion).toBe(
      'failure',
    );
  });

  it('GAT-1: no set of facts makes a group green that lacks a member or a path (property)', () => {
    const conclusions = [
      'queued',
      'in_progress',
      'success',
      'failure',
      'action_required',
      'cancelled',
      null,
    ] as const;
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...conclusions), { minLength: 1, maxLength: 4 }),
        fc.array(fc.constantFrom('known', 'reviewed', 'open', 'failed'), { maxLength: 4 }),
        fc.integer({ min: 0, max: 3_600_000 }),
        (members, paths, after) => {
          const all = paths.map((_, i) => decided(`p${i}.ts`));
          const known = all.filter((_, i) => paths[i] === 'known');
          const list = group(
            all,
            members.map((conclusion, i) => member(i, { conclusion })),
            known,
          );
          for (const [i, path] of all.entries()) {
            if (paths[i] === 'reviewed') list.end(path);
            if (paths[i] === 'failed') list.end(path, { end: 'timeout' });
          }
          const whole =
            members.every((one) => one === 'success') &&
            paths.every((one) => one === 'known' || one === 'reviewed');
          expect(decide(list, {}, ARRIVED + after).conclusion === 'success').toBe(whole);
        },
      ),
    );
  });
});

describe('GAT-5: what is known', () => {
  const files = (...paths: DecidedPath[]) =>
    new Map(paths.map((path): [string, FileFact] => [pathKey(path.path), { ...path, seq: 1 }]));
  const known = (list: FactList, ...members: ReturnType<typeof files>[]) =>
    knownPaths(
      foldRows(list.rows),
      members.map((one, position) => ({ member: { position }, files: one })),
    ).rows;

  it('GAT-5: content equal to a member’s, mode and blob of the head side; a deletion is content too', () => {
    const gone = decided('gone.ts', {
      status: 'D',
      mode: { base: '100644', head: null },
      blob: { base: commit('c'), head: null },
    });
    const list = group([a, b, gone], [member(0), member(1)]);
    const other = { ...b, blob: { base: commit('9'), head: b.blob.head } };
    expect(known(list, files(a), files(other, gone))).toEqual([
      {
        proof: 'content',
        paths: [
          { path: 'a.ts', member: 0 },
          { path: 'b.ts', member: 1 },
          { path: 'gone.ts', member: 1 },
        ],
      },
    ]);
    expect(known(list, files({ ...a, mode: { base: '100644', head: '100755' } }))).toEqual([]);
    expect(known(list, files({ ...a, blob: { base: null, head: commit('8') } }))).toEqual([]);
    expect(known(list)).toEqual([]);
  });

  it('GAT-5: the clean merge makes all known; a tree that is another one makes none', () => {
    const clean = group([a, b], [member(0)], [], { merged: commit('e') });
    expect(known(clean)).toEqual([
      {
        proof: 'merge',
        paths: [
          { path: 'a.ts', member: null },
          { path: 'b.ts', member: null },
        ],
      },
    ]);
    expect(known(group([a, b], [member(0)], [], { merged: commit('f') }))).toEqual([]);
    expect(known(group([a, b], null, [], { merged: commit('e') }), files(a)), 'nobody to vouch').toEqual([]);
  });

  it('GAT-5: what is known is said once, and hundreds of long paths fit their rows', () => {
    expect(known(group([a], [member(0)], [a]), files(a))).toEqual([]);
    const many = Array.from({ length: 400 }, (_, i) => decided(`${'d'.repeat(200)}/${i}.ts`));
    const rows = known(group([], [member(0)]).head(many), files(...many));
    expect(rows.flatMap((row) => row.paths)).toHaveLength(400);
    for (const row of rows) expect(Buffer.byteLength(JSON.stringify(row))).toBeLessThan(32_000);
  });

  it('GAT-5: the deadline is the later of half and five minutes before the queue gives up', () => {
    const minutes = (timeout: number | null) =>
      groupDeadlineMs(timeout === null ? null : timeout * 60_000) / 60_000;
    expect([1, 6, 10, 60, 360, null].map(minutes)).toEqual([0.5, 3, 5, 55, 355, 55]);
  });
});
