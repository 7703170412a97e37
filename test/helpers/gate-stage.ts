/**
 * A run driven by rows: sandbox GitHub, database, signer, and the arrows decide-gate and
 * publish-checks run by the real job queue. Rows are appended through `withRun`, as every step does.
 */
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger, runOnce } from 'graphile-worker';
import { pino } from 'pino';
import type { DecidedPath } from '../../app/domain/ledger/row-fields.ts';
import type { RowData } from '../../app/domain/ledger/row-kinds.ts';
import { openRun, type RunUnit, withRun } from '../../app/flow/append-rows.ts';
import { type DecideGateInput, decideGate, sweepGates } from '../../app/flow/decide-gate.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { type PublishChecksInput, publishChecks, sweepChecks } from '../../app/flow/publish-checks.ts';
import { createGitReader } from '../../app/github/git.ts';
import { createGitHubApp } from '../../app/github/octokit.ts';
import type { GitHub, GitHubApp } from '../../app/github/port.ts';
import type { Signer } from '../../app/signing/signer.ts';
import { upsertInstallation, upsertRepository } from '../../db/store/installation.ts';
import { storePolicy } from '../../db/store/policy.ts';
import { updateRun } from '../../db/store/run.ts';
import { putText, putTexts } from '../../db/store/text.ts';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { App, CheckRun, Installation } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { type TestDatabase, testDatabase } from './database.ts';
import { app as appActor, cause, testSigner } from './ledger.ts';

const sha = (text: string) => createHash('sha256').update(text).digest('hex');
const by = { block: null, actor: appActor, cause };

/** A finding to raise, with defaults. */
export interface TestFinding {
  readonly title?: string;
  readonly body?: string;
  readonly line?: number;
  readonly end?: number;
  readonly severity?: RowData<'finding.raised'>['severity'];
  readonly quote?: string;
  readonly suggestion?: string;
}

/** Everything that runs for one test file. */
export interface GateStage {
  readonly gh: SandboxGitHub;
  readonly app: App;
  readonly deps: Deps;
  readonly database: TestDatabase;
  readonly repository: Repository;
  /** A repository of its own with the App in it. */
  addRepository(name: string): Promise<Repository>;
  /** Opens a pull request and its run; the rows know nothing of its content yet. */
  open(
    files: Record<string, string | null>,
    options?: { base?: string; policy?: string; draft?: boolean; repository?: Repository; head?: string },
  ): Promise<TestRun>;
  /** Runs queued jobs of both arrows until none is ready. */
  work(): Promise<void>;
  /** Moves product time and runs both sweeps and what they queue. */
  advance(ms: number): Promise<void>;
  /** The check run of that name that governs a commit. */
  check(run: TestRun, name?: string, commit?: string): CheckRun | null;
  close(): Promise<void>;
}

/** A run and the facts a test adds to it. */
export interface TestRun {
  readonly id: string;
  readonly pull: Pull;
  readonly repository: Repository;
  /** Appends any rows in one unit of work. */
  rows(fn: (unit: RunUnit) => Promise<void> | void): Promise<void>;
  /** Records the present head with this file set, allowed. Levels default to L1. */
  sync(files: Record<string, Partial<DecidedPath>>): Promise<void>;
  /** Tells of the pull request's present head without reading it, as a delivery does. */
  told(): Promise<void>;
  /** Ends the ticket of a path as reviewed with these findings (none: approved), under its present key. */
  review(path: string, findings?: readonly TestFinding[]): Promise<void>;
  /** Queues decide-gate. */
  decide(): Promise<void>;
}

/** The real client, made anew before its budget of writes is used up: its pace has tests of its own, and 80 writes a minute is long. */
function unpaced(make: () => GitHubApp): GitHubApp {
  const first = make();
  return new Proxy(first, {
    get(target, name) {
      if (name !== 'installation') return Reflect.get(target, name, target) as unknown;
      return async (id: string): Promise<GitHub> => {
        let client = await make().installation(id);
        let calls = 0;
        return new Proxy(client, {
          // it is awaited, and it is no promise itself
          get: (_, method) =>
            method === 'then'
              ? undefined
              : async (...args: unknown[]) => {
                  if (++calls % 15 === 0) client = await make().installation(id);
                  const call = Reflect.get(client, method) as (...args: unknown[]) => unknown;
                  return call.apply(client, args);
                },
        });
      };
    },
  });
}

