/** Where mode `verify` may run and what it takes from a policy, by their own functions; the built Action is in verify.test.ts. */
import { describe, expect, test } from 'vitest';
import { commandsOf } from '../../action/verify/base-policy.ts';
import { readPullEvent } from '../../action/verify/event.ts';
import { readVerifyInputs, type VerifyInputs } from '../../action/verify/inputs.ts';
import { parsePolicy } from '../../app/domain/policy.ts';
import { policyOf } from './verify-stage.ts';

const oid = 'a'.repeat(40);
const repo = { id: 74, full_name: 'octo/repo' };
const payload = (head: unknown = repo): string =>
  JSON.stringify({
    pull_request: { number: 7, base: { sha: oid, repo }, head: { sha: oid, repo: head } },
  });
const job = (env: Record<string, string | undefined> = {}): VerifyInputs =>
  readVerifyInputs({
    GITHUB_REPOSITORY: 'octo/repo',
    GITHUB_WORKSPACE: '/work',
    GITHUB_EVENT_NAME: 'pull_request',
    GITHUB_REF: 'refs/pull/7/merge',
    RUNNER_ENVIRONMENT: 'github-hosted',
    ...env,
  });

describe('events', () => {
  test('VER-1: a pull request on GitHub’s machine, from this repository or from a fork', () => {
    expect(readPullEvent(job(), payload())).toEqual({ number: 7, base: oid, head: oid, fork: false });
    for (const other of [{ id: 75, full_name: 'x/repo' }, { id: 74, full_name: 'x/repo' }, null])
      expect(readPullEvent(job(), payload(other)).fork).toBe(true);
  });

  test.each(['push', 'workflow_run', 'merge_group', 'issue_comment', 'schedule', 'workflow_call', ''])(
    'ACT-3: under %j no command of a pull request is started',
    (event) => {
      expect(() => readPullEvent(job({ GITHUB_EVENT_NAME: event }), payload())).toThrow(
        event === '' ? 'started by nothing that is known' : `started by ${event}`,
      );
    },
  );

  test('ACT-3: nor on another ref than the merge of a pull request, nor in a job that may mint tokens', () => {
    for (const ref of ['refs/heads/main', 'refs/heads/refs/pull/7/merge', 'refs/pull/7/head', ''])
      expect(() => readPullEvent(job({ GITHUB_REF: ref }), payload())).toThrow('only on the merge ref');
    const mints = job({ ACTIONS_ID_TOKEN_REQUEST_URL: 'http://127.0.0.1:1/' });
    expect(() => readPullEvent(mints, payload())).toThrow('id-token: write');
  });

  test('VER-1: never on a self-hosted machine for a fork; one that does not say is one', () => {
    for (const machine of ['self-hosted', 'GitHub-Hosted', '', undefined])
      for (const head of [null, { id: 75, full_name: 'x/repo' }])
        expect(() => readPullEvent(job({ RUNNER_ENVIRONMENT: machine }), payload(head))).toThrow(
          'never runs on a self-hosted runner',
        );
    expect(readPullEvent(job({ RUNNER_ENVIRONMENT: 'self-hosted' }), payload()).fork).toBe(false);
  });

  test('ACT-4: an event that holds no pull request, and inputs that are none, are refused by name', () => {
    for (const text of ['', '{', '[]', '{"pull_request": {"number": 7}}'])
      expect(() => readPullEvent(job(), text)).toThrow('does not hold a pull request');
    expect(() => job({ INPUT_COMMAND: '$(id)' })).toThrow('Input command is not valid');
    expect(() => job({ GITHUB_REPOSITORY: 'octo/repo/../..' })).toThrow('GITHUB_REPOSITORY is not valid');
    expect(() => job({ GITHUB_WORKSPACE: '' })).toThrow('GITHUB_WORKSPACE is not valid');
  });
});

test('VER-1: a command by its name, or all from action, and words for what is not there', () => {
  const read = (verify: Parameters<typeof policyOf>[0]) => {
    const reading = parsePolicy(Buffer.from(policyOf(verify)));
    if (!reading.ok) throw new Error(JSON.stringify(reading.errors));
    return reading.policy;
  };
  const policy = read({
    a: { run: ['true'] },
    b: { run: ['true'] },
    c: { from: 'ci', workflow: 'ci.yml', job: 'test' },
  });
  expect(commandsOf(policy, null).map(([name]) => name)).toEqual(['a', 'b']);
  expect(commandsOf(policy, 'b').map(([name]) => name)).toEqual(['b']);
  expect(() => commandsOf(policy, 'd')).toThrow('has no verify command d; it has a, b');
  expect(() => commandsOf(policy, 'c')).toThrow('is from: ci, not from: action');
  expect(() => commandsOf(read({}), null)).toThrow('no verify command with from: action');
  const many = Array.from({ length: 11 }, (_, i) => [`c${i}`, { run: ['true'] }]);
  expect(() => commandsOf(read(Object.fromEntries(many)), null)).toThrow('receipts of 10');
});
