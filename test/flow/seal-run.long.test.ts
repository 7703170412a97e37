/** Sealing a run whose ledger does not verify (LED-8), and reading the policy again (RUN-8), through deliveries and jobs. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { closeRun } from '../../app/flow/close-run.ts';
import { sealRun } from '../../app/flow/seal-run.ts';
import { syncRun } from '../../app/flow/sync-run.ts';
import { verifyInstallation, verifyRun } from '../../app/flow/verify-run.ts';
import { findInstallation } from '../../db/store/installation.ts';
import { setReason } from '../../db/store/reason.ts';
import { findRun, type Run } from '../../db/store/run.ts';
import { readTexts } from '../../db/store/text.ts';
import type { Pull } from '../../sandbox/pull.ts';
import { asOwner } from '../helpers/database.ts';
import { type InboxStage, inboxStage } from '../helpers/inbox.ts';

let stage: InboxStage;
beforeAll(async () => {
  stage = await inboxStage();
});
afterAll(async () => {
  expect(stage.gh.violations).toEqual([]);
  await stage.close();
});

/** A pull request whose run's first row was edited by somebody with the owner's rights in the database. */
async function broken(): Promise<{ pull: Pull; run: Run }> {
  const { repository } = await fresh();
  const pull = await stage.open(repository, 'topic');
  await stage.settle();
  const run = await stage.run(pull);
  if (run === null) throw new Error('no run');
  await asOwner(stage.database.url, async (client) => {
    await client.query('alter table ledger_row disable trigger ledger_row_refuse');
    await client.query(
      `update ledger_row set body = convert_to(replace(convert_from(body, 'utf8'), 'alice', 'malice'), 'utf8')
       where run_id = $1 and seq = 1`,
      [run.id],
    );
    await client.query('alter table ledger_row enable always trigger ledger_row_refuse');
  });
  // as after a restart: what this process verified before proves nothing
  await verifyRun(stage.deps, run, { full: true });
  return { pull, run };
}

/** A repository of an owner of its own: an installation's budget of writes is a minute long. */
const fresh = () => {
  serial += 1;
  return stage.repository({ owner: stage.gh.createUser(`owner-${serial}`) });
};
let serial = 0;
const rowCount = async (run: string) =>
  (await stage.query<{ n: number }>(`select count(*)::int as n from ledger_row where run_id = '${run}'`))[0]
    ?.n;
const say = async (pull: Pull, body: string, user = pull.repository.owner) => {
  await stage.database.moveClock(1_000);
  const comment = await pull.comment(user, body);
  await stage.settle();
  const [end] = await stage.query<{ state: string; code: string | null; reply: Buffer }>(
    `select state, code, reply from command where comment_id = ${comment.id}`,
  );
  return { ...end, reply: end?.reply?.toString() ?? '' };
};

