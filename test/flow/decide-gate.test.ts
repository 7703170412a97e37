import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openHead } from '../../app/domain/ledger/head.ts';
import type { AnyRow } from '../../app/domain/ledger/row.ts';
import { notesIn } from '../../app/domain/summary/render.ts';
import { closeRun } from '../../app/flow/close-run.ts';
import { decideGate } from '../../app/flow/decide-gate.ts';
import { judgeRun } from '../../app/flow/judge-run.ts';
import { publishChecks } from '../../app/flow/publish-checks.ts';
import { shownDecision } from '../../app/flow/share-head.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import type { Signer } from '../../app/signing/signer.ts';
import { connect } from '../../db/client.ts';
import { findGate } from '../../db/store/gate.ts';
import { clearReason, setReason } from '../../db/store/reason.ts';
import { findRun, updateRun } from '../../db/store/run.ts';
import { asOwner } from '../helpers/database.ts';
import { type GateStage, gateStage, type TestRun } from '../helpers/gate-stage.ts';
import { app as actor, cause, testSigner } from '../helpers/ledger.ts';

let stage: GateStage;
beforeAll(async () => {
  stage = await gateStage();
});
afterAll(() => stage.close());

async function rowsOf(run: TestRun): Promise<readonly AnyRow[]> {
  const found = await findRun(stage.database.database.db, run.id);
  if (found === null) throw new Error('no run');
  const verified = await verifyRun(stage.deps, found, { full: true });
  expect(verified.verdict.kind).toBe('intact');
  return verified.rows;
}
const verdicts = async (run: TestRun) =>
  (await rowsOf(run)).flatMap((row) => (row.kind === 'gate.decided' ? [row.data.conclusion] : []));

const by = { actor, cause };
async function judged(run: TestRun) {
  const found = await findRun(stage.database.database.db, run.id);
  if (found === null) throw new Error('no run');
  return judgeRun(stage.deps, stage.database.database.db, found, new Date());
}

