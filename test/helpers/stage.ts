/**
 * The stage of acceptance tests: sandbox GitHub, a database of its own, one or more servers, and the
 * built Action run by the sandbox's jobs. Nothing here is a stand-in for a part of the product.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import type { Config } from '../../app/config.ts';
import { workflowFile } from '../../app/domain/workflow.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { createLog } from '../../app/server/log.ts';
import { type RunningServer, startServer } from '../../app/server.ts';
import { findRunOfPull, type Run } from '../../db/store/run.ts';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { App, CheckRun, Installation, User } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository, RepositoryOptions } from '../../sandbox/repository.ts';
import { type TestDatabase, testDatabase } from './database.ts';
import { accountOf, keepLines } from './stage-account.ts';

// a start of awk is a tenth of one of Node, and every ticket of the suite is one
const marker = String.raw`/BUG|NIT/{f=f (n++?",":"") "{\"start_line\":" NR ",\"severity\":\"" (/BUG/?"high":"low") "\",\"title\":\"Marked line\",\"body\":\"The line is marked.\"}"}
!s&&match($0,/SLEEP [0-9]+/){s=substr($0,RSTART+6,RLENGTH-6)}
match($0,/HOLD [^ ]+/){h=substr($0,RSTART+5,RLENGTH-5)}
END{if(s)system("sleep " s/1000);if(h)system("until [ -e " h " ]; do sleep 0.05; done");print "{\"version\":1,\"count\":" (n+0) ",\"findings\":[" f "]}"}`;

/**
 * A command reviewer of four lines: every line that holds BUG is a high finding, NIT a low one. It
 * sleeps as long as the first line with `SLEEP <ms>` says, and waits at a line of `hold()` until that is released.
 */
export const markerPolicy = (more = ''): string => `version: 1
reviewers:
  marker:
    uses: command
    run: [awk, ${JSON.stringify(marker)}, '{path}']
    output: countersign
    paths: ['**']
    deletions: false
    lenses: [correctness]
    trusted: true
${more}`;

/** Everything that runs for one acceptance test file. */
export interface TestStage {
  readonly gh: SandboxGitHub;
  readonly app: App;
  readonly owner: User;
  readonly author: User;
  readonly database: TestDatabase;
  readonly servers: RunningServer[];
  readonly server: RunningServer;
  /** Makes a repository with policy and workflow on main, installs the App and requires the check. */
  repository(
    options?: Partial<RepositoryOptions> & { policy?: string | null; workflow?: boolean },
  ): Promise<{ repository: Repository; installation: Installation }>;
  /** A line that holds the review of whatever file has it, until `release` makes a file at `path`. */
  hold(): { readonly path: string; readonly line: string; release(): Promise<void> };
  /** Another server process on the same database (in this process: an own pool, worker and port). */
  another(): Promise<RunningServer>;
  /** Resolves when no job is ready, no delivery or workflow run is under way. */
  settle(timeoutMs?: number): Promise<void>;
  /** Moves product time and GitHub's clock, then runs every sweep once. */
  advance(ms: number): Promise<void>;
  /** The governing check run of our gate on a pull request's head, or on another sha. */
  gate(pull: Pull, sha?: string): CheckRun | null;
  /** Waits until the gate on the head is concluded (or `until` accepts it). */
  verdict(
    pull: Pull,
    options?: { sha?: string; until?: (run: CheckRun) => boolean; timeoutMs?: number },
  ): Promise<CheckRun>;
  run(pull: Pull): Promise<Run | null>;
  /** Verified rows of a pull request's run; throws unless the chain is intact. */
  rows(pull: Pull): Promise<Awaited<ReturnType<typeof verifyRun>>['rows']>;
  query<T extends Record<string, unknown>>(text: string): Promise<T[]>;
  close(): Promise<void>;
}

/** What git inherits of this process, as the server's configuration would give it. */
export const inherit = (names: readonly string[]) =>
  Object.fromEntries(
    names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );

/** The workflow people get, whose runner ends as soon as nothing is left: a test waits for its jobs. */
const workflow = (serverUrl: string): string =>
  workflowFile({ serverUrl, ref: 'countersign-dev/countersign@v0', keys: [] }).replace(
    'with:\n',
    'with:\n          idle_ms: "200"\n',
  );

