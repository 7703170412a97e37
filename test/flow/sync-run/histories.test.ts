/** Any history of pushes, rewrites, claims and restarts: the rules of blocks and owners hold after each step, from rows alone. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { knownBlocks } from '../../../app/domain/block/prior.ts';
import type { BlockCommit } from '../../../app/domain/block.ts';
import { rowKinds } from '../../../app/domain/ledger/row-kinds.ts';
import { type ClaimWords, foldClaims } from '../../../app/domain/ownership.ts';
import { parsePolicy } from '../../../app/domain/policy.ts';
import { type HeadPlan, planHead } from '../../../app/flow/sync-run/plan.ts';
import type { Append } from '../../../app/flow/sync-run/record.ts';
import { sayBlocks } from '../../../app/flow/sync-run/record-blocks.ts';
import { type Act, act, type Draft, messageOf, oidOf, rewrite } from '../../helpers/history.ts';

const policyOf = (mode: 'auto' | 'declared') => {
  const reading = parsePolicy(Buffer.from(`version: 1\nownership: ${mode}\n`));
  if (!reading.ok) throw new Error('the policy of this test is not valid');
  return reading.policy;
};
const policies = { auto: policyOf('auto'), declared: policyOf('declared') };

interface LedgerRow {
  readonly seq: number;
  readonly kind: string;
  readonly data: unknown;
}

/** A run as far as these rules need it: its rows, and nothing that a restart would lose. */
class Run {
  rows: LedgerRow[] = [];
  branch: readonly Draft[] = [];
  #epoch = 0;
  readonly #mode: 'auto' | 'declared';
  constructor(mode: 'auto' | 'declared') {
    this.#mode = mode;
  }

  readonly append: Append = (kind, _, data) => {
    const seq = this.rows.length + 1;
    this.rows.push({ seq, kind, data: rowKinds[kind].parse(JSON.parse(JSON.stringify(data))) });
    return seq;
  };

  /** Plans the branch and appends what sync-run would of blocks and claims. */
  sync(): HeadPlan {
    const plan = this.plan();
    sayBlocks(this.append, plan);
    for (const [path, { claim }] of plan.ownership.owners) {
      if (claim !== null) this.append('block.claimed', claim.block, { ...claim, path, auto: true });
    }
    return plan;
  }

  plan(): HeadPlan {
    const commits = this.#commits();
    const paths = new Map(commits.flatMap((commit) => commit.changes.map((one) => [one.path, one] as const)));
    const head = commits.at(-1)?.oid ?? oidOf('base');
    const files = [...paths.values()].map((one) => ({ ...one, status: 'A' as const }));
    const content = {
      reading: { head, base: oidOf('base'), mergeBase: oidOf('base'), commits, files, renames: [] },
      attributes: [],
      lines: new Map(),
      entryModes: new Map(),
      unseen: [],
      ancestor: null,
    } as unknown as Parameters<typeof planHead>[0];
    const policy = policies[this.#mode];
    return planHead(content, policy, oidOf('policy').padEnd(64, '0'), '', [], this.rows as never);
  }

  act(what: Act, plan: HeadPlan): void {
    const open = plan.blocks.map((one) => one.block.id);
    if (what.do === 'rebase') this.#epoch++;
    else if (what.do === 'restart') this.rows = JSON.parse(JSON.stringify(this.rows)) as LedgerRow[];
    else if (what.do === 'claim') {
      const block = open[what.block % Math.max(open.length, 1)];
      const owner = plan.ownership.owners.get(what.path);
      // refused on the grounds of OWN-5 and OWN-8
      if (block === undefined || owner?.ownership === 'guarded' || what.path.startsWith('.GIT')) return;
      const words = foldClaims(this.rows).get(what.path);
      for (const other of open) {
        if (other !== block && (words?.get(other)?.claimed === true || owner?.block === other))
          this.append('block.released', other, { block: other, path: what.path, reason: 'claimed' });
      }
      const data = { block, path: what.path, entry: 'file' as const, auto: false, reason: 'claimed' };
      this.append('block.claimed', block, data);
    } else if (what.do === 'release') {
      const words = [...(foldClaims(this.rows).get(what.path) ?? [])].filter(([, one]) => one.claimed);
      const block = words.sort(([, a], [, b]) => b.seq - a.seq)[0]?.[0];
      if (block !== undefined)
        this.append('block.released', block, { block, path: what.path, reason: 'released' });
    }
    this.branch = rewrite(this.branch, what);
  }

  #commits(): (BlockCommit & { parents: string[] })[] {
    const oids: string[] = [];
    let parent = oidOf(`base ${this.#epoch}`);
    return this.branch.map((draft, i) => {
      const message = messageOf(draft, this.branch.slice(0, i), oids);
      const oid = oidOf(`${parent} ${message} ${draft.time} ${JSON.stringify(draft)}`);
      const trailer = (key: string, values: readonly string[]) => values.map((value) => ({ key, value }));
      const commit = {
        oid,
        parents: [parent],
        authorEmail: 'a@x.test',
        authorTime: draft.time,
        message,
        trailers: [
          ...trailer('Block', draft.slug === null ? [] : [draft.slug]),
          ...trailer('Owns', draft.owns),
          ...trailer('After', draft.after),
        ],
        changes: Object.entries(draft.files).map(([path, text]) => ({
          path,
          modeBase: null,
          modeHead: '100644',
          blobBase: null,
          blobHead: oidOf(text),
        })),
      };
      oids.push(oid);
      parent = oid;
      return commit;
    });
  }
}

