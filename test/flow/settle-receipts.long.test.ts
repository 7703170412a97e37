import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commandDigest } from '../../app/domain/receipt/input-hash.ts';
import { settleReceipts } from '../../app/flow/settle-receipts.ts';
import {
  RECEIPT_TITLE,
  RECEIPT_VERSION,
  type ReceiptDetail,
  receiptMessage,
} from '../../app/protocol/receipt.ts';
import type { Pull } from '../../sandbox/pull.ts';
import { type InboxStage, inboxStage, POLICY } from '../helpers/inbox.ts';

let stage: InboxStage;
beforeAll(async () => {
  stage = await inboxStage();
});
afterAll(async () => {
  expect(stage.gh.violations).toEqual([]);
  await stage.close();
});

const verifying = (verify: string, more = '') => `${POLICY}verify:
${verify}
routes:
  - {when: {paths: ["**/*.ts"]}, verify: [e2e]}
${more}`;
const CI_POLICY = verifying('  e2e: {from: ci, workflow: ci.yml, job: e2e}');
const ACTION_POLICY = verifying('  e2e: {from: action, run: [npm, test]}');
const RUN = { run: ['npm', 'test'], env: {}, ports: [], artifacts: [] };

const job = (name: string, script: string, more = '') => `on: pull_request
jobs:
  other: {runs-on: ubuntu-latest, steps: [{run: 'true'}]}
  one:
    name: ${name}
    runs-on: ubuntu-latest
${more}    steps:
      - run: |
${script.replace(/^/gm, '          ')}
`;

const zero = 'a'.repeat(64);
const detail = (more: Partial<ReceiptDetail> = {}): ReceiptDetail => ({
  v: RECEIPT_VERSION,
  command: 'e2e',
  run: { items: RUN.run, more: 0 },
  command_sha256: commandDigest(RUN),
  environment_sha256: zero,
  input_sha256: zero,
  base: null,
  head: null,
  tree: { before: 'b'.repeat(40), after: 'b'.repeat(40) },
  mutated: { items: [], more: 0 },
  started: true,
  exit: 0,
  signal: null,
  timed_out: false,
  cancelled: false,
  ms: 12,
  stdout: { bytes: 3, sha256: zero, tail: 'ok\n' },
  stderr: { bytes: 0, sha256: zero, tail: '' },
  artifacts: { found: { items: [], more: 0 }, missing: { items: [], more: 0 } },
  ports: [],
  ...more,
});
/** A step that prints a detail, as our Action would and code of a pull request could. */
const prints = (...details: ReceiptDetail[]) =>
  details.map((one) => `echo '::notice title=${RECEIPT_TITLE}::${receiptMessage(one)}'`).join('\n');

async function make(policy: string, workflows: Record<string, string>) {
  const files = Object.fromEntries(
    Object.entries(workflows).map(([name, text]) => [`.github/workflows/${name}`, text]),
  );
  return (await stage.repository({ policy, files })).repository;
}

