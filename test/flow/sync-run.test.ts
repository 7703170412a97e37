/** sync-run on a real database, real git and the sandbox's REST: what a person did is what the rows say. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withRun } from '../../app/flow/append-rows.ts';
import { syncRun } from '../../app/flow/sync-run.ts';
import { updateRun } from '../../db/store/run.ts';
import { readAll, type SyncStage, syncStage } from '../helpers/sync.ts';

let stage: SyncStage;
beforeAll(async () => {
  stage = await syncStage();
});
afterAll(async () => {
  expect(stage.gh.violations).toEqual([]);
  await stage.close();
});

const kinds = async (run: string) => (await stage.rows(run)).map((row) => row.kind);

describe('a first reading', () => {
  it('RUN-2: three ordinary commits become blocks, files, one head; again changes nothing', async () => {
    const repo = await stage.repository({ 'src/a.ts': 'a\n', 'src/b.ts': 'b\n', 'docs/x.md': 'x\n' });
    await repo.commit({
      branch: 'topic',
      message: 'Add login',
      files: { 'src/a.ts': 'a2\n', 'src/n.ts': 'n\n' },
    });
    await repo.commit({ branch: 'topic', message: 'fix lint', files: { 'src/a.ts': 'a3\n' } });
    await repo.commit({ branch: 'topic', message: 'Document it', files: { 'docs/x.md': 'y\n' } });
    const pull = await repo.openPull({ head: 'topic', title: 'Login' });
    const run = await stage.open(pull);
    expect(await stage.sync(run)).toEqual({ kind: 'synced', head: pull.head.sha, files: 3 });
    expect(await stage.files(run)).toEqual({
      'docs/x.md': 'L1 document-it owned docs_floor',
      'src/a.ts': 'L2 add-login owned',
      'src/n.ts': 'L2 add-login owned',
    });
    const rows = await kinds(run);
    expect(rows).toEqual([
      'run.opened',
      'run.policy',
      'run.allowed',
      'run.people',
      'block.opened',
      'block.opened',
      'block.opened',
      'block.contributed',
      'decision',
      'run.head',
    ]);
    expect(await stage.run(run)).toMatchObject({
      head: pull.head.sha,
      allowedRule: 'same_repository',
      title: 'Login',
      mode: 'enforce',
    });
    const { version } = await stage.run(run);
    expect(await stage.sync(run)).toEqual({ kind: 'unchanged', head: pull.head.sha, files: 3 });
    expect(await kinds(run)).toEqual(rows);
    expect((await stage.run(run)).version).toBe(version);
    // one more push says what is new, not again who contributed to what
    await pull.push({ message: 'Tidy', files: { 'src/z.ts': 'z\n' } });
    await stage.sync(run);
    expect((await kinds(run)).slice(rows.length)).toEqual([
      'run.people',
      'block.opened',
      'decision',
      'run.head',
    ]);
    expect(await stage.jobs()).toEqual(expect.arrayContaining([`cut-tickets:${run}`, `decide-gate:${run}`]));
  });

  it('RUN-2: syncs at once make each fact once', async () => {
    const repo = await stage.repository({ a: '1\n' });
    await repo.commit({ branch: 'topic', message: 'One', files: { a: '2\n' } });
    const run = await stage.open(await repo.openPull({ head: 'topic' }));
    const outcomes = await Promise.all(Array.from({ length: 4 }, () => stage.sync(run)));
    expect(outcomes.filter((outcome) => outcome.kind === 'synced')).toHaveLength(1);
    expect((await kinds(run)).filter((kind) => kind === 'run.head')).toHaveLength(1);
  });

  it('case 24: a deletion is one path, what came and went is none', async () => {
    const repo = await stage.repository({ 'old/auth.ts': 'auth\n' });
    await repo.commit({ branch: 'topic', message: 'one', files: { 'a.ts': 'a\n', 'b.ts': 'b\n' } });
    await repo.commit({ branch: 'topic', message: 'two', files: { 'b.ts': null } });
    await repo.commit({ branch: 'topic', message: 'three', files: { 'old/auth.ts': null } });
    const run = await stage.open(await repo.openPull({ head: 'topic' }));
    await stage.sync(run);
    expect(await stage.files(run)).toEqual({
      'a.ts': 'L2 one owned',
      'old/auth.ts': 'L0 three owned deleted',
    });
    expect([...(await stage.state(run)).blocks.keys()]).toEqual(['one', 'two', 'three']);
  });

  it('case 18: a rename out of a guarded folder is guarded on both sides', async () => {
    const body = Array.from({ length: 30 }, (_, i) => `line ${i}`).join('\n');
    const repo = await stage.repository(
      { 'secrets/policy.yml': `${body}\n`, 'src/moved.ts': `${body}\nmoved\n` },
      readAll('guard: ["secrets/**"]\n'),
    );
    await repo.commit({
      branch: 'topic',
      message: 'Move',
      renames: { 'secrets/policy.yml': 'docs/old.yml', 'src/moved.ts': 'lib/moved.ts' },
    });
    const run = await stage.open(await repo.openPull({ head: 'topic' }));
    await stage.sync(run);
    expect(await stage.files(run)).toEqual({
      'docs/old.yml': 'L3 guarded guarded guarded',
      'lib/moved.ts': 'L0 move owned moved',
      // no reviewer here reads deletions: its content is read at its new path
      'secrets/policy.yml': 'L0 guarded guarded moved',
      'src/moved.ts': 'L0 move owned moved',
    });
  });

  it('BLK-6: .gitattributes counts from the merge base, never from the head', async () => {
    const repo = await stage.repository({
      '.gitattributes': 'gen/** linguist-generated\n*.bin binary\n',
      'gen/.gitattributes': 'hand.ts -linguist-generated\n',
      'gen/a.ts': '1\n',
    });
    await repo.commit({
      branch: 'topic',
      message: 'Try',
      files: {
        '.gitattributes': '* linguist-generated\n',
        'gen/a.ts': '2\n',
        'gen/hand.ts': '1\n',
        'x.bin': 'b\n',
        'src/evil.ts': 'e\n',
        'package-lock.json': '{}\n',
      },
    });
    const run = await stage.open(await repo.openPull({ head: 'topic' }));
    await stage.sync(run);
    expect(await stage.files(run)).toEqual({
      '.gitattributes': 'L3 guarded guarded guarded',
      'gen/a.ts': 'L0 try owned generated',
      'gen/hand.ts': 'L2 try owned',
      'package-lock.json': 'L0 try owned lockfile',
      'src/evil.ts': 'L2 try owned',
      'x.bin': 'L0 try owned binary',
    });
  });
});

describe('ownership in rows', () => {
  it('OWN-5: a change outside the declared entries is claimed once, as a row, and kept over attempts', async () => {
    const repo = await stage.repository({ 'src/a.ts': '1\n' });
    const first = { Block: 'login', Owns: ['src/', 'lib'] };
    await repo.commit({
      branch: 'topic',
      message: 'Login',
      trailers: first,
      files: { 'src/a.ts': '2\n', 'lib/x.ts': 'x\n', 'other.ts': 'o\n' },
    });
    const pull = await repo.openPull({ head: 'topic' });
    const run = await stage.open(pull);
    await stage.sync(run);
    const claims = (await stage.rows(run)).filter((row) => row.kind === 'block.claimed');
    expect(claims.map((row) => row.data)).toEqual([
      { block: 'login', path: 'other.ts', entry: 'file', auto: true, reason: 'changed outside its entries' },
    ]);
    expect(await stage.files(run)).toEqual({
      'lib/x.ts': 'L2 login owned', // `lib` was a directory when it was first claimed
      'other.ts': 'L2 login owned',
      'src/a.ts': 'L2 login owned',
    });
    await pull.forcePush({
      message: 'Login again',
      trailers: first,
      files: { 'src/a.ts': '3\n', 'other.ts': 'oo\n' },
    });
    await stage.sync(run);
    const state = await stage.state(run);
    expect(state.blocks.get('login')).toMatchObject({ attempt: 2 });
    const rows = await stage.rows(run);
    expect(rows.filter((row) => row.kind === 'block.claimed')).toHaveLength(1);
    expect(rows.find((row) => row.kind === 'block.attempt')?.data).toMatchObject({ kept_claims: 1 });
    expect(Object.keys(await stage.files(run))).toEqual(['other.ts', 'src/a.ts']);
  });

  it('OWN-2: what an exact entry was when it was first claimed stays: a file that becomes a folder owns nothing in it', async () => {
    const repo = await stage.repository({ 'other.ts': '1\n' });
    const message = 'Add thing\n\nBlock: thing\nOwns: thing';
    await repo.commit({ branch: 'topic', message, files: { thing: '1\n' } });
    const pull = await repo.openPull({ head: 'topic' });
    const run = await stage.open(pull);
    await stage.sync(run);
    const claims = async () =>
      (await stage.rows(run)).flatMap((row) => (row.kind === 'block.claimed' ? [row.data.path] : []));
    expect(await claims(), 'its own declaration covers the file').toEqual([]);
    await pull.push({ message, files: { thing: null, 'thing/inner.ts': '2\n' } });
    await stage.sync(run);
    expect(await claims(), 'a folder declared from the start would have covered it').toEqual([
      'thing/inner.ts',
    ]);
  });

  it('OWN-4: a block that changes what another declares is an unowned change', async () => {
    const repo = await stage.repository({ 'src/a.ts': '1\n' });
    await repo.commit({
      branch: 'topic',
      message: 'Core',
      trailers: { Block: 'core', Owns: 'src/' },
      files: { 'src/a.ts': '2\n' },
    });
    await repo.commit({ branch: 'topic', message: 'Drive by', files: { 'src/b.ts': '2\n' } });
    const run = await stage.open(await repo.openPull({ head: 'topic' }));
    await stage.sync(run);
    expect(await stage.files(run)).toEqual({
      'src/a.ts': 'L2 core owned',
      'src/b.ts': 'L2 unowned unowned_change',
    });
  });
});

describe('heads', () => {
  it('case 10: a force push and back keeps one truth and records both', async () => {
    const repo = await stage.repository({ a: '1\n' });
    const c1 = await repo.commit({ branch: 'topic', message: 'One', files: { a: '2\n', b: '1\n' } });
    const pull = await repo.openPull({ head: 'topic' });
    const run = await stage.open(pull);
    await stage.sync(run);
    const key = (await stage.state(run)).files.get('a')?.key;
    const c2 = await pull.forcePush({ message: 'Other', files: { a: '3\n' } });
    await stage.sync(run);
    expect(Object.keys(await stage.files(run))).toEqual(['a']);
    expect((await stage.state(run)).blocks.get('one')).toMatchObject({ ended: 'dropped' });
    await pull.forcePush(c1);
    await stage.sync(run);
    const state = await stage.state(run);
    expect(state.heads.map((head) => [head.head, head.ancestor])).toEqual([
      [c1, null],
      [c2, false],
      [c1, false],
    ]);
    expect(state.files.get('a')?.key).toBe(key);
    expect(state.blocks.get('one')).toMatchObject({ ended: null, attempt: 1 });
    const stored = (await stage.rows(run)).filter((row) => row.kind === 'decision');
    expect(stored.map((row) => [row.data.gone, row.data.paths.map((p) => p.path)])).toEqual([
      [[], ['a', 'b']],
      [['b'], ['a']],
      [[], ['a', 'b']],
    ]);
  });

  it('case 11: another base is another file set; a base that only moved on is none', async () => {
    const repo = await stage.repository({ a: '1\n' });
    await repo.commit({ branch: 'feature', message: 'Feature', files: { 'f.ts': '1\n' } });
    await repo.commit({ branch: 'topic', from: 'feature', message: 'Topic', files: { 't.ts': '1\n' } });
    const pull = await repo.openPull({ head: 'topic', base: 'feature' });
    const run = await stage.open(pull);
    await stage.sync(run);
    expect(Object.keys(await stage.files(run))).toEqual(['t.ts']);
    const rows = (await kinds(run)).length;
    await repo.commit({ branch: 'feature', message: 'Elsewhere', files: { 'z.ts': '1\n' } });
    expect(await stage.sync(run)).toMatchObject({ kind: 'unchanged' });
    expect((await kinds(run)).length).toBe(rows);
    await pull.edit(repo.owner, { base: 'main' });
    await stage.sync(run);
    expect(Object.keys(await stage.files(run)).sort()).toEqual(['f.ts', 't.ts']);
    expect((await stage.run(run)).baseRef).toBe('main');
  });

  it('case 11: a base that was told and that GitHub does not show yet is waited for: the green of the one before stays away', async () => {
    const repo = await stage.repository({ a: '1\n' });
    await repo.commit({ branch: 'feature', message: 'Feature', files: { 'f.ts': '1\n' } });
    await repo.commit({ branch: 'topic', from: 'feature', message: 'Topic', files: { 't.ts': '1\n' } });
    const pull = await repo.openPull({ head: 'topic', base: 'feature' });
    const run = await stage.open(pull);
    await stage.sync(run);
    const tell = (baseRef: string) =>
      withRun(stage.deps, run, (unit) => updateRun(unit.tx, run, { baseRef, headAt: unit.now }));
    await tell('main');
    await expect(stage.sync(run)).rejects.toMatchObject({ code: 'git_unavailable', retryable: true });
    expect((await stage.run(run)).baseRef).toBe('main');
    await pull.edit(repo.owner, { base: 'main' });
    expect(await stage.sync(run)).toMatchObject({ kind: 'synced', files: 2 });
    // told of something that never came: GitHub's word counts in the end
    await tell('feature');
    await stage.database.moveClock(61_000);
    expect(await stage.sync(run)).toMatchObject({ files: 2 });
    expect((await stage.run(run)).baseRef).toBe('main');
  });

  it('case 9: a deleted fork is read through the pull ref', async () => {
    const repo = await stage.repository({ a: '1\n' });
    const stranger = stage.gh.createUser('stranger-9');
    const fork = await repo.fork(stranger);
    await fork.commit({ branch: 'topic', message: 'Change', files: { a: '2\n' }, author: stranger });
    const pull = await repo.openPull({ head: 'topic', fork, user: stranger });
    const run = await stage.open(pull);
    await stage.sync(run);
    await stage.gh.idle();
    await fork.delete();
    expect(await stage.sync(run)).toMatchObject({ files: 1 });
    expect(await stage.run(run)).toMatchObject({ headRepositoryId: null, allowedRule: null });
  });

  it('case 7: a head that has not arrived is git_unavailable and heals by itself', async () => {
    const repo = await stage.repository({ a: '1\n' });
    const stranger = stage.gh.createUser('stranger-7');
    const fork = await repo.fork(stranger);
    await fork.commit({ branch: 'topic', message: 'Change', files: { a: '2\n' }, author: stranger });
    const pull = await repo.openPull({ head: 'topic', fork, user: stranger });
    await stage.gh.idle();
    const run = await stage.open(pull);
    await stage.sync(run);
    repo.propagation = 'manual';
    await pull.push({ message: 'More', files: { b: '1\n' } });
    await expect(stage.sync(run)).rejects.toMatchObject({ code: 'git_unavailable', retryable: true });
    const reasons = await stage.database.database.pool.query(`select code from reason where run_id = $1`, [
      run,
    ]);
    expect(reasons.rows).toEqual([{ code: 'git_unavailable' }]);
    expect((await stage.state(run)).heads).toHaveLength(1);
    await pull.propagate();
    await stage.sync(run);
    expect(Object.keys(await stage.files(run)).sort()).toEqual(['a', 'b']);
    expect(
      (await stage.database.database.pool.query(`select from reason where run_id = $1`, [run])).rowCount,
    ).toBe(0);
  });

  it('GIT-3: a history of its own is no_merge_base, and a push heals it', async () => {
    const repo = await stage.repository({ a: '1\n' });
    const first = await repo.commit({ branch: 'topic', message: 'One', files: { a: '2\n' } });
    const pull = await repo.openPull({ head: 'topic' });
    const run = await stage.open(pull);
    await stage.sync(run);
    await pull.forcePush({ message: 'Unrelated', files: { z: '1\n' }, parents: [] });
    expect(await stage.sync(run)).toEqual({ kind: 'held', reason: 'no_merge_base' });
    const reasons = () =>
      stage.database.database.pool.query(`select code from reason where run_id = $1`, [run]);
    expect((await reasons()).rows).toEqual([{ code: 'no_merge_base' }]);
    expect(await stage.sync(run)).toEqual({ kind: 'held', reason: 'no_merge_base' });
    await pull.forcePush(first);
    await stage.sync(run);
    expect((await reasons()).rows).toEqual([]);
  });

  it('RUN-7: closing and merging end the run, reopening goes on', async () => {
    const repo = await stage.repository({ a: '1\n' });
    await repo.commit({ branch: 'topic', message: 'One', files: { a: '2\n' } });
    const pull = await repo.openPull({ head: 'topic' });
    const run = await stage.open(pull);
    await stage.sync(run);
    await pull.close();
    expect(await stage.sync(run)).toEqual({ kind: 'closed', reason: 'closed' });
    expect(await stage.sync(run)).toEqual({ kind: 'closed', reason: 'closed' });
    await pull.reopen();
    expect(await stage.sync(run)).toMatchObject({ kind: 'synced', files: 1 });
    expect((await stage.run(run)).status).toBe('open');
    await pull.merge(repo.owner);
    expect(await stage.sync(run)).toEqual({ kind: 'closed', reason: 'merged' });
    expect((await kinds(run)).filter((kind) => /closed|reopened/.test(kind))).toEqual([
      'run.closed',
      'run.reopened',
      'run.closed',
    ]);
  });
});

describe('policy and consent', () => {
  it('RUN-8: the policy is the base branch’s, never the head’s; a broken one is config_invalid with its line', async () => {
    const repo = await stage.repository({ a: '1\n' });
    await repo.commit({
      branch: 'topic',
      message: 'Turn it off',
      files: { a: '2\n', '.github/countersign.yml': readAll('mode: advisory\n') },
    });
    const pull = await repo.openPull({ head: 'topic' });
    const run = await stage.open(pull);
    await stage.sync(run);
    expect(await stage.run(run)).toMatchObject({ mode: 'enforce' });
    expect((await stage.files(run))['.github/countersign.yml']).toBe('L3 guarded guarded guarded');
    await repo.commit({
      message: 'Break',
      files: { '.github/countersign.yml': `${readAll()}nonsense: 1\n` },
    });
    await stage.sync(run);
    expect((await stage.state(run)).policy).toMatchObject({ state: 'invalid', error: { line: 9 } });
    expect((await stage.run(run)).policyHash).toBeNull();
    await repo.commit({
      message: 'Mend',
      files: { '.github/countersign.yml': readAll('review: {parallel: 2}\n') },
    });
    await stage.sync(run);
    const state = await stage.state(run);
    expect(state.policy).toMatchObject({ state: 'valid' });
    expect(state.files.size).toBe(2);
    await repo.commit({ message: 'Gone', files: { '.github/countersign.yml': null } });
    await stage.sync(run);
    expect((await stage.state(run)).policy).toMatchObject({ state: 'absent', hash: null });
  });

  it('RUN-10: a stranger waits; an author with write and a listed author do not', async () => {
    const listed = stage.gh.createUser('listed');
    const writer = stage.gh.createUser('writer');
    const stranger = stage.gh.createUser('stranger-10');
    const repo = await stage.repository({ a: '1\n' }, readAll(`allow: {authors: [${listed.id}]}\n`));
    repo.setCollaborator(writer, 'write');
    const rules = [];
    for (const user of [listed, writer, stranger]) {
      const fork = await repo.fork(user);
      await fork.commit({
        branch: 'topic',
        message: 'Change',
        files: { a: `${user.login}\n` },
        author: user,
      });
      const pull = await repo.openPull({ head: 'topic', fork, user });
      await stage.gh.idle();
      const run = await stage.open(pull);
      await stage.sync(run);
      rules.push([user.login, (await stage.run(run)).allowedRule]);
      if (user === writer) {
        // consent is for the head it was given for
        repo.setCollaborator(writer, 'read');
        await pull.push({ message: 'More', files: { b: '1\n' } });
        await stage.gh.idle();
        await stage.sync(run);
        expect((await stage.run(run)).allowedRule).toBeNull();
      }
    }
    expect(rules).toEqual([
      ['listed', 'allow_list'],
      ['writer', 'author_write'],
      ['stranger-10', null],
    ]);
  });

  it('RUN-10: what was open at enrolment waits for a push', async () => {
    const repo = await stage.repository({ a: '1\n' });
    await repo.commit({ branch: 'topic', message: 'One', files: { a: '2\n' } });
    const pull = await repo.openPull({ head: 'topic' });
    const run = await stage.open(pull, 'enrolled');
    await stage.sync(run);
    await stage.sync(run);
    expect((await stage.run(run)).allowedRule).toBeNull();
    await pull.push({ message: 'Two', files: { a: '3\n' } });
    await stage.sync(run);
    expect((await stage.run(run)).allowedRule).toBe('same_repository');
  });
});

describe('size', () => {
  it('case 17: 3,412 files make 3,412 decided paths, no row over 32 KiB', async () => {
    const repo = await stage.repository({ a: '1\n' });
    const files = Object.fromEntries(
      Array.from({ length: 3412 }, (_, i) => [`d${i % 50}/f${i}.ts`, `${i}\n`]),
    );
    await repo.commit({ branch: 'topic', message: 'Many', files });
    const run = await stage.open(await repo.openPull({ head: 'topic' }));
    expect(await stage.sync(run)).toMatchObject({ files: 3412 });
    const state = await stage.state(run);
    expect(state.files.size).toBe(3412);
    expect(state.heads[0]?.files).toBe(3412);
    const { rows } = await stage.database.database.pool.query(
      `select (select count(*) from file where run_id = $1) as files, max(length(body)) as longest from ledger_row where run_id = $1`,
      [run],
    );
    expect(rows).toEqual([{ files: '3412', longest: expect.any(Number) }]);
    expect(rows[0].longest).toBeLessThanOrEqual(32_768);
  });

  it('case 17, GIT-4: a path that GitHub names and git lacks holds the gate until it is there', async () => {
    const repo = await stage.repository({ a: '1\n' });
    await repo.commit({ branch: 'topic', message: 'One', files: { a: '2\n' } });
    const run = await stage.open(await repo.openPull({ head: 'topic' }));
    const { github } = stage.deps;
    const told = (paths: string[]): SyncStage['deps'] => ({
      ...stage.deps,
      github: {
        ...github,
        appId: github.appId,
        installation: async (id) => {
          const real = await github.installation(id);
          return {
            ...real,
            getPull: async (at, n) => ({ ...(await real.getPull(at, n)), changedFiles: paths.length }),
            listPullPaths: async () => paths,
          };
        },
      },
    });
    const reasons = async () =>
      (await stage.database.database.pool.query(`select code, detail from reason where run_id = $1`, [run]))
        .rows;
    await syncRun(told(['a', 'ghost.ts']), { run });
    expect(await reasons()).toEqual([
      { code: 'coverage_gap', detail: 'GitHub names 1 paths that git does not have: ghost.ts' },
    ]);
    expect(stage.warnings.splice(0)).toContain('sync-run.counts-differ');
    await stage.sync(run);
    expect(await reasons()).toEqual([]);
    // a count that differs is a note and holds nothing
    await syncRun(told(['a', 'a']), { run });
    expect([stage.warnings, await reasons()]).toEqual([['sync-run.counts-differ'], []]);
  });

  it('ADM-3: lines are counted where a route asks for them', async () => {
    const repo = await stage.repository(
      { a: '1\n' },
      readAll('routes: [{when: {lines: {min: 3}}, level: L3}]\n'),
    );
    const files = { 'long.ts': '1\n2\n3', 'short.ts': '1\n2\n' };
    await repo.commit({ branch: 'topic', message: 'One', files });
    const run = await stage.open(await repo.openPull({ head: 'topic' }));
    await stage.sync(run);
    expect(await stage.files(run)).toEqual({ 'long.ts': 'L3 one owned', 'short.ts': 'L2 one owned' });
    const { rows } = await stage.database.database.pool.query(
      `select convert_from(path, 'UTF8') as path, lines from file where run_id = $1 order by path`,
      [run],
    );
    expect(rows).toEqual([
      { path: 'long.ts', lines: 3 },
      { path: 'short.ts', lines: 2 },
    ]);
  });

  it('case 14: none of the commits that a merge brings is a block, and what the merge threw away is named', async () => {
    const repo = await stage.repository({ 'both.txt': '1\n' });
    let head = await repo.tip();
    for (let i = 0; i < 8; i++)
      head = await repo.commit({
        branch: 'topic',
        message: `Own ${i}`,
        files: { [`own/${i}`]: `own ${i}\n` },
      });
    for (let i = 0; i < 12; i++)
      await repo.commit({
        message: `Base ${i}`,
        files: { [`base/${i}`]: `${i} of base, quite another thing\n` },
      });
    const main = await repo.tip();
    await repo.commit({
      branch: 'topic',
      message: 'Merge main',
      parents: [head, main],
      files: { 'both.txt': 'merged\n' },
    });
    const run = await stage.open(await repo.openPull({ head: 'topic' }));
    await stage.sync(run);
    const state = await stage.state(run);
    expect(state.heads[0]?.commits).toBe(9);
    expect(state.blocks.size).toBe(9);
    // the merge kept the branch's tree: no commit of the branch removed these, and no block owns that
    const files = await stage.files(run);
    expect(files['base/0']).toBe('L0 unowned orphan deleted');
    expect(files['both.txt']).toBe('L2 merge-main owned');
    // case 14: what is owned is what GitHub's own "Files changed" shows
    expect(Object.keys(files).sort()).toEqual(await stage.listed(run));
  });

  it('BLK-1: commits become blocks oldest first; a merge is one too and owns only what it resolved itself', async () => {
    const repo = await stage.repository({ 'both.txt': '1\n', 'base.txt': '1\n' });
    const first = await repo.commit({ branch: 'topic', message: 'First', files: { 'a.ts': 'a\n' } });
    const second = await repo.commit({
      branch: 'topic',
      message: 'Second',
      files: { 'both.txt': 'topic\n' },
    });
    const main = await repo.commit({
      message: 'On main',
      files: { 'base.txt': '2\n', 'both.txt': 'main\n' },
    });
    const merge = await repo.commit({
      branch: 'topic',
      message: 'Merge main',
      parents: [second, main],
      files: { 'both.txt': 'resolved\n', 'base.txt': '2\n' },
    });
    const last = await repo.commit({ branch: 'topic', message: 'Last', files: { 'z.ts': 'z\n' } });
    const run = await stage.open(await repo.openPull({ head: 'topic' }));
    await stage.sync(run);
    const opened = (await stage.rows(run)).flatMap((row) =>
      row.kind === 'block.opened' ? [[row.data.block, row.data.commits]] : [],
    );
    expect(opened).toEqual([
      ['first', [first]],
      ['second', [second]],
      ['merge-main', [merge]],
      ['last', [last]],
    ]);
    expect(Object.keys(await stage.files(run)).sort()).toEqual(await stage.listed(run));
    // what the merge took over unchanged from the base is nobody's work here
    expect(await stage.files(run)).toEqual({
      'a.ts': 'L2 first owned',
      'both.txt': 'L2 second owned',
      'z.ts': 'L2 last owned',
    });
    const contributed = (await stage.rows(run)).flatMap((row) =>
      row.kind === 'block.contributed' ? [row.data] : [],
    );
    expect(contributed).toMatchObject([{ block: 'merge-main', to: 'second', paths: ['both.txt'] }]);
  });
});
