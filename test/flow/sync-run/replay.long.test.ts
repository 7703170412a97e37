/** The tables of blocks, files and claims are what the rows of the run say, after any history on real git; what else they say counts for nothing. */
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { knownBlocks } from '../../../app/domain/block/prior.ts';
import { encodePath, pathKey } from '../../../app/domain/path.ts';
import { cutTickets } from '../../../app/flow/cut-tickets.ts';
import { decideGate } from '../../../app/flow/decide-gate.ts';
import { runCommand } from '../../../app/flow/run-command.ts';
import { listBlocks } from '../../../db/store/block.ts';
import { listFiles } from '../../../db/store/file.ts';
import type { User } from '../../../sandbox/model.ts';
import type { Pull } from '../../../sandbox/pull.ts';
import type { Repository } from '../../../sandbox/repository.ts';
import { type Act, act, type Draft, messageOf, rewrite } from '../../helpers/history.ts';
import { readAll, type SyncStage, syncStage } from '../../helpers/sync.ts';

let stage: SyncStage;
let maintainer: User;
beforeAll(async () => {
  stage = await syncStage();
  maintainer = stage.gh.createUser('mara');
});
afterAll(() => stage.close());

/** A pull request whose branch follows a history. */
class Branch {
  readonly repository: Repository;
  #base: string;
  #drafts: readonly Draft[] = [];
  #oids: string[] = [];
  pull: Pull | null = null;
  run = '';
  constructor(repository: Repository, base: string) {
    this.repository = repository;
    this.#base = base;
  }

  async act(what: Act): Promise<void> {
    if (what.do === 'claim' || what.do === 'release') return this.#say(what);
    if (what.do === 'rebase') {
      const moved = { 'base.ts': `${this.#oids.length} ${this.#base}\n` };
      this.#base = await this.repository.commit({ message: 'Move on', files: moved });
    }
    const before = this.#drafts;
    this.#drafts = rewrite(before, what);
    const kept = what.do === 'rebase' ? 0 : this.#drafts.findIndex((draft, i) => draft !== before[i]);
    const from = kept < 0 ? this.#drafts.length : kept;
    this.#oids = this.#oids.slice(0, from);
    for (const [i, draft] of this.#drafts.entries()) {
      if (i >= from) this.#oids.push(await this.#commit(draft, i));
    }
    this.pull ??= await this.repository.openPull({ head: 'topic', user: maintainer });
    if (this.run === '') this.run = await stage.open(this.pull);
    await stage.gh.idle();
  }

  async #commit(draft: Draft, at: number): Promise<string> {
    const owns = draft.slug === null ? {} : { Owns: [...draft.owns], After: [...draft.after] };
    const files = Object.entries(draft.files).filter(([path]) => !path.startsWith('.GIT'));
    return this.repository.commit({
      branch: 'topic',
      // a rewrite keeps when its work was written
      date: new Date(draft.time * 1000),
      parents: [this.#oids[at - 1] ?? this.#base],
      message: messageOf(draft, this.#drafts.slice(0, at), this.#oids),
      trailers: { ...(draft.slug === null ? {} : { Block: draft.slug }), ...owns },
      files: files.length === 0 ? { 'a.ts': 'nothing else\n' } : Object.fromEntries(files),
    });
  }

  async #say(what: Extract<Act, { do: 'claim' | 'release' }>): Promise<void> {
    if (this.pull === null) return;
    const open = (await listBlocks(stage.database.database.db, this.run)).filter(
      (block) => block.status !== 'dropped',
    );
    const block = what.do === 'claim' ? ` ${open[what.block % Math.max(open.length, 1)]?.id ?? ''}` : '';
    await stage.database.moveClock(3_600_000);
    stage.gh.advance(3_600_000);
    const comment = await this.pull.comment(maintainer, `/${what.do} ${what.path}${block}`);
    await runCommand(stage.deps, {
      repository: String(this.repository.id),
      pull: String(this.pull.number),
      comment: String(comment.id),
      author: { id: String(maintainer.id), login: maintainer.login, bot: false },
      body: comment.body,
      createdAt: comment.createdAt,
      reconciled: false,
    });
  }

  async settle(): Promise<void> {
    await stage.sync(this.run);
    await cutTickets(stage.deps, { run: this.run });
    await decideGate(stage.deps, { run: this.run });
  }
}