/** What the rows say of receipts, in order. */
async function story(pull: Pull): Promise<string[]> {
  return (await stage.rows(pull)).flatMap((row) => {
    switch (row.kind) {
      case 'receipt.reserved':
        return [`${row.data.receipt} reserved ${row.data.commands.join()}`];
      case 'receipt.waiting':
        return [`${row.data.receipt} waits ${row.data.why}`];
      case 'receipt.bound':
        return [`${row.data.receipt} bound ${row.data.job.attempt}`];
      case 'receipt.ended':
        return [`${row.data.receipt} ${row.data.state} ${row.data.why ?? row.data.conclusion}`];
      case 'receipt.reused':
        return [`${row.data.receipt} reuses ${row.data.from.receipt}`];
      default:
        return [];
    }
  });
}
const last = async (pull: Pull) => (await story(pull)).at(-1);
const settle = async (pull: Pull) => settleReceipts(stage.deps, { run: (await stage.run(pull))?.id ?? '' });
/** A look that has read GitHub and has not written yet; what it answers with goes on. */
async function looked(pull: Pull): Promise<() => Promise<unknown>> {
  const run = (await stage.run(pull))?.id ?? '';
  let write = () => {};
  const allowed = new Promise<void>((resolve) => {
    write = resolve;
  });
  let read = () => {};
  const hasRead = new Promise<void>((resolve) => {
    read = resolve;
  });
  const database = new Proxy(stage.deps.database, {
    get: (of, name) =>
      name !== 'transaction'
        ? Reflect.get(of, name)
        : async (...given: Parameters<typeof of.transaction>) => {
            read();
            await allowed;
            return of.transaction(...given);
          },
  });
  const settled = settleReceipts({ ...stage.deps, database }, { run });
  await hasRead;
  return () => {
    write();
    return settled;
  };
}
const runsOf = (pull: Pull) =>
  stage.gh.actions.runs.filter((run) => run.repository === pull.repository && run.event === 'pull_request');

