/** A run over a pull request of the sandbox, synchronised with the product's own reader, client and database. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathKey } from '../../app/domain/path.ts';
import { foldRows } from '../../app/domain/run-state/fold.ts';
import type { RunState } from '../../app/domain/run-state/state.ts';
import { openRun } from '../../app/flow/append-rows.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { type SyncOutcome, syncRun } from '../../app/flow/sync-run.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { createGitReader } from '../../app/github/git.ts';
import { createGitHubApp } from '../../app/github/octokit.ts';
import { silentLog } from '../../app/server/log.ts';
import { findRepository, upsertInstallation, upsertRepository } from '../../db/store/installation.ts';
import { findRun, type Run } from '../../db/store/run.ts';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { type TestDatabase, testDatabase } from './database.ts';
import { app as actor, cause, testSigner } from './ledger.ts';

/** A policy of one command that reads everything but deletions. */
export const readAll = (more = ''): string => `version: 1
reviewers:
  lint:
    uses: command
    run: [lint, "{path}"]
    output: sarif
    paths: ["**"]
    trusted: true
${more}`;

/** Everything that tests of sync-run need. */
export interface SyncStage {
  readonly gh: SandboxGitHub;
  readonly database: TestDatabase;
  readonly deps: Deps;
  readonly warnings: string[];
  /** Makes a repository with a policy on main and installs the App. */
  repository(files: Record<string, string | Buffer>, policy?: string): Promise<Repository>;
  /** Opens the run of a pull request, as a delivery would. */
  open(pull: Pull, reason?: 'opened' | 'enrolled' | 'reconciled'): Promise<string>;
  sync(run: string): Promise<SyncOutcome>;
  run(id: string): Promise<Run>;
  /** The paths that GitHub itself lists as changed by a run's pull request, sorted. */
  listed(id: string): Promise<string[]>;
  /** Verified rows, folded; throws unless the chain is intact. */
  state(id: string): Promise<RunState>;
  rows(id: string): Promise<Awaited<ReturnType<typeof verifyRun>>['rows']>;
  /** Present files by path key: `level block ownership`, with the reason where there is one. */
  files(id: string): Promise<Record<string, string>>;
  jobs(): Promise<string[]>;
  close(): Promise<void>;
}

/** Starts a stage; `close` in `afterAll`. */
export async function syncStage(): Promise<SyncStage> {
  const database = await testDatabase();
  const gh = await startGitHub();
  const folder = mkdtempSync(join(tmpdir(), 'cs-sync-'));
  const owner = gh.createUser('acme');
  const bot = gh.createApp();
  const warnings: string[] = [];
  let serial = 0;
  const deps: Deps = {
    database: database.database,
    signer: testSigner(),
    github: createGitHubApp({
      appId: String(bot.id),
      privateKey: bot.privateKey,
      webhookSecret: bot.webhookSecret,
      apiUrl: gh.apiUrl,
      log: silentLog(),
    }),
    git: createGitReader({ directory: join(folder, 'git') }),
    log: { info() {}, warn: (_, event) => warnings.push(event), error() {} },
    ids: { next: () => `id-${++serial}`, secret: () => `secret-${++serial}` },
    settings: { publicUrl: 'https://cs.test', serverUrl: gh.url, version: '0' },
  };
  const installations = new Map<string, string>();
  const stage: SyncStage = {
    gh,
    database,
    deps,
    warnings,
    async repository(files, policy = readAll()) {
      const made = await gh.createRepository({
        owner,
        name: `sample-${++serial}`,
        files: { ...files, '.github/countersign.yml': policy },
      });
      const installation = await gh.installApp(bot, made);
      installations.set(String(made.id), String(installation.id));
      await database.database.transaction(async (tx) => {
        await upsertInstallation(tx, { id: String(installation.id), accountLogin: 'acme' });
        await upsertRepository(tx, {
          id: String(made.id),
          installationId: String(installation.id),
          ownerId: String(owner.id),
          owner: 'acme',
          name: made.name,
          defaultBranch: 'main',
          private: false,
        });
      });
      return made;
    },
    async open(pull, reason = 'opened') {
      const id = `run-${++serial}`;
      const now = new Date();
      const record = {
        id,
        installationId: installations.get(String(pull.repository.id)) ?? '',
        repositoryId: String(pull.repository.id),
        pull: String(pull.number),
        epoch: 1,
        status: 'open' as const,
        toldHead: pull.head.sha,
        baseRef: pull.base.ref,
        headAt: now,
        openedAt: now,
      };
      await openRun(deps, record, async (unit) => {
        unit.append('run.opened', {
          block: null,
          actor,
          cause,
          data: {
            pull: record.pull,
            group_head: null,
            epoch: 1,
            author: { id: String(pull.user.id), login: pull.user.login },
            reason,
          },
        });
      });
      return id;
    },
    sync: (run) => syncRun(deps, { run }),
    async run(id) {
      const found = await findRun(deps.database.db, id);
      if (found === null) throw new Error(`no run ${id}`);
      return found;
    },
    async listed(id) {
      const { installationId, repositoryId, pull } = await stage.run(id);
      const github = await deps.github.installation(installationId);
      const at = await findRepository(database.database.db, repositoryId);
      if (at === null || pull === null) throw new Error(`${id} is of no pull request`);
      return (await github.listPullPaths(at, pull)).sort();
    },
    async rows(id) {
      const { verdict, rows } = await verifyRun(deps, await stage.run(id), { full: true });
      if (verdict.kind !== 'intact') throw new Error(`the chain does not verify: ${JSON.stringify(verdict)}`);
      return rows;
    },
    state: async (id) => foldRows(await stage.rows(id)),
    async files(id) {
      const { files } = await stage.state(id);
      return Object.fromEntries(
        [...files.values()].map((file) => [
          pathKey(file.path),
          [file.level, file.block, file.ownership, ...(file.reason === undefined ? [] : [file.reason])].join(
            ' ',
          ),
        ]),
      );
    },
    async jobs() {
      const { rows } = await database.database.pool.query<{ key: string }>(
        `select key from graphile_worker.jobs order by key`,
      );
      return rows.map((row) => row.key);
    },
    async close() {
      await gh.close();
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return stage;
}