describe('decide-gate', () => {
  test('GAT-4: the gate is under way on a head that git has not read yet, and says what it does', async () => {
    const run = await stage.open({ 'a.ts': 'a\n' });
    await run.decide();
    await stage.work();
    const check = stage.check(run);
    expect(check).toMatchObject({ status: 'in_progress', conclusion: null });
    expect(check?.title).toBe('Reading the pull request');
    expect(check?.externalId).toBe(`cs:${run.repository.id}:${run.pull.head.sha}:countersign:1`);
    expect(await verdicts(run)).toEqual(['in_progress']);
  });

  test('GAT-3: open to green: two writes, two verdicts, and deciding again adds nothing', async () => {
    const run = await stage.open({ 'b.ts': 'b\n', 'c.ts': 'c\n' });
    const before = stage.gh.requests.length;
    await run.decide();
    await stage.work();
    await run.sync({ 'b.ts': {}, 'c.ts': {} });
    await run.review('b.ts');
    await run.decide();
    await stage.work();
    expect(stage.check(run)?.status).toBe('in_progress');
    await run.review('c.ts');
    await run.decide();
    await stage.work();
    const check = stage.check(run);
    expect(check).toMatchObject({ status: 'completed', conclusion: 'success' });
    expect(check?.title).toBe('Passed: 2 files reviewed, nothing blocks');
    expect(await verdicts(run)).toEqual(['in_progress', 'success']);
    const rows = (await rowsOf(run)).length;
    expect(await decideGate(stage.deps, { run: run.id })).toMatchObject({
      kind: 'unchanged',
      conclusion: 'success',
    });
    await stage.work();
    expect((await rowsOf(run)).length).toBe(rows);
    const writes = stage.gh.requests
      .slice(before)
      .filter(
        (request) =>
          (request.method === 'POST' && request.path.endsWith('/check-runs')) || request.method === 'PATCH',
      );
    expect(writes).toHaveLength(2);
  });

  test('LED-10: the check carries run:seq, the hash and a signature that a stranger can check', async () => {
    const run = await stage.open({ 'd.ts': 'd\n' });
    await run.sync({ 'd.ts': {} });
    await run.review('d.ts');
    await run.decide();
    await stage.work();
    const rows = await rowsOf(run);
    const [note = ''] = notesIn(stage.check(run)?.summary ?? '');
    const head = openHead(note, stage.deps.signer.vkey);
    expect(head).toMatchObject({ run: run.id, seq: rows.length });
    expect(stage.check(run)?.summary).toContain(`\`${run.id}:${rows.length}\``);
    expect(rows.at(-1)?.kind).toBe('gate.decided');
  });

  test('GAT-3: a blocking finding fails the gate; a lower one is shown and does not', async () => {
    const run = await stage.open({ 'e.ts': '1\n2\n3\n' });
    await run.sync({ 'e.ts': {} });
    await run.review('e.ts', [{ severity: 'medium', line: 2 }]);
    await run.decide();
    await stage.work();
    expect(stage.check(run)?.conclusion).toBe('success');
    await run.review('e.ts', [{ severity: 'high', line: 3 }]);
    await run.decide();
    await stage.work();
    expect(stage.check(run)).toMatchObject({ conclusion: 'failure', title: '1 finding blocks' });
    expect(stage.check(run, 'countersign / findings')?.conclusion).toBe('failure');
  });

  test('GAT-3: a draft is queued, whatever else holds', async () => {
    const run = await stage.open({ 'f.ts': 'f\n' }, { draft: true });
    await run.sync({ 'f.ts': {} });
    await run.review('f.ts');
    await run.decide();
    await stage.work();
    expect(stage.check(run)).toMatchObject({ status: 'queued', conclusion: null });
  });

  test('GAT-3: advisory mode reports under a name that no rule requires', async () => {
    const run = await stage.open({ 'g.ts': 'g\n' }, { policy: 'version: 1\nmode: advisory\n' });
    await run.sync({ 'g.ts': {} });
    await run.review('g.ts');
    await run.decide();
    await stage.work();
    expect(stage.check(run)).toBeNull();
    expect(stage.check(run, 'countersign (advisory)')?.conclusion).toBe('success');
  });

  test('GAT-3: past its deadline a machine reason is a failure, decided by the sweep; clearing it heals', async () => {
    const run = await stage.open({ 'h.ts': 'h\n' });
    await run.sync({ 'h.ts': {} });
    await run.rows(async (unit) => {
      await setReason(unit.tx, run.id, {
        code: 'provider_down',
        detail: 'openai since 12:00',
        dueInMs: 6 * 3_600_000,
      });
    });
    await run.decide();
    await stage.work();
    expect(stage.check(run)?.status).toBe('in_progress');
    expect(stage.check(run)?.summary).toContain('openai since 12:00');
    await stage.advance(3_600_000);
    expect(stage.check(run)?.status).toBe('in_progress');
    await stage.advance(5 * 3_600_000 + 1_000);
    expect(stage.check(run)?.conclusion).toBe('failure');
    await run.rows(async (unit) => {
      expect(await clearReason(unit.tx, run.id, 'provider_down')).toBe(true);
    });
    await run.review('h.ts');
    await run.decide();
    await stage.work();
    expect(stage.check(run)?.conclusion).toBe('success');
  });

  test('PUB-2: undecided again on the same head is another check run; the concluded one is never set back', async () => {
    const run = await stage.open({ 'i.ts': 'i\n' });
    await run.sync({ 'i.ts': {} });
    await run.review('i.ts');
    await run.decide();
    await stage.work();
    const first = stage.check(run);
    await run.rows(async (unit) => {
      await setReason(unit.tx, run.id, { code: 'git_unavailable', detail: null, dueInMs: 60_000 });
    });
    await run.decide();
    await stage.work();
    const second = stage.check(run);
    expect(second?.id).not.toBe(first?.id);
    expect(second).toMatchObject({ status: 'in_progress' });
    expect(second?.externalId.endsWith(':2')).toBe(true);
    expect(first).toMatchObject({ status: 'completed', conclusion: 'success' });
    await run.rows(async (unit) => void (await clearReason(unit.tx, run.id, 'git_unavailable')));
    await run.decide();
    await stage.work();
    expect(stage.check(run)).toMatchObject({ id: second?.id, conclusion: 'success' });
  });

  test('case 10: a force push away and back: the old head is cancelled, a success too, and gets its own verdict again', async () => {
    const run = await stage.open({ 'j.ts': 'j\n' });
    const c1 = run.pull.head.sha;
    await run.sync({ 'j.ts': {} });
    await run.review('j.ts');
    await run.decide();
    await stage.work();
    const green = stage.check(run);
    expect(green?.conclusion).toBe('success');
    const c2 = await run.pull.forcePush({ message: 'Other', files: { 'k.ts': 'k\n' } });
    await run.told();
    await run.decide();
    await stage.work();
    expect(stage.check(run, 'countersign', c1)).toMatchObject({ id: green?.id, conclusion: 'cancelled' });
    expect(stage.check(run, 'countersign', c1)?.title).toBe(`Superseded by ${c2.slice(0, 10)}`);
    expect(stage.check(run)?.status).toBe('in_progress');
    await run.sync({ 'k.ts': {} });
    await run.pull.forcePush(c1);
    await run.told();
    await run.decide();
    await stage.work();
    // told of c1, the rows are still of c2: nothing of c2 shows on c1
    expect(stage.check(run)).toMatchObject({ status: 'in_progress' });
    expect(stage.check(run)?.id).not.toBe(green?.id);
    await run.sync({ 'j.ts': {} });
    await run.decide();
    await stage.work();
    expect(stage.check(run)).toMatchObject({ conclusion: 'success' });
    expect(stage.check(run, 'countersign', c2)).toMatchObject({ conclusion: 'cancelled' });
  });

  test('LED-8: one edited row fails the gate, names the row, and adds no row on top of it', async () => {
    const run = await stage.open({ 'l.ts': 'l\n' });
    await run.sync({ 'l.ts': {} });
    await run.review('l.ts');
    await asOwner(stage.database.url, async (client) => {
      await client.query('alter table ledger_row disable trigger ledger_row_refuse');
      await client.query(
        `update ledger_row set body = convert_to(replace(convert_from(body, 'utf8'), 'opened', 'openex'), 'utf8')
         where run_id = $1 and seq = 1`,
        [run.id],
      );
      await client.query('alter table ledger_row enable always trigger ledger_row_refuse');
    });
    const before = await stage.database.database.pool.query(
      'select count(*) as n from ledger_row where run_id = $1',
      [run.id],
    );
    await run.decide();
    await stage.work();
    const check = stage.check(run);
    expect(check?.conclusion).toBe('failure');
    expect(check?.summary).toContain('ledger\\_invalid'.replace('\\', ''));
    expect(check?.summary).toMatch(/row 1: edited/);
    const after = await stage.database.database.pool.query(
      'select count(*) as n from ledger_row where run_id = $1',
      [run.id],
    );
    expect(Number(after.rows[0]?.n)).toBe(Number(before.rows[0]?.n) + 1 - 1);
    expect((await findGate(stage.database.database.db, run.id))?.conclusion).toBe('failure');
  });

  test('attack 35: a tail cut off after it was published is no success: the head on GitHub is not a prefix', async () => {
    const run = await stage.open({ 'm.ts': 'm\n', 'n.ts': 'n\n' });
    await run.sync({ 'm.ts': {}, 'n.ts': {} });
    await run.review('m.ts');
    await run.review('n.ts', [{ severity: 'critical' }]);
    await run.decide();
    await stage.work();
    expect(stage.check(run)?.conclusion).toBe('failure');
    await asOwner(stage.database.url, async (client) => {
      for (const table of ['ledger_row', 'ledger_head'])
        await client.query(`alter table ${table} disable trigger user`);
      // the finding, its ticket, the end of its block and the verdict go
      await client.query(
        'delete from ledger_row where run_id = $1 and seq > (select max(seq) - 4 from ledger_row where run_id = $1)',
        [run.id],
      );
      await client.query(
        `update ledger_head h set seq = r.seq, hash = r.hash from ledger_row r
         where h.run_id = $1 and r.run_id = $1 and r.seq = (select max(seq) from ledger_row where run_id = $1)`,
        [run.id],
      );
      for (const table of ['ledger_row', 'ledger_head'])
        await client.query(`alter table ${table} enable trigger user`);
      await client.query('alter table ledger_row enable always trigger ledger_row_guard');
    });
    // another process that never saw the rows: a fresh database object has no memory
    await run.review('n.ts');
    await run.decide();
    await stage.work();
    expect(stage.check(run)?.conclusion).toBe('failure');
    expect(stage.check(run)?.summary).toContain('truncated');
  });

  test('attack 35, LED-9: rows cut back to an earlier green are not published as that green again', async () => {
    const run = await stage.open({ 'cut.ts': 'cut\n' });
    await run.sync({ 'cut.ts': {} });
    await run.review('cut.ts');
    await run.decide();
    await stage.work();
    expect(stage.check(run)?.conclusion).toBe('success');
    const green = (await rowsOf(run)).length;
    await run.review('cut.ts', [{ severity: 'critical' }]);
    await run.decide();
    await stage.work();
    expect(stage.check(run)?.conclusion).toBe('failure');
    await asOwner(stage.database.url, async (client) => {
      for (const table of ['ledger_row', 'ledger_head'])
        await client.query(`alter table ${table} disable trigger user`);
      await client.query('delete from ledger_row where run_id = $1 and seq > $2', [run.id, green]);
      await client.query(
        `update ledger_head h set seq = r.seq, hash = r.hash from ledger_row r
         where h.run_id = $1 and r.run_id = $1 and r.seq = $2`,
        [run.id, green],
      );
      for (const table of ['ledger_row', 'ledger_head'])
        await client.query(`alter table ${table} enable trigger user`);
      await client.query('alter table ledger_row enable always trigger ledger_row_guard');
    });
    // a process that starts now has no memory of the rows that went
    const database = await connect(stage.database.url, { max: 4 });
    try {
      const fresh = { ...stage.deps, database };
      const unit = { repository: String(run.repository.id), sha: run.pull.head.sha, name: 'countersign' };
      for (let n = 0; n < 2; n++) {
        await decideGate(fresh, { run: run.id });
        await publishChecks(fresh, { ...unit, again: true });
        expect(stage.check(run)?.conclusion).toBe('failure');
      }
      expect(stage.check(run)?.summary).toContain('truncated');
    } finally {
      await database.close();
    }
    await stage.work();
    expect(stage.check(run)?.conclusion).toBe('failure');
  });

  test('LED-8: heads signed by a key that is not here make it unverifiable, said once, and heal with the key', async () => {
    const run = await stage.open({ 'key.ts': 'key\n' });
    await run.sync({ 'key.ts': {} });
    await run.decide();
    await stage.work();
    await run.review('key.ts');
    const [own, other] = [stage.deps.signer, testSigner()];
    const signer: Signer = {
      logOf: (installation) => own.logOf(installation),
      signRow: (tip, at, draft) => own.signRow(tip, at, draft),
      checkMac: own.checkMac,
      redactionKeys: (...of) => own.redactionKeys(...of),
      kid: own.kid,
      vkey: other.vkey,
      signHead: (head) => other.signHead(head),
    };
    const lost = { ...stage.deps, signer };
    const unit = { repository: String(run.repository.id), sha: run.pull.head.sha, name: 'countersign' };
    expect(await decideGate(lost, { run: run.id })).toMatchObject({ conclusion: 'failure' });
    await publishChecks(lost, unit);
    expect(stage.check(run)?.conclusion).toBe('failure');
    expect(stage.check(run)?.summary).toContain('ledger_unverifiable');
    expect(await publishChecks(lost, unit), 'it is said, and nobody goes on asking').toMatchObject({
      kind: 'unchanged',
    });
    await run.decide();
    await stage.work();
    expect(stage.check(run)?.conclusion).toBe('success');
  });

  test('case 13: what a merge rested on stays; a closed pull request leaves no green behind', async () => {
    const merged = await stage.open({ 'o.ts': 'o\n' });
    await merged.sync({ 'o.ts': {} });
    await merged.review('o.ts');
    await merged.decide();
    await stage.work();
    await merged.rows(async (unit) => void (await updateRun(unit.tx, merged.id, { status: 'merged' })));
    await merged.decide();
    await stage.work();
    expect(stage.check(merged)?.conclusion).toBe('success');
    const closed = await stage.open({ 'p.ts': 'p\n' });
    await closed.sync({ 'p.ts': {} });
    await closed.review('p.ts');
    await closed.decide();
    await stage.work();
    await closed.rows(async (unit) => void (await updateRun(unit.tx, closed.id, { status: 'closed' })));
    await closed.decide();
    await stage.work();
    expect(stage.check(closed)).toMatchObject({
      conclusion: 'cancelled',
      title: 'The pull request was closed',
    });
  });

  test('RUN-5: on a head that two pull requests share the check is the worst and names who holds it', async () => {
    await stage.repository.commit({ branch: 'other-base', message: 'Base', files: { 'base.txt': 'x\n' } });
    const one = await stage.open({ 'q.ts': 'q\n' });
    const two = await stage.open({}, { base: 'other-base', head: one.pull.head.ref });
    expect(two.pull.head.sha).toBe(one.pull.head.sha);
    await one.sync({ 'q.ts': {} });
    await one.review('q.ts');
    await two.sync({ 'q.ts': {} });
    await one.decide();
    await two.decide();
    await stage.work();
    await stage.advance(10_000);
    expect(stage.check(one)).toMatchObject({ status: 'in_progress' });
    await two.review('q.ts', [{ severity: 'critical' }]);
    await two.decide();
    await stage.work();
    expect(stage.check(one)).toMatchObject({ conclusion: 'failure' });
    expect(stage.check(one)?.title).toContain(`held by #${two.pull.number}`);
    expect(await verdicts(one)).toContain('success');
  });

  test('RUN-5: the check is rewritten when the one that holds it closes, comes back or moves on; /status names it', async () => {
    const one = await stage.open({ 'r.ts': 'r\n' });
    await stage.repository.commit({ branch: 'third-base', message: 'Base', files: { 'b.txt': 'y\n' } });
    const two = await stage.open({}, { base: 'third-base', head: one.pull.head.ref });
    for (const run of [one, two]) await run.sync({ 'r.ts': {} });
    await one.review('r.ts');
    await two.review('r.ts', [{ severity: 'high' }]);
    for (const run of [one, two]) await run.decide();
    await stage.work();
    expect(stage.check(one)).toMatchObject({ conclusion: 'failure' });
    const own = await judged(one);
    expect(own.decision.conclusion).toBe('success');
    expect(await shownDecision(stage.deps, stage.deps.database.db, own, new Date())).toMatchObject({
      conclusion: 'action_required',
      reasons: [{ code: 'shared_head', detail: `pull request #${two.pull.number} (failure)` }],
    });
    const holder = await judged(two);
    expect(await shownDecision(stage.deps, stage.deps.database.db, holder, new Date())).toBe(holder.decision);

    await closeRun(stage.deps, { run: two.id, reason: 'closed', ...by });
    await stage.work();
    expect(stage.check(one)).toMatchObject({ conclusion: 'success' });
    expect(stage.check(one)?.title).not.toContain('held by');

    // the one that does not hold it is named too, and is gone from the list once it left
    const three = await stage.open({}, { base: 'other-base', head: one.pull.head.ref });
    await three.sync({ 'r.ts': {} });
    await three.review('r.ts');
    await three.decide();
    await stage.work();
    expect(stage.check(one)?.summary).toContain(`#${three.pull.number} (success)`);
    await closeRun(stage.deps, { run: three.id, reason: 'closed', ...by });
    await stage.work();
    expect(stage.check(one)).toMatchObject({ conclusion: 'success' });
    expect(stage.check(one)?.summary).not.toContain(`#${three.pull.number}`);
  });
});