describe('a job of the repository’s own CI', () => {
  it('VER-2: is reserved with the tickets, bound to its run, attempt and job, and ends by GitHub’s conclusion', async () => {
    const repository = await make(CI_POLICY, { 'ci.yml': job('e2e', 'exit 0') });
    const pull = await stage.open(repository, 'passes');
    await stage.settle();
    const told = await story(pull);
    expect(told[0]).toBe('RCP-001 reserved e2e');
    expect(told.at(-1)).toBe('RCP-001 passed success');
    const [run] = runsOf(pull);
    const made = run?.jobs.find(({ name }) => name === 'e2e');
    const ended = (await stage.rows(pull)).findLast((row) => row.kind === 'receipt.ended');
    expect(ended?.kind === 'receipt.ended' && ended.data.job).toEqual({
      workflow_run: String(run?.id),
      attempt: 1,
      job: String(made?.id),
    });
    expect(await settle(pull)).toMatchObject({ kind: 'settled', changed: 0 });
    expect(await story(pull)).toEqual(told);
    const [stored] = await stage.query<{ state: string; job: string }>(
      `select state, job::text from receipt where run_id = '${(await stage.run(pull))?.id}'`,
    );
    expect(stored).toEqual({ state: 'passed', job: String(made?.id) });
  });

  it('VER-1, VER-3: another attempt at GitHub takes its place, whichever way it ends', async () => {
    const repository = await make(CI_POLICY, { 'ci.yml': job('e2e', 'test "$GITHUB_RUN_ATTEMPT" -ge 2') });
    const pull = await stage.open(repository, 'again');
    await stage.settle();
    expect(await last(pull)).toBe('RCP-001 failed failed');
    const [run] = runsOf(pull);
    if (run === undefined) throw new Error('nothing ran');
    await stage.gh.actions.rerun(run, new Set(['e2e']));
    await stage.settle();
    expect(await last(pull)).toBe('RCP-001 passed success');
    expect((await story(pull)).filter((one) => one.includes('reserved'))).toHaveLength(1);
  });

  it('VER-3: a look that saw the end is not lost to an older one that was written first', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'countersign-looks-'));
    const ended = join(folder, 'ended');
    const script = `test "$GITHUB_RUN_ATTEMPT" = 1 || { echo begun; until [ -e ${ended} ]; do sleep 0.02; done; }`;
    const repository = await make(CI_POLICY, { 'ci.yml': job('e2e', script) });
    const pull = await stage.open(repository, 'overtaken');
    await stage.settle();
    const [run] = runsOf(pull);
    if (run === undefined) throw new Error('nothing ran');
    const found = stage.gh.webhooks.drop(({ event }) => event.startsWith('workflow_'));
    await stage.gh.actions.rerun(run, new Set(['e2e']));
    await expect.poll(() => run.jobs.find(({ name }) => name === 'e2e')?.log ?? '').toContain('begun');

    const older = await looked(pull);
    await writeFile(ended, '');
    await stage.gh.idle();
    const newer = await looked(pull);
    await older();
    expect(await last(pull)).toBe('RCP-001 bound 2');
    await newer();
    await stage.settle();
    expect(await last(pull)).toBe('RCP-001 passed success');
    found();
    await rm(folder, { recursive: true });
  });

  it.each([
    ['no such file', {}, 'waits no_run'],
    ['no such job', { 'ci.yml': job('another', 'exit 0') }, 'failed job_missing'],
    [
      'a file that does not start',
      { 'ci.yml': job('e2e', 'exit 0', '    colour: red\n') },
      'failed startup_failure',
    ],
    ['a job that is skipped', { 'ci.yml': job('e2e', 'exit 0', "    if: 'false'\n") }, 'failed skipped'],
  ] as const)('VER-1: %s is named', async (_, workflows, said) => {
    const pull = await stage.open(await make(CI_POLICY, workflows), 'named');
    await stage.settle();
    expect(await last(pull)).toBe(`RCP-001 ${said}`);
  });

  it('RUN-10, VER-1: a stranger’s pull request has no receipt until it is allowed, and none from a self-hosted runner', async () => {
    const text = job('e2e', 'exit 0').replaceAll('ubuntu-latest', 'self-hosted');
    const repository = await make(CI_POLICY, { 'ci.yml': text });
    const eve = stage.gh.createUser('eve');
    const fork = await repository.fork(eve);
    await fork.commit({ branch: 'topic', author: eve, files: { 'a.ts': '// eve\n' } });
    const pull = await repository.openPull({ head: 'topic', user: eve, fork });
    await stage.settle();
    expect(await story(pull)).toEqual([]);
    await pull.comment(stage.alice, '/allow');
    await stage.settle();
    expect(await last(pull)).toBe('RCP-001 failed self_hosted_fork');
  });

  it('VER-2: another definition of the command is another receipt, on the same head', async () => {
    const repository = await make(CI_POLICY, { 'ci.yml': job('e2e', 'exit 0') });
    const pull = await stage.open(repository, 'redefined');
    await stage.settle();
    expect(await last(pull)).toBe('RCP-001 passed success');
    await repository.commit({
      files: { '.github/countersign.yml': CI_POLICY.replace('job: e2e', 'job: another') },
    });
    await stage.settle();
    expect((await story(pull)).slice(-2)).toEqual(['RCP-002 reserved e2e', 'RCP-002 failed job_missing']);
  });

  it('VER-3: a run that ended without its job is run again whole', async () => {
    const repository = await make(CI_POLICY, { 'ci.yml': job('e2e', 'exit 0') });
    stage.gh.actions.disturb({ kind: 'startup_failure', repository });
    const pull = await stage.open(repository, 'jobless');
    await stage.settle();
    expect(await last(pull)).toBe('RCP-001 failed startup_failure');
    await pull.comment(stage.alice, '/rerun failed');
    await stage.settle();
    expect(await last(pull)).toBe('RCP-001 passed success');
    expect(runsOf(pull).map(({ attempt }) => attempt)).toEqual([2]);
  });

  it('CMD-1, VER-3: /rerun COMMAND runs what has ended again, and nothing of another name', async () => {
    const repository = await make(CI_POLICY, { 'ci.yml': job('e2e', 'exit 1') });
    const pull = await stage.open(repository, 'asked');
    await stage.settle();
    await pull.comment(stage.alice, '/rerun e2e');
    await stage.settle();
    const [run] = runsOf(pull);
    expect(run?.jobs.map(({ name, attempt }) => [name, attempt]).sort()).toEqual([
      ['e2e', 2],
      ['other', 1],
    ]);
    await pull.comment(stage.alice, '/rerun nothing-of-that-name');
    await stage.settle();
    expect(run?.attempt).toBe(2);
    expect(stage.gh.comments(pull).some(({ body }) => body.includes('a verify command, all, failed'))).toBe(
      true,
    );
  });
});

