/** RUN-9: an invalid policy holds every pull request but its repair, which people alone decide. */
import { describe, expect, it } from 'vitest';
import type { DecidedPath } from '../../../app/domain/ledger/row-fields.ts';
import { commit, decided, FactList, HEAD, sha } from '../../helpers/facts.ts';
import { codes, judge, reason } from '../../helpers/gate-facts.ts';

const guarded = (path: string, more: Partial<DecidedPath> = {}) =>
  decided(path, { level: 'L0', reason: 'repair', block: 'guarded', ownership: 'guarded', ...more });
const mended = guarded('.github/countersign.yml');
const repair = (
  paths: readonly DecidedPath[] = [mended],
  more: { repair?: string } = { repair: sha('own') },
) => new FactList().policy('invalid').head(paths, more).allow();
const approve = (list: FactList) => list.made().act({ clause: 'guarded', permission: 'maintain' });

describe('RUN-9: the repair of a policy', () => {
  it('waits for a person with maintain, and for nothing else', () => {
    expect(judge(repair())).toMatchObject({ conclusion: 'action_required', reasons: [{ code: 'guarded' }] });
    expect(judge(approve(repair())), 'then it can merge').toMatchObject({
      conclusion: 'success',
      reasons: [],
    });
  });

  it('waits for no machine and no consent: nothing of it is spent on', () => {
    const list = new FactList().policy('invalid').head([mended], { repair: sha('own') });
    const facts = {
      openTickets: 3,
      reasons: ['setup_incomplete', 'permissions_missing', 'provider_down', 'dispatch_stalled'].map((code) =>
        reason(code),
      ),
    };
    expect(codes(list, facts)).toEqual(['guarded']);
  });

  it.each([
    ['its own policy is not valid', repair([mended], {})],
    ['it changes a path that is not guarded', repair([mended, decided('src/a.ts')])],
    ['it changes nothing', repair([])],
  ])('is none where %s', (_, list) => {
    expect(codes(list)).toContain('config_invalid');
    expect(judge(approve(list)).conclusion).toBe('failure');
  });

  it('is none for a head or a base that was not read yet, nor after the base is valid again', () => {
    expect(judge(approve(repair()), { head: commit('f') }).conclusion).not.toBe('success');
    expect(judge(approve(repair()), { baseRef: 'other' }).conclusion).not.toBe('success');
    expect(codes(repair().policy('valid'))).toEqual(expect.arrayContaining(['unreviewed_files']));
    expect(codes(repair().policy('absent'))).toContain('not_enrolled');
  });

  it('is held by a ledger, a pause and a draft like any other', () => {
    const ledger = { code: 'ledger_invalid', detail: 'row 1' } as const;
    expect(judge(approve(repair()), { ledger }).conclusion).toBe('failure');
    expect(judge(approve(repair()), { reasons: [reason('paused')] }).conclusion).toBe('action_required');
    expect(judge(approve(repair()), { reasons: [reason('git_unavailable', 1)] }).conclusion).toBe('failure');
    expect(judge(approve(repair()), { draft: true }).conclusion).toBe('queued');
  });

  it('needs its own approval for each head', () => {
    const next = { head: commit('e'), repair: sha('own') };
    const other = { ...mended, blob: { base: commit('c'), head: commit('9') } };
    const moved = approve(repair()).head([other], next);
    expect(judge(moved, { head: commit('e') })).toMatchObject({ conclusion: 'action_required' });
    expect(HEAD).not.toBe(next.head);
  });
});
