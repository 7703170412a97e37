/** A policy that a pull request brings (RUN-9): shown before it is merged, and the repair of one that is broken, by deliveries and jobs. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { previewPolicy } from '../../app/flow/preview-policy.ts';
import type { CheckRun, User } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { type InboxStage, inboxStage, POLICY } from '../helpers/inbox.ts';

let stage: InboxStage;
let serial = 0;
beforeAll(async () => {
  stage = await inboxStage();
});
afterAll(async () => {
  expect(stage.gh.violations).toEqual([]);
  await stage.close();
});

const PATH = '.github/countersign.yml';
const BROKEN = `${POLICY}nonsense: 1\n`;
/** A repository of an owner of its own: an installation's budget of writes is a minute long. */
async function fresh(policy: string | null = POLICY): Promise<{ repository: Repository; owner: User }> {
  serial += 1;
  const owner = stage.gh.createUser(`owner-${serial}`);
  const { repository } = await stage.repository({ owner, policy });
  repository.requireCheck('countersign', stage.app);
  repository.setCollaborator(stage.alice, 'write');
  await stage.settle();
  return { repository, owner };
}
async function propose(
  repository: Repository,
  files: Record<string, string>,
  branch = 'policy',
): Promise<Pull> {
  await repository.commit({ branch, message: 'Change the policy', author: stage.alice, files });
  const pull = await repository.openPull({ head: branch, user: stage.alice });
  await stage.settle();
  return pull;
}
const named = (pull: Pull, name: string): CheckRun | undefined =>
  stage.gh.checkRuns(pull.repository, pull.head.sha).find((run) => run.name === name);
const preview = (pull: Pull) => named(pull, 'countersign (preview)');
const reasons = async (pull: Pull) => {
  const gate = (await stage.rows(pull)).findLast((row) => row.kind === 'gate.decided');
  return gate?.kind === 'gate.decided' ? gate.data.reasons.map((one) => one.code) : [];
};
const tickets = async (repository: Repository) =>
  (
    await stage.query(
      `select id from ticket where repository_id = ${repository.id} and state in ('pending', 'leased')`,
    )
  ).length;

describe('RUN-9: the preview of a policy', () => {
  it('is valid, says what it would decide and what differs, and satisfies no rule', async () => {
    const { repository } = await fresh();
    const proposed = `${POLICY}levels: {L2: [lint]}\nguard: ["a.ts"]\ngate: {block_at: low}\n`;
    const pull = await propose(repository, { [PATH]: proposed, 'a.ts': '// mine\n' });
    const check = preview(pull);
    expect(check).toMatchObject({ status: 'completed', conclusion: 'success' });
    expect(check?.title).toMatch(/^Valid: would be in progress here/);
    expect(check?.summary).toMatch(/`a\.ts` \| .* \| owned → guarded/);
    expect(check?.summary).toContain('never whether the pull request may merge');
    expect(named(pull, 'countersign')?.conclusion, 'the gate is the base’s').not.toBe('success');
    expect(stage.gh.mergeable(pull, 'countersign', stage.app)).toBe(false);
    const files = (await stage.rows(pull)).flatMap((row) => (row.kind === 'decision' ? row.data.paths : []));
    expect(
      files.find((file) => file.path === 'a.ts'),
      'nothing of it is a row',
    ).toMatchObject({ ownership: 'owned' });
  });

  it('says where it is not valid, and is mended by the next push', async () => {
    const { repository } = await fresh();
    const pull = await propose(repository, { [PATH]: BROKEN });
    expect(preview(pull)).toMatchObject({
      conclusion: 'failure',
      title: 'Not valid: 1 fault, the first at line 9',
    });
    expect(preview(pull)?.summary).toContain('nonsense');
    const broken = pull.head.sha;
    await pull.push({
      message: 'Mend',
      author: stage.alice,
      files: { [PATH]: `${POLICY}review: {parallel: 2}\n` },
    });
    await stage.settle();
    expect(preview(pull)).toMatchObject({ conclusion: 'success' });
    expect(preview(pull)?.summary).toContain('every path keeps its level');
    expect(stage.gh.checkRuns(repository, broken).filter((run) => run.status !== 'completed')).toEqual([]);
    const before = stage.gh.count('checks/update');
    await previewPolicy(stage.deps, { repository: String(repository.id), pull: String(pull.number) });
    await stage.settle();
    expect(stage.gh.count('checks/update'), 'what stands is not written again').toBe(before);
  });

  it('needs no run: a pull request that adds the policy to a branch without one', async () => {
    const { repository } = await fresh(null);
    repository.requireCheck('something else', stage.app);
    const { repository: plain } = await stage.repository({
      owner: stage.gh.createUser(`plain-${serial}`),
      policy: null,
    });
    const pull = await propose(plain, { [PATH]: POLICY, 'b.ts': '1\n' });
    expect(await stage.run(pull)).toBeNull();
    expect(named(pull, 'countersign')).toBeUndefined();
    expect(preview(pull)).toMatchObject({ conclusion: 'success' });
    expect(preview(pull)?.summary).toContain('No valid policy is on `main` now');
    expect(preview(pull)?.summary).toMatch(/`b\.ts` \| L2 \| lint/);
    const other = await stage.open(plain, 'other');
    await stage.settle();
    expect(preview(other), 'no other pull request gets one').toBeUndefined();
  });

  it('text of the file pings nobody and breaks no table', async () => {
    const { repository } = await fresh();
    const pull = await propose(repository, { [PATH]: `${POLICY}"@org/team | </details> fixes #1": 1\n` });
    expect(preview(pull)?.conclusion).toBe('failure');
    expect(preview(pull)?.title).not.toContain('@');
    expect(preview(pull)?.summary).not.toMatch(/(^|[^`\w])@org/m);
  });
});

describe('RUN-9: a broken policy on the base', () => {
  it('holds every pull request but its repair; a person with maintain decides that one, nothing is spent, and it merges', async () => {
    const { repository, owner } = await fresh();
    const other = await stage.open(repository, 'topic');
    await stage.settle();
    await repository.commit({ message: 'Break it', author: owner, files: { [PATH]: BROKEN } });
    await stage.settle();
    expect(await reasons(other)).toContain('config_invalid');

    const mixed = await propose(repository, { [PATH]: POLICY, 'a.ts': '// sneaked in\n' }, 'mixed');
    expect(await reasons(mixed)).toContain('config_invalid');
    const worse = await propose(repository, { [PATH]: `${BROKEN}more: 1\n` }, 'worse');
    expect(await reasons(worse)).toContain('config_invalid');

    const before = await tickets(repository);
    const repair = await propose(repository, { [PATH]: POLICY }, 'repair');
    expect(await reasons(repair)).toEqual(['guarded']);
    expect(named(repair, 'countersign')).toMatchObject({ conclusion: 'action_required' });
    expect(preview(repair)).toMatchObject({ conclusion: 'success' });
    expect((await stage.rows(repair)).findLast((row) => row.kind === 'run.head')?.data).toMatchObject({
      repair: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(await tickets(repository), 'nothing of it is reviewed').toBe(before);

    await stage.database.moveClock(2_000);
    stage.gh.advance(2_000);
    await repair.comment(owner, '/approve guarded it is what it was');
    await stage.settle();
    expect(await reasons(repair)).toEqual([]);
    expect(named(repair, 'countersign')).toMatchObject({ conclusion: 'success' });
    expect(stage.gh.mergeable(repair, 'countersign', stage.app)).toBe(true);

    await repair.merge(owner);
    await stage.settle();
    expect(await reasons(other), 'the others go on').not.toContain('config_invalid');
  });
});