describe('a command of ours', () => {
  const verify = 'countersign-verify.yml';

  it.each([
    ['passes with a detail that names no trouble', prints(detail()), 'passed success'],
    ['fails where it told nothing a minute after its end', 'exit 0', 'failed no_detail'],
    [
      'fails where it told of another command',
      prints(detail({ command_sha256: zero })),
      'failed other_command',
    ],
    [
      'fails where what it told cannot be read',
      `echo '::notice title=${RECEIPT_TITLE}::{}'`,
      'failed unreadable',
    ],
    [
      'fails where it changed the tree, though another detail says otherwise',
      prints(detail(), detail({ mutated: { items: ['src/a.ts'], more: 2 } })),
      'failed mutated',
    ],
    ['stays failed whatever is told', `${prints(detail())}\nexit 1`, 'failed failed'],
  ])('VER-3: %s', async (_, script, said) => {
    const repository = await make(ACTION_POLICY, { [verify]: job('verify e2e', script) });
    const pull = await stage.open(repository, 'told');
    await stage.settle();
    if (said.endsWith('no_detail')) {
      // on a machine slow enough the minute is over before the first look
      expect(['RCP-001 bound 1', `RCP-001 ${said}`]).toContain(await last(pull));
      await stage.database.moveClock(61_000);
      await settle(pull);
    }
    expect(await last(pull)).toBe(`RCP-001 ${said}`);
  });

  it('VER-2, REV-8: what was told is kept in the row, its texts redacted and erasable', async () => {
    const key = `sk-ant-api03-${'Ab3'.repeat(30)}AA`;
    const told = detail({
      exit: 3,
      stdout: { bytes: 9, sha256: zero, tail: `key ${key}\n` },
      mutated: { items: ['src/a.ts'], more: 2 },
      artifacts: { found: { items: [], more: 0 }, missing: { items: ['out/*.xml'], more: 0 } },
    });
    const repository = await make(ACTION_POLICY, {
      [verify]: job('verify e2e', `${prints(told)}\nexit 3`),
    });
    const pull = await stage.open(repository, 'kept');
    await stage.settle();
    const row = (await stage.rows(pull)).findLast((one) => one.kind === 'receipt.ended');
    if (row?.kind !== 'receipt.ended') throw new Error('it has not ended');
    expect(row.data.told).toMatchObject({
      exit: 3,
      signal: null,
      mutated: ['src/a.ts'],
      mutated_count: 3,
      missing_count: 1,
      input: zero,
      environment: zero,
    });
    const [text] = await stage.query<{ content: string }>(
      `select convert_from(content, 'utf8') as content from stored_text where sha256 = '\\x${row.data.told?.stdout.tail}'`,
    );
    expect(text?.content).toMatch(/^key \[redacted/);
    expect(text?.content).not.toContain(key);
  });

  it('VER-4: passes by an earlier head of the same content, until its own job says something', async () => {
    const repository = await make(ACTION_POLICY, { [verify]: job('verify e2e', prints(detail())) });
    const pull = await stage.open(repository, 'amended');
    await stage.settle();
    expect(await last(pull)).toBe('RCP-001 passed success');
    stage.gh.actions.disturb({ kind: 'never', repository });
    await pull.forcePush({ message: 'Say it better', files: { 'a.ts': '// amended\n' } });
    await stage.settle();
    const told = await story(pull);
    expect(told.slice(-2)).toEqual(['RCP-002 reserved e2e', 'RCP-002 reuses RCP-001']);
    const decided = (await stage.rows(pull)).findLast((row) => row.kind === 'gate.decided');
    expect(decided?.kind === 'gate.decided' && decided.data.reasons.map(({ code }) => code)).not.toContain(
      'verify_pending',
    );
  });
});