describe('LED-8: /seal', () => {
  it('closes a run that does not verify as evidence, and the next epoch begins at the same head and names it', async () => {
    const { pull, run } = await broken();
    const rows = await rowCount(run.id);
    expect(await say(pull, '/status'), 'the gate says so').toMatchObject({
      reply: expect.stringContaining('ledger_invalid'),
    });
    const said = await say(pull, '/seal the database was restored by hand');
    expect(said).toMatchObject({ state: 'done', reply: expect.stringMatching(/is sealed .*row 1: edited/) });

    const sealed = await findRun(stage.deps.database.db, run.id);
    expect(sealed).toMatchObject({ status: 'closed', generation: run.generation + 1 });
    expect(await rowCount(run.id), 'no row on top of what is broken').toBe(rows);
    const next = await stage.run(pull);
    expect(next).toMatchObject({ id: sealed?.next, epoch: 2, status: 'open', toldHead: run.toldHead });
    const [first] = await stage.rows(pull);
    expect(first).toMatchObject({
      kind: 'run.opened',
      data: { reason: 'sealed', previous: run.id, epoch: 2, author: { login: 'alice' } },
    });
    expect(await stage.kinds(pull), 'nothing is taken over: it is read anew').toContain('run.head');
    const { verdict } = await verifyRun(stage.deps, sealed as Run, { full: true });
    expect(verdict, 'the evidence stays what it is').toMatchObject({ kind: 'invalid', seq: 1 });
  });

  it('is a row of the installation: who, which run, what follows, and why', async () => {
    const { pull, run } = await broken();
    await say(pull, '/seal a restore went wrong');
    const installation = await findInstallation(stage.deps.database.db, run.installationId);
    if (installation === null) throw new Error('no installation');
    const { verdict, rows } = await verifyInstallation(stage.deps, installation, { full: true });
    expect(verdict.kind).toBe('intact');
    const row = rows.findLast((one) => one.kind === 'run.sealed');
    expect(row).toMatchObject({
      actor: { kind: 'person', id: String(pull.repository.owner.id), via: 'comment' },
      data: { run: run.id, next: (await stage.run(pull))?.id },
    });
    if (row?.kind !== 'run.sealed') throw new Error('no row');
    expect((await readTexts(stage.deps.database.db, [row.data.text])).get(row.data.text)).toBe(
      'a restore went wrong',
    );
  });

  it('RUN-1: no late delivery, sync or close wakes a sealed run, and sealing twice opens one', async () => {
    const { pull, run } = await broken();
    await say(pull, '/seal why');
    const next = await stage.run(pull);
    expect(await syncRun(stage.deps, { run: run.id })).toEqual({
      kind: 'closed',
      reason: 'another run follows it',
    });
    const by = {
      actor: { kind: 'app', id: '1', via: 'schedule' } as const,
      cause: { kind: 'schedule', id: 'x', sha256: null } as const,
    };
    expect(await closeRun(stage.deps, { run: run.id, reason: 'closed', ...by })).toBe('over');
    expect(await sealRun(stage.deps, { run: run.id })).toMatchObject({ run: next?.id });
    await pull.push({ message: 'More', files: { 'b.ts': '1\n' } });
    await stage.settle();
    expect(await stage.run(pull)).toMatchObject({ id: next?.id, toldHead: pull.head.sha });
    expect(
      await stage.query(
        `select epoch from run where pull = ${pull.number} and repository_id = ${pull.repository.id} order by epoch`,
      ),
    ).toEqual([{ epoch: 1 }, { epoch: 2 }]);
  });

  it('is refused without admin, without a reason, and where the ledger verifies; a refusal adds no row', async () => {
    const { pull, run } = await broken();
    const bob = stage.gh.createUser(`bob-${pull.repository.id}`);
    pull.repository.setCollaborator(bob, 'maintain');
    const rows = await rowCount(run.id);
    expect(await say(pull, '/seal because', bob)).toMatchObject({ state: 'refused', code: 'denied' });
    expect(await say(pull, '/seal')).toMatchObject({ state: 'refused', code: 'bad_command' });
    expect(await rowCount(run.id)).toBe(rows);
    expect(await stage.run(pull)).toMatchObject({ id: run.id, status: 'open' });
    await say(pull, '/seal now');
    expect(await say(pull, '/seal again')).toMatchObject({
      state: 'refused',
      code: 'conflict',
      reply: expect.stringContaining('verifies'),
    });
  });

  it('a chain that was found cut against what is published is sealed as well, and gets no row on top', async () => {
    const { repository } = await fresh();
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    const run = await stage.run(pull);
    if (run === null) throw new Error('no run');
    // what publishing notes when GitHub keeps a head that the chain no longer reaches (LED-9)
    await stage.deps.database.transaction((tx) =>
      setReason(tx, run.id, { code: 'ledger_invalid', detail: 'row 9: truncated', dueAtMs: null }),
    );
    const rows = await rowCount(run.id);
    await pull.close();
    await stage.settle();
    await pull.reopen();
    await stage.settle();
    expect(await rowCount(run.id)).toBe(rows);
    expect(await say(pull, '/seal a backup was restored')).toMatchObject({
      state: 'done',
      reply: expect.stringContaining('row 9: truncated'),
    });
    expect(await rowCount(run.id)).toBe(rows);
    expect(await stage.run(pull)).toMatchObject({ epoch: 2, status: 'open' });
    const gate = (await stage.rows(pull)).findLast((row) => row.kind === 'gate.decided');
    expect(JSON.stringify(gate), 'the next run has nothing of it').not.toContain('ledger_invalid');
  });

  it('a pull request with a broken ledger is closed and reopened without a row on top', async () => {
    const { pull, run } = await broken();
    const rows = await rowCount(run.id);
    await pull.close();
    await stage.settle();
    expect(await findRun(stage.deps.database.db, run.id)).toMatchObject({ status: 'closed' });
    await pull.reopen();
    await stage.settle();
    expect(await findRun(stage.deps.database.db, run.id)).toMatchObject({ status: 'open' });
    expect(await rowCount(run.id)).toBe(rows);
  });
});

describe('RUN-8: /reload', () => {
  it('reads a policy whose push was never told, and decides by it', async () => {
    const { repository } = await fresh();
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    const end = stage.gh.webhooks.drop((one) => one.event === 'push');
    await repository.commit({
      message: 'Only advise',
      files: { '.github/countersign.yml': 'version: 1\nmode: advisory\n' },
    });
    await stage.settle();
    end();
    expect(await stage.run(pull)).toMatchObject({ mode: 'enforce' });
    expect(await say(pull, '/reload')).toMatchObject({ state: 'done' });
    expect(await stage.run(pull)).toMatchObject({ mode: 'advisory' });
    expect(await stage.query(`select mode from enrolment where repository_id = ${repository.id}`)).toEqual([
      { mode: 'advisory' },
    ]);
    const kinds = await stage.kinds(pull);
    await say(pull, '/reload');
    expect(await stage.kinds(pull), 'nothing changed, nothing is recorded').toEqual(kinds);
  });

  it.each(['missing', 'damaged'])(
    'a snapshot that is %s is read once more and kept, never replaced by another',
    async (how) => {
      const { repository } = await fresh();
      const pull = await stage.open(repository, 'topic');
      await stage.settle();
      const hash = (await stage.run(pull))?.policyHash;
      await asOwner(stage.database.url, (client) =>
        how === 'missing'
          ? client.query('delete from policy where hash = $1', [hash])
          : client.query(`update policy set bytes = '\\x00' where hash = $1`, [hash]),
      );
      const kept = async () => {
        const { rows } = await stage.deps.database.pool.query(
          `select encode(sha256(bytes), 'hex') as hash from policy where hash = $1`,
          [hash],
        );
        return rows[0]?.hash ?? null;
      };
      expect(await kept()).not.toBe(hash);
      await say(pull, '/reload');
      expect((await stage.run(pull))?.policyHash).toBe(hash);
      expect(await kept()).toBe(hash);
    },
  );

  it('needs write', async () => {
    const { repository } = await fresh();
    const pull = await stage.open(repository, 'topic');
    await stage.settle();
    const reader = stage.gh.createUser(`reader-${repository.id}`);
    repository.setCollaborator(reader, 'triage');
    expect(await say(pull, '/reload', reader)).toMatchObject({ state: 'refused', code: 'denied' });
  });
});