/** Starts it, with a signer of its own or the one given; `close()` in `afterAll`. */
export async function gateStage(signer: Signer = testSigner()): Promise<GateStage> {
  const database = await testDatabase();
  const folder = await mkdtemp(join(tmpdir(), 'countersign-gate-'));
  const gh = await startGitHub();
  const owner = gh.createUser('acme');
  const app = gh.createApp();
  const log = pino({ level: process.env['GATE_LOG'] ?? 'silent' });
  const deps: Deps = {
    database: database.database,
    signer,
    github: unpaced(() =>
      createGitHubApp({
        appId: String(app.id),
        privateKey: app.privateKey,
        webhookSecret: app.webhookSecret,
        apiUrl: gh.apiUrl,
        log: pino({ level: 'silent' }) as never,
      }),
    ),
    git: createGitReader({ directory: join(folder, 'git') }),
    log,
    ids: { next: () => `id${Math.random()}`, secret: () => 'secret' },
    settings: { publicUrl: 'https://countersign.test', serverUrl: gh.url, version: 'test' },
  };
  const installations = new Map<Repository, Installation>();
  let count = 0;

  const addRepository = async (name: string): Promise<Repository> => {
    const repository = await gh.createRepository({ owner, name });
    const installation = await gh.installApp(app, repository);
    installations.set(repository, installation);
    await database.database.transaction(async (tx) => {
      const id = String(installation.id);
      await upsertInstallation(tx, {
        id,
        accountId: String(owner.id),
        accountLogin: 'acme',
        status: 'active',
      });
      await upsertRepository(tx, {
        id: String(repository.id),
        installationId: id,
        ownerId: String(owner.id),
        owner: 'acme',
        name,
        defaultBranch: 'main',
        private: false,
      });
    });
    return repository;
  };
  const main = await addRepository('sample');

  const stage: GateStage = {
    gh,
    app,
    deps,
    database,
    repository: main,
    addRepository,
    async open(
      files,
      { base = 'main', policy = 'version: 1\n', draft = false, repository = main, head } = {},
    ) {
      const id = `run-${++count}`;
      const branch = head ?? `topic-${count}`;
      if (head === undefined) await repository.commit({ branch, message: 'Change', files });
      const pull = await repository.openPull({ head: branch, base, user: owner, draft });
      const installationId = String(installations.get(repository)?.id);
      const hash = await database.database.transaction((tx) => storePolicy(tx, Buffer.from(policy)));
      const now = new Date(Date.now() + ahead);
      await openRun(
        deps,
        {
          id,
          installationId,
          repositoryId: String(repository.id),
          pull: String(pull.number),
          epoch: 1,
          status: 'open',
          toldHead: pull.head.sha,
          baseRef: base,
          draft,
          mode: policy.includes('advisory') ? 'advisory' : 'enforce',
          headAt: now,
          openedAt: now,
        },
        async (unit) => {
          const data = {
            pull: String(pull.number),
            group_head: null,
            epoch: 1,
            author: null,
            reason: 'opened',
          } as const;
          unit.append('run.opened', { ...by, data });
        },
      );
      return testRun(id, pull, repository, hash, policy.includes('advisory') ? 'advisory' : 'enforce');
    },
    async work() {
      await runOnce({
        pgPool: database.database.pool,
        logger: new Logger(() => () => {}),
        noHandleSignals: true,
        taskList: {
          'decide-gate': async (payload) => void (await decideGate(deps, payload as DecideGateInput)),
          'publish-checks': async (payload) =>
            void (await publishChecks(deps, payload as PublishChecksInput)),
        },
      });
      const { rows } = await database.database.pool.query(
        'select task_identifier, last_error from graphile_worker.jobs where last_error is not null',
      );
      if (rows.length > 0) throw new Error(`a job failed: ${JSON.stringify(rows[0])}`);
    },
    async advance(ms) {
      await database.moveClock(ms);
      ahead += ms;
      await sweepGates(deps);
      await sweepChecks(deps);
      await stage.work();
    },
    check: (run, name = 'countersign', commit = run.pull.head.sha) =>
      gh.governing(run.repository, commit, name, app),
    async close() {
      await gh.idle();
      await gh.close();
      await database.drop();
      await rm(folder, { recursive: true, force: true });
      if (gh.violations.length > 0) throw new Error(`the sandbox objects:\n${gh.violations.join('\n')}`);
    },
  };
  let ahead = 0;

  function testRun(
    id: string,
    pull: Pull,
    repository: Repository,
    policy: string,
    mode: 'enforce' | 'advisory',
  ): TestRun {
    let present = new Map<string, DecidedPath>();
    let prior: string | null = null;
    let findings = 0;
    let tickets = 0;
    const run: TestRun = {
      id,
      pull,
      repository,
      rows: (fn) => withRun(deps, id, async (unit) => fn(unit)),
      async told() {
        await run.rows(async (unit) => {
          await updateRun(unit.tx, id, { toldHead: pull.head.sha, headAt: unit.now, draft: pull.draft });
        });
      },
      async sync(files) {
        const head = pull.head.sha;
        const next = new Map<string, DecidedPath>();
        for (const [path, more] of Object.entries(files)) {
          const blob = await repository.git.run(['rev-parse', `${head}:${path}`]).then(
            (out) => String(out).trim(),
            () => null,
          );
          const key = more.level === 'L0' ? null : sha(`${path} ${blob}`);
          next.set(path, {
            path,
            status: blob === null ? 'D' : 'M',
            mode: { base: '100644', head: blob === null ? null : '100644' },
            blob: { base: null, head: blob },
            kind: 'code',
            level: 'L1',
            block: 'main-block',
            ownership: 'owned',
            key,
            ...more,
          });
        }
        await run.rows(async (unit) => {
          await updateRun(unit.tx, id, { toldHead: head, head, headAt: unit.now });
          if (prior === null) {
            unit.append('run.policy', { ...by, data: { state: 'valid', hash: policy, commit: head, mode } });
          }
          const names = [...next.keys()].map((path) => Buffer.from(path).toString('latin1')).sort();
          unit.append('run.head', {
            ...by,
            data: {
              head,
              base_ref: pull.base.ref,
              base: pull.base.sha,
              merge_base: pull.base.sha,
              prior,
              ancestor: prior === null ? null : true,
              draft: pull.draft,
              commits: 1,
              files: next.size,
              files_digest: createHash('sha256')
                .update(Buffer.from(names.map((name) => `${name}\0`).join(''), 'latin1'))
                .digest('hex'),
            },
          });
          if (prior === null) {
            unit.append('run.allowed', { ...by, data: { rule: 'same_repository', scope: 'author', head } });
            const title = await putText(unit.tx, 'Change the sample');
            unit.append('block.opened', {
              ...by,
              block: 'main-block',
              data: {
                block: 'main-block',
                title,
                attempt: 1,
                kind: 'code',
                level: 'L1',
                named: false,
                identity: sha('main-block'),
                commits: [head],
                commit_count: 1,
                owns: [],
                after: [],
                accept: [],
                accept_human: [],
                notes: [],
              },
            });
          }
          const gone = [...present.keys()].filter((path) => !next.has(path));
          const paths = [...next.values()];
          for (let at = 0; at === 0 || at < paths.length; at += 50) {
            unit.append('decision', {
              ...by,
              data: {
                question: 'level',
                source: 'rules',
                head,
                policy,
                gone: at === 0 ? gone : [],
                paths: paths.slice(at, at + 50),
              },
            });
          }
          prior = head;
        });
        present = next;
      },
      async review(path, raised = []) {
        const file = present.get(path);
        if (file?.key == null) throw new Error(`${path} has no key`);
        const { key, level, block } = file;
        const ticket = sha(`ticket ${++tickets} ${id}`);
        await run.rows(async (unit) => {
          const prints: string[] = [];
          const texts = await putTexts(
            unit.tx,
            raised.flatMap((one, i) => [
              one.title ?? `Finding ${findings + i + 1}`,
              one.body ?? `Body of finding ${findings + i + 1}.`,
              one.quote ?? 'quote',
              one.suggestion ?? '',
            ]),
          );
          for (const [index, one] of raised.entries()) {
            const number = ++findings;
            const fingerprint = sha(`${path} ${number}`);
            prints.push(fingerprint);
            const [title = '', body = '', quote = '', suggestion = ''] = texts.slice(
              index * 4,
              index * 4 + 4,
            );
            const data: RowData<'finding.raised'> = {
              finding: number,
              fingerprint,
              path,
              side: 'head',
              start_line: one.line ?? 1,
              end_line: one.end ?? one.line ?? 1,
              severity: one.severity ?? 'high',
              lens: 'correctness',
              state: 'open',
              reviewer: 'marker',
              command: true,
              ticket,
              key,
              blob: file.blob.head,
              title,
              body,
              quote,
              suggestion: one.suggestion === undefined ? null : suggestion,
            };
            unit.append('finding.raised', { ...by, block, data });
          }
          // a ticket names at most 200 findings
          for (let at = 0; at === 0 || at < prints.length; at += 200) {
            unit.append('ticket.ended', {
              ...by,
              block,
              data: {
                ticket,
                key,
                path,
                block,
                round: 0,
                grant: 1,
                level,
                policy,
                end: 'reviewed',
                final: true,
                verdict: raised.length === 0 ? 'approve' : 'findings',
                partial: false,
                runner: null,
                sessions: [],
                findings: prints.slice(at, at + 200),
                brief: null,
                result: sha(`result ${ticket}`),
                ms: 5,
              },
            });
          }
        });
      },
      async decide() {
        await run.rows((unit) => unit.enqueue('decide-gate', { run: id }, { key: `decide-gate:${id}` }));
      },
    };
    return run;
  }
  return stage;
}