async function branch(): Promise<Branch> {
  const repository = await stage.repository({ 'README.md': '#\n' }, readAll());
  repository.setCollaborator(maintainer, 'write');
  const base = await repository.commit({ message: 'Base', files: { 'base.ts': '1\n' } });
  return new Branch(repository, base);
}

/** Holds the projections to the rows. */
async function replay(id: string): Promise<void> {
  const { db, pool } = stage.database.database;
  const [rows, state] = [await stage.rows(id), await stage.state(id)];
  const known = new Map(knownBlocks(rows, new Map()).map((block) => [block.id, block]));
  const blocks = await listBlocks(db, id);
  expect(blocks.map((block) => block.id).sort()).toEqual([...known.keys()].sort());
  for (const { id: name, identity, attempt, commits, status } of blocks) {
    const block = known.get(name);
    expect({ identity, attempt, commits }).toEqual({
      identity: block?.identity,
      attempt: block?.attempt,
      commits: block?.commits,
    });
    const ended = state.blocks.get(name)?.ended ?? null;
    expect([status, ended]).toEqual([
      ended ?? expect.stringMatching(/^(?:open|waiting|awaiting_human_check)$/),
      ended,
    ]);
  }
  const files = await listFiles(db, id);
  expect(
    files.map((file) => [pathKey(encodePath(file.path)), file.blockId, file.ownership, file.level, file.key]),
  ).toEqual(
    [...state.files.values()]
      .map((file) => [pathKey(file.path), file.block, file.ownership, file.level, file.key])
      .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
  );
  for (const file of files) {
    const owned = file.ownership === 'owned';
    expect(owned ? state.blocks.get(file.blockId)?.ended !== 'dropped' : file.blockId).toEqual(
      owned ? true : file.ownership === 'guarded' ? 'guarded' : 'unowned',
    );
  }
  const claims = await pool.query<{ path: string; block_id: string; seq: number }>(
    `select convert_from(path, 'UTF8') as path, block_id, seq::int from claim where run_id = $1 order by path`,
    [id],
  );
  expect(claims.rows.map((row) => [row.path, row.block_id, row.seq])).toEqual(
    [...state.claims]
      .flatMap(([path, { block, seq }]) => (block === null ? [] : [[path, block, seq] as const]))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

describe('replay', () => {
  it('OWN-6, BLK-2, BLK-4: after any history the tables are what replaying the rows gives', async () => {
    const history = fc.array(act, { minLength: 6, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(history, async (acts) => {
        const made = await branch();
        const first: Act = { do: 'push', draft: (acts.find((one) => one.do === 'push') ?? PUSH).draft };
        for (const what of [first, ...acts]) {
          await made.act(what);
          await made.settle();
          await replay(made.run);
        }
      }),
      { numRuns: 2, endOnFailure: true },
    );
  });

  it('BLK-4, OWN-6: a table that says something else changes no block, no attempt and no owner', async () => {
    const made = await branch();
    const draft = { ...PUSH.draft, slug: 'one', owns: ['src/'], files: { 'a.ts': '1\n', 'src/c.ts': '1\n' } };
    await made.act({ do: 'push', draft });
    await made.settle();
    await stage.database.database.pool.query(
      `update block set attempt = 7, commits = '["x"]', identity = 'x', detail = '{}' where run_id = '${made.run}'`,
    );
    await stage.database.database.pool.query(
      `insert into claim (run_id, block_id, path, entry, auto, seq) values ('${made.run}', 'one', 'CLAUDE.md', 'file', false, 1)
       on conflict do nothing`,
    );
    await made.act({ do: 'amend', at: 0, files: { 'CLAUDE.md': 'evil\n' } });
    await made.settle();
    const [block] = await listBlocks(stage.database.database.db, made.run);
    expect(block).toMatchObject({ id: 'one', attempt: 2 });
    const rows = await stage.rows(made.run);
    // the claim of a.ts outside of `src/`, and nothing that the table made up
    expect(rows.findLast((row) => row.kind === 'block.attempt')?.data).toMatchObject({
      attempt: 2,
      kept_claims: 1,
    });
    expect((await stage.files(made.run))['CLAUDE.md']).toMatch(/ guarded guarded/);
  });
});

const PUSH = {
  do: 'push' as const,
  draft: {
    subject: 'Start',
    time: 1,
    slug: null,
    owns: [],
    after: [],
    files: { 'a.ts': '0\n' },
    joins: null,
  },
};
