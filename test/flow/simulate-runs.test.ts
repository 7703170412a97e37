/** Recorded runs under another policy: real rows and verdicts, a connection that only reads, and the answer as it is printed. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DecidedPath } from '../../app/domain/ledger/row-fields.ts';
import { parsePolicy } from '../../app/domain/policy.ts';
import { countRuns, exitOf, runsText } from '../../app/domain/simulate/runs-text.ts';
import { type SimulatedRun, simulateRuns } from '../../app/flow/simulate-runs.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { connect, type Database } from '../../db/client.ts';
import { setReason } from '../../db/store/reason.ts';
import { findRun } from '../../db/store/run.ts';
import { asOwner } from '../helpers/database.ts';
import { type GateStage, gateStage, type TestFinding, type TestRun } from '../helpers/gate-stage.ts';
import { POLICY } from '../helpers/inbox.ts';
import { app as actor, cause } from '../helpers/ledger.ts';

let stage: GateStage;
let reading: Database;
beforeAll(async () => {
  stage = await gateStage();
  reading = await connect(stage.database.url, { max: 2, readOnly: true });
});
afterAll(async () => {
  await reading.close();
  await stage.close();
});

const proposed = (text: string) => {
  const read = parsePolicy(Buffer.from(text));
  if (!read.ok) throw new Error(JSON.stringify(read.errors));
  return { policy: read.policy, hash: 'f'.repeat(64) };
};
async function simulate(text: string, most = 100, since: Date | null = null): Promise<SimulatedRun[]> {
  return simulateRuns(
    { database: reading, signer: stage.deps.signer },
    { since, most, proposed: proposed(text) },
  );
}
const of = (all: readonly SimulatedRun[], run: TestRun) => {
  const outcome = all.find((one) => one.run === run.id)?.outcome;
  if (outcome?.kind !== 'decided') throw new Error(`not decided: ${JSON.stringify(outcome)}`);
  return outcome;
};
async function decided(
  files: Record<string, Partial<DecidedPath>>,
  reviews: Record<string, readonly TestFinding[]>,
  policy = POLICY,
): Promise<TestRun> {
  const run = await stage.open(Object.fromEntries(Object.keys(files).map((path) => [path, `${path}\n`])), {
    policy,
  });
  await run.decide();
  await stage.work();
  await run.sync(files);
  await run.decide();
  await stage.work();
  for (const [path, findings] of Object.entries(reviews)) {
    await run.review(path, findings);
    await run.decide();
    await stage.work();
  }
  return run;
}
/** Every row of every table, as one digest. */
async function contents(): Promise<string> {
  let digest = '';
  await asOwner(stage.database.url, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
       where schemaname not in ('pg_catalog', 'information_schema') order by 1`,
    );
    for (const { name } of rows) {
      const { rows: found } = await client.query<{ d: string }>(
        `select md5(coalesce(string_agg(t::text, '|' order by t::text), '')) as d from ${name} t`,
      );
      digest += `${name} ${found[0]?.d}\n`;
    }
  });
  return digest;
}

describe('OPS-9, GAT-1: recorded runs under a proposed policy', () => {
  let mild: TestRun;
  let clean: TestRun;
  let waiting: TestRun;
  beforeAll(async () => {
    mild = await decided(
      { 'a.ts': { level: 'L2' }, 'b.ts': { level: 'L2' } },
      { 'a.ts': [{ severity: 'medium' }], 'b.ts': [] },
    );
    clean = await decided({ 'infra/x.ts': { level: 'L2' } }, { 'infra/x.ts': [] });
    waiting = await decided(
      { 'c.ts': { level: 'L2' }, 'docs/d.md': { level: 'L2', kind: 'docs' } },
      { 'c.ts': [] },
    );
  });

  it('every recorded verdict comes out again, under the same policy nothing changes, and nothing is written', async () => {
    const before = await contents();
    const asked = stage.gh.requests.length;
    const all = await simulate(POLICY);
    expect(all).toHaveLength(3);
    expect(of(all, mild)).toMatchObject({
      was: 'success',
      would: 'success',
      changed: false,
      mismatches: [],
      anew: 0,
    });
    expect(of(all, waiting)).toMatchObject({ was: 'in_progress', would: 'in_progress', changed: false });
    expect(exitOf(countRuns(all))).toBe(0);
    expect(await contents()).toBe(before);
    expect(stage.gh.requests.length, 'GitHub is not asked').toBe(asked);
    await expect(reading.pool.query(`delete from run where id = '${mild.id}'`)).rejects.toMatchObject({
      code: '25006',
    });
  });

  it('a lower bar holds what passed, and says by what', async () => {
    const all = await simulate(`${POLICY}gate: {block_at: medium}\n`);
    const one = of(all, mild);
    expect(one).toMatchObject({ was: 'success', would: 'failure', changed: true });
    expect(one.come.map((reason) => reason.code)).toEqual(['open_findings']);
    expect(of(all, clean).changed).toBe(false);
    const counts = countRuns(all);
    expect(counts).toMatchObject({ runs: 3, same: 2, changed: 1, faults: 0 });
    expect(exitOf(counts)).toBe(3);
    const text = runsText(all, 'proposed.yml').join('\n');
    expect(text).toMatch(/acme\/sample#\d+ +success +failure +\+ open_findings: findings block/);
    expect(text).toContain('3 run(s) under proposed.yml: 2 as they were, 1 otherwise');
  });

  it('OWN-8: a new guard needs a person, and is reviewed anew where it raises the level', async () => {
    const all = await simulate(`${POLICY}guard: ["infra/**"]\n`);
    const one = of(all, clean);
    expect(one.come.map((reason) => reason.code)).toEqual(['reviews_pending', 'guarded']);
    expect(one).toMatchObject({ would: 'in_progress', anew: 1 });
    expect(of(all, mild).changed).toBe(false);
    const text = runsText(all, 'p').join('\n');
    expect(text).toContain('what they would find no row tells');
  });

  it('ADM-3: routes and reviewers: what is asked otherwise is pending, the rest stays counted', async () => {
    const routed = await simulate(`${POLICY}routes:\n  - when: {paths: [a.ts]}\n    human: true\n`);
    expect(of(routed, mild).come.map((reason) => reason.code)).toEqual(['human_check']);
    expect(of(routed, mild).anew).toBe(0);
    const other = await simulate(POLICY.replaceAll('lint', 'scan'));
    expect(of(other, mild)).toMatchObject({ would: 'in_progress', anew: 2 });
    const generated = await simulate(`${POLICY}classes: {generated: ["docs/**"]}\n`);
    expect(of(generated, waiting)).toMatchObject({ was: 'in_progress', would: 'success', changed: true });
    expect(of(generated, waiting).go.map((reason) => reason.code)).toEqual(['reviews_pending']);
    const lines = await simulate(`${POLICY}routes:\n  - when: {lines: {min: 5}}\n    level: L3\n`);
    expect(of(lines, mild)).toMatchObject({ changed: false, unknown: ['lines'] });
    expect(runsText(lines, 'p').join('\n')).toContain('a route asks for lines');
  });

  it('another mode is a change of its own', async () => {
    const all = await simulate(`${POLICY}mode: advisory\n`);
    expect(of(all, clean)).toMatchObject({
      would: 'success',
      changed: true,
      modes: ['enforce', 'advisory'],
      come: [],
      go: [],
    });
    expect(runsText(all, 'p').join('\n')).toContain('mode enforce → advisory');
  });

  it('GAT-2: blocks that a verdict ends, and deadlines that pass, come out again as well', async () => {
    await stage.advance(7 * 3_600_000);
    const all = await simulate(POLICY);
    expect(of(all, waiting)).toMatchObject({ was: 'failure', changed: false, mismatches: [] });
    const patient = of(await simulate(`${POLICY}gate: {deadline: 2d}\n`), waiting);
    expect(patient).toMatchObject({ was: 'failure', would: 'in_progress', changed: true });
    const run = await findRun(reading.db, mild.id);
    if (run === null) throw new Error('no run');
    const { rows } = await verifyRun({ database: reading, signer: stage.deps.signer }, run);
    expect(
      rows.some((row) => row.kind === 'block.ended'),
      'the case is there',
    ).toBe(true);
  });

  it('the newest, or those since a moment', async () => {
    expect((await simulate(POLICY, 1)).map((one) => one.run)).toEqual([waiting.id]);
    const run = await findRun(reading.db, clean.id);
    const since = await simulate(POLICY, 100, run?.openedAt ?? null);
    expect(since.map((one) => one.run)).toEqual([waiting.id, clean.id]);
    expect(runsText([], 'p')[0]).toBe('no run is recorded there');
  });

  it('LED-8: a verdict that does not come out again is a fault, named by its row; so is a ledger that was found cut', async () => {
    const forged = await decided({ 'e.ts': { level: 'L2' } }, { 'e.ts': [{ severity: 'critical' }] });
    await forged.rows((unit) => {
      unit.append('gate.decided', {
        block: null,
        actor,
        cause,
        data: {
          head: forged.pull.head.sha,
          base_ref: 'main',
          merge_base: null,
          policy: null,
          mode: 'enforce',
          conclusion: 'success',
          reasons: [],
          blocking: [],
          files: 1,
          counted: 1,
          unreviewed: 0,
          facts: [
            { code: 'head', since: new Date(0).toISOString(), until: null, detail: forged.pull.head.sha },
          ],
          now: new Date().toISOString(),
          digest: 'a'.repeat(64),
        },
      });
    });
    const all = await simulate(POLICY);
    const [fault] = of(all, forged).mismatches;
    expect(fault).toMatchObject({
      recorded: 'success',
      again: expect.stringMatching(/^failure \(.*open_findings/),
    });
    expect(exitOf(countRuns(all)), 'a fault comes before a change').toBe(1);
    expect(runsText(all, 'p').join('\n')).toContain(
      `row ${fault?.seq} recorded success; the same rows and facts now give failure`,
    );
    await stage.database.database.transaction((tx) =>
      setReason(tx, clean.id, { code: 'ledger_invalid', dueAtMs: null, detail: 'row 9 is missing' }),
    );
    const cut = (await simulate(POLICY)).find((one) => one.run === clean.id);
    expect(cut?.outcome).toEqual({ kind: 'broken', fault: 'ledger_invalid: row 9 is missing' });
  });
});