function newestClaim(words: ClaimWords | undefined, open: ReadonlySet<string>): string | null {
  const claims = [...(words ?? [])].filter(([id, one]) => one.claimed && !one.auto && open.has(id));
  return claims.sort(([, a], [, b]) => b.seq - a.seq)[0]?.[0] ?? null;
}

function check(run: Run, plan: HeadPlan, identities: Map<string, string>): void {
  const open = new Set(plan.blocks.map((one) => one.block.id));
  const claims = foldClaims(run.rows);
  // OWN-3: exactly one owner, or a name for why not
  for (const file of plan.files) {
    const path = String(file.path);
    if (file.ownership === 'owned') expect(open.has(file.block), path).toBe(true);
    else expect(file.block, path).toBe(file.ownership === 'guarded' ? 'guarded' : 'unowned');
    expect(file.ownership === 'guarded', path).toBe(path === 'CLAUDE.md');
    // OWN-6, OWN-7: the newest word of a person decides
    const person = newestClaim(claims.get(path), open);
    if (person !== null && file.ownership !== 'guarded') expect(file.block, path).toBe(person);
    // OWN-5: never claimed by itself
    if (path.startsWith('.GIT')) {
      for (const word of claims.get(path)?.values() ?? []) expect(word.auto).toBe(false);
    }
  }
  expect(plan.files.map((file) => String(file.path)).sort()).toEqual(
    [...plan.ownership.owners.keys()].sort(),
  );
  // replaying the rows gives the blocks that were planned (BLK-2…BLK-4)
  const known = knownBlocks(run.rows, new Map());
  expect(
    known.filter((one) => one.open).map((one) => [one.id, one.identity, one.attempt, one.commits]),
  ).toEqual(
    expect.arrayContaining(
      plan.blocks.map(({ block }) => [block.id, block.identity, block.attempt, block.commits]),
    ),
  );
  expect(known.filter((one) => one.open)).toHaveLength(plan.blocks.length);
  for (const { id, identity } of known) {
    // BLK-2: an id is one block's for ever
    expect(identities.get(id) ?? identity).toBe(identity);
    identities.set(id, identity);
    expect(['guarded', 'unowned']).not.toContain(id);
  }
  // BLK-4: each commit in one block, an attempt rises by one and only when commits went and came
  const commits = plan.blocks.flatMap(({ block }) => block.commits);
  expect(new Set(commits).size).toBe(run.branch.length);
  expect(commits).toHaveLength(run.branch.length);
  for (const { block, known: before, keptClaims } of plan.blocks) {
    const went = before?.commits.some((oid) => !block.commits.includes(oid)) === true;
    const came = block.commits.some((oid) => before?.commits.includes(oid) !== true);
    expect(block.attempt).toBe((before?.attempt ?? 1) + (went && came ? 1 : 0));
    expect(keptClaims).toBeLessThanOrEqual(claims.size);
  }
}

describe('histories', () => {
  it('OWN-3, OWN-6, BLK-2, BLK-4: any history leaves each changed path with one owner or a name for why not, from rows alone', () => {
    const history = fc.tuple(
      fc.constantFrom('auto' as const, 'declared' as const),
      fc.array(act, { minLength: 1, maxLength: 14 }),
    );
    fc.assert(
      fc.property(history, ([mode, acts]) => {
        const run = new Run(mode);
        const identities = new Map<string, string>();
        let plan = run.plan();
        for (const what of acts) {
          run.act(what, plan);
          plan = run.sync();
          check(run, plan, identities);
          // RUN-2: the same head again says nothing
          const rows = run.rows.length;
          const again = run.sync();
          expect(run.rows.slice(rows)).toEqual([]);
          expect(again.files).toEqual(plan.files);
        }
      }),
      { numRuns: 120 },
    );
  });
});