/** Starts a stage; call in `beforeAll`, `close()` in `afterAll`. */
export async function testStage(
  options: {
    logLevel?: 'silent' | 'warn' | 'info' | 'debug' | 'trace';
    /** Gets each line of every server's log; by default the newest are kept for what a time-out tells. */
    log?: (line: string) => void;
  } = {},
): Promise<TestStage> {
  const database = await testDatabase();
  const folder = await mkdtemp(join(tmpdir(), 'countersign-stage-'));
  const gh = await startGitHub();
  const owner = gh.createUser('acme');
  const author = gh.createUser('alice');
  const app = gh.createApp({ slug: 'countersign' });
  const servers: RunningServer[] = [];
  let holds = 0;
  const kept = keepLines();
  const { log = kept.write } = options;
  const late = async (what: string) => new Error(`${what}\n${await accountOf(gh, database, kept.lines)}`);
  const start = async (): Promise<RunningServer> => {
    const config: Config = {
      databaseUrl: database.url,
      dataDir: folder,
      keys: null,
      inherit,
      logLevel: options.logLevel ?? 'info',
      host: '127.0.0.1',
      port: 0,
      publicUrl: null,
      appId: String(app.id),
      privateKey: app.privateKey,
      webhookSecrets: [app.webhookSecret],
      apiUrl: gh.apiUrl,
      serverUrl: gh.url,
      oidcIssuer: gh.oidc.issuer,
      // every server of the stage answers for the first one's address, as replicas behind one URL do
      oidcAudience: servers[0]?.url ?? null,
      signIn: { clientId: app.clientId, clientSecret: app.clientSecret },
    };
    const server = await startServer(config, { log: createLog(config.logLevel, { write: log }) });
    servers.push(server);
    return server;
  };
  const server = await start();
  gh.deliverTo(app, `${server.url}/api/github/webhooks`);
  app.callbackUrls.push(`${server.url}/signin/callback`);

  const stage: TestStage = {
    gh,
    app,
    owner,
    author,
    database,
    servers,
    server,
    async repository({ policy = markerPolicy(), workflow: added = true, files, ...rest } = {}) {
      const repository = await gh.createRepository({
        owner,
        collaborators: [[author, 'write']],
        ...rest,
        files: {
          'README.md': '# sample\n',
          ...files,
          ...(policy === null ? {} : { '.github/countersign.yml': policy }),
          ...(added
            ? {
                '.github/workflows/countersign.yml': workflow(server.url),
              }
            : {}),
        },
      });
      repository.requireCheck('countersign', app);
      const installation = await gh.installApp(app, repository);
      return { repository, installation };
    },
    hold() {
      const released = join(folder, `released-${++holds}`);
      return { path: released, line: `// HOLD ${released}\n`, release: () => writeFile(released, '') };
    },
    another: start,
    async settle(timeoutMs = 120_000) {
      const end = Date.now() + timeoutMs;
      for (let quiet = 0; quiet < 3; ) {
        await gh.idle(timeoutMs);
        const { rows } = await database.database.db.execute<{ n: string }>(
          sql`select count(*) as n from graphile_worker.jobs where attempts < max_attempts and (run_at <= now() or locked_at is not null)`,
        );
        quiet = rows[0]?.n === '0' ? quiet + 1 : 0;
        if (Date.now() > end) throw await late(`${rows[0]?.n} jobs are still to do`);
        await new Promise((resolve) => setTimeout(resolve, 15));
      }
    },
    async advance(ms) {
      await database.moveClock(ms);
      gh.advance(ms);
      await server.sweep();
    },
    gate: (pull, sha = pull.head.sha) => gh.governing(pull.repository, sha, 'countersign', app),
    async verdict(pull, { sha, until, timeoutMs = 120_000 } = {}) {
      const end = Date.now() + timeoutMs;
      for (;;) {
        const run = stage.gate(pull, sha);
        if (run !== null && (until?.(run) ?? run.status === 'completed')) return run;
        if (Date.now() > end)
          throw await late(
            `no verdict: ${run === null ? 'no check run' : `${run.status} ${run.conclusion} ${run.title}`}`,
          );
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    run: (pull) => {
      const installation = gh.world.installations.find(
        (one) =>
          one.app === app &&
          !one.deleted &&
          (one.repositoryIds?.has(pull.repository.id) ?? one.account === pull.repository.owner),
      );
      return findRunOfPull(database.database.db, {
        installationId: String(installation?.id),
        repositoryId: String(pull.repository.id),
        pull: String(pull.number),
      });
    },
    async rows(pull) {
      const run = await stage.run(pull);
      if (run === null) throw new Error('no run');
      const verified = await verifyRun(server.deps, run, { full: true });
      if (verified.verdict.kind !== 'intact') throw new Error(`ledger: ${JSON.stringify(verified.verdict)}`);
      return verified.rows;
    },
    async query(text) {
      const found = await database.database.pool.query(text);
      return found.rows;
    },
    async close() {
      for (const one of servers) await one.close();
      await gh.close();
      await database.drop();
      await rm(folder, { recursive: true, force: true });
      if (gh.violations.length > 0) throw new Error(`the sandbox objects:\n${gh.violations.join('\n')}`);
    },
  };
  return stage;
}
