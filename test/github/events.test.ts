import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Refusal } from '../../app/errors.ts';
import { readEvent } from '../../app/github/events.ts';
import { idSchema, parseLossless } from '../../app/github/lossless.ts';
import { payload } from '../helpers/payloads.ts';

const bytes = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
const oid = 'a'.repeat(40);

describe('case 70: ids', () => {
  it('above 2^31 and 2^53 come out of a delivery exactly as GitHub wrote them', () => {
    const text = JSON.stringify(
      payload('issue_comment', 'created', {
        issue: { number: 7, pull_request: {} },
        comment: {
          id: 11,
          body: 'id 9007199254740993',
          user: { id: 12, login: 'bob', type: 'User' },
          created_at: 'x',
        },
        installation: { id: 13 },
      }),
    )
      .replace('"id":11', '"id":9223372036854775807')
      .replace('"id":12', '"id":9007199254740993')
      .replace('"id":13', '"id":4900000001');
    expect(readEvent('issue_comment', bytes(text))).toMatchObject({
      comment: '9223372036854775807',
      author: { id: '9007199254740993' },
      installationId: '4900000001',
      body: 'id 9007199254740993',
    });
  });

  it('survive parsing whatever stands around them', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
        fc.string(),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        (id, text, real) => {
          const parsed = parseLossless(
            `{"text":${JSON.stringify(text)},"id":${id},"real":${JSON.stringify(real)},"l":[${id}]}`,
          ) as {
            text: string;
            id: unknown;
            real: number;
            l: unknown[];
          };
          expect(idSchema.parse(parsed.id)).toBe(String(id));
          expect(idSchema.parse(parsed.l[0])).toBe(String(id));
          expect(parsed.text).toBe(text);
          if (Math.abs(real) < 1e15)
            expect(parsed.real).toBe(real === 0 ? JSON.parse(JSON.stringify(real)) : real);
        },
      ),
    );
  });
});

describe('a body and its unsigned name', () => {
  const opened = payload('pull_request', 'opened');
  it('are read when they fit', () => {
    expect(readEvent('pull_request', bytes(opened))).toMatchObject({
      kind: 'pull_request',
      action: 'opened',
    });
    expect(
      readEvent('push', bytes(payload('push', undefined, { ref: 'refs/heads/feature/x' }))),
    ).toMatchObject({
      kind: 'push',
      branch: 'feature/x',
    });
  });

  it.each([
    'issue_comment',
    'push',
    'installation',
    'installation_repositories',
    'repository',
    'check_run',
    'workflow_run',
  ])('are refused when %s is claimed of a pull request', (name) => {
    expect(() => readEvent(name, bytes(opened))).toThrow(Refusal);
  });

  it('of events that we do not use, or of no installation, are ignored', () => {
    expect(readEvent('star', bytes({}))).toEqual({ kind: 'ignored', reason: 'unknown_event' });
    expect(readEvent('constructor', bytes({}))).toEqual({ kind: 'ignored', reason: 'unknown_event' });
    const { installation: _, ...without } = opened;
    expect(readEvent('pull_request', bytes(without))).toEqual({ kind: 'ignored', reason: 'no_installation' });
  });
});

describe('what a delivery may lack', () => {
  it('case 9: a deleted fork and a ghost author are null', () => {
    const pull = payload('pull_request', 'opened')['pull_request'] as Record<string, object>;
    const gone = { ...pull, user: { id: 10137, login: 'ghost' }, head: { ...pull['head'], repo: null } };
    const read = readEvent('pull_request', bytes(payload('pull_request', 'opened', { pull_request: gone })));
    expect(read).toMatchObject({ pull: { author: null, headRepositoryId: null } });
  });

  it('a comment on an issue, an edited comment, a tag: nothing to do', () => {
    const comment = { id: 1, body: 'x', user: null, created_at: 'x' };
    const issue = { number: 1 };
    expect(
      readEvent('issue_comment', bytes(payload('issue_comment', 'created', { issue, comment }))),
    ).toMatchObject({ reason: 'not_a_pull' });
    const onPull = { issue: { number: 1, pull_request: {} }, comment };
    expect(readEvent('issue_comment', bytes(payload('issue_comment', 'edited', onPull)))).toMatchObject({
      reason: 'unused_action',
    });
    expect(readEvent('push', bytes(payload('push', undefined, { ref: 'refs/tags/v1' })))).toMatchObject({
      reason: 'unused_action',
    });
  });

  it('GIT-5: object ids of 64 digits are read, other lengths refused', () => {
    const head = (sha: string) => bytes(payload('push', undefined, { ref: 'refs/heads/x', after: sha }));
    expect(readEvent('push', head('b'.repeat(64)))).toMatchObject({ after: 'b'.repeat(64) });
    expect(() => readEvent('push', head(`${oid}0`))).toThrow(Refusal);
  });
});

describe('GAT-5: merge groups', () => {
  it('GAT-5: a request for checks and an end are read with refs as branches; a base may hold slashes', () => {
    const asked = payload('merge_group', 'checks_requested') as { merge_group: Record<string, string> };
    const told = { ...asked, merge_group: { ...asked.merge_group, base_ref: 'refs/heads/release/1.x' } };
    expect(readEvent('merge_group', bytes(told))).toMatchObject({
      kind: 'merge_group',
      action: 'checks_requested',
      reason: null,
      head: asked.merge_group['head_sha'],
      base: asked.merge_group['base_sha'],
      headRef: asked.merge_group['head_ref']?.replace('refs/heads/', ''),
      baseRef: 'release/1.x',
    });
    const over = { ...told, action: 'destroyed', reason: 'dequeued' };
    expect(readEvent('merge_group', bytes(over))).toMatchObject({ action: 'destroyed', reason: 'dequeued' });
    expect(readEvent('merge_group', bytes({ ...told, action: 'rebuilt' }))).toMatchObject({
      kind: 'ignored',
    });
    const { merge_group: _, ...without } = told;
    expect(() => readEvent('merge_group', bytes(without))).toThrow(Refusal);
  });
});

describe('pull_request_review', () => {
  const read = (action: string) =>
    readEvent(
      'pull_request_review',
      bytes(payload('pull_request_review', action, { installation: { id: 13 } })),
    );

  it('GAT-6: tells whose review of which head it is, given or dismissed; an edit is no news', () => {
    const given = read('submitted');
    expect(given).toMatchObject({
      kind: 'review',
      action: 'submitted',
      commit: expect.stringMatching(/^[0-9a-f]{40}$/),
      review: expect.stringMatching(/^[0-9]+$/),
      author: { bot: false },
    });
    expect(read('dismissed')).toMatchObject({ kind: 'review', action: 'dismissed' });
    const edited = payload('pull_request_review', 'submitted', { action: 'edited' });
    expect(readEvent('pull_request_review', bytes(edited))).toEqual({
      kind: 'ignored',
      reason: 'unused_action',
    });
  });
});
