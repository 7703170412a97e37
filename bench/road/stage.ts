/** The whole road for a bench: durable database, sandbox GitHub, the server, and the built Action run by the sandbox's jobs. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../app/config.ts';
import { workflowFile } from '../../app/domain/workflow.ts';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { App, CheckRun, User } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { withBenchDatabase } from '../database.ts';

/** A reviewer that starts in a few milliseconds: a line with NIT is a low finding, so that findings do not block. */
const POLICY = `version: 1
reviewers:
  marker:
    uses: command
    run: [node, -e, ${JSON.stringify(
      "const t=require('node:fs').readFileSync(process.argv[1],'utf8').split('\\n');const f=t.flatMap((l,i)=>l.includes('NIT')?[{start_line:i+1,severity:'low',title:'Marked line '+(i+1),body:'The line is marked.'}]:[]);console.log(JSON.stringify({version:1,count:f.length,findings:f}))",
    )}, '{path}']
    output: countersign
    paths: ['**']
    lenses: [correctness]
    trusted: true
`;

/** The printed workflow; the Action waits less for more work, so that a repetition ends sooner. */
const workflow = (serverUrl: string): string =>
  workflowFile({ serverUrl, ref: 'countersign-dev/countersign@v0', keys: [] }).replace(
    'with:\n',
    'with:\n          idle_ms: "200"\n',
  );

/** What a bench of the road has. */
export interface Road {
  readonly gh: SandboxGitHub;
  readonly app: App;
  readonly repository: Repository;
  readonly author: User;
  /** The server's Postgres. */
  readonly postgres: string;
  /** Waits until the check run of a name on a commit is as asked; throws after a minute, or so many milliseconds. */
  check(
    sha: string,
    name: string,
    accept: (check: CheckRun) => boolean,
    patienceMs?: number,
  ): Promise<CheckRun>;
  /** Rows of a query on the server's database. */
  query<T>(text: string, values?: readonly unknown[]): Promise<T[]>;
  /** Waits until no job and no workflow run is under way. */
  settle(): Promise<void>;
  /** Opens a pull request with these files: in one commit, or `named`, one commit a file that names a block each. */
  open(branch: string, files: Record<string, string>, named?: 'named'): Promise<Pull>;
}

/** Runs `fn` on a road of its own. */
export function withRoad<T>(fn: (road: Road) => Promise<T>): Promise<T> {
  return withBenchDatabase(4, async ({ url, database, version }) => {
    const folder = await mkdtemp(join(tmpdir(), 'countersign-road-'));
    const gh = await startGitHub();
    const app = gh.createApp();
    const owner = gh.createUser('acme');
    const author = gh.createUser('alice');
    const config: Omit<Config, 'inherit'> = {
      databaseUrl: url,
      dataDir: folder,
      keys: null,
      logLevel: 'silent',
      host: '127.0.0.1',
      port: 0,
      publicUrl: null,
      appId: String(app.id),
      privateKey: app.privateKey,
      webhookSecrets: [app.webhookSecret],
      apiUrl: gh.apiUrl,
      serverUrl: gh.url,
      oidcIssuer: gh.oidc.issuer,
      oidcAudience: null,
      signIn: null,
    };
    const child = fork(new URL('server.ts', import.meta.url), {
      execArgv: ['--import', 'tsx'],
      env: { ...process.env, ROAD_CONFIG: JSON.stringify(config) },
    });
    const ended = once(child, 'exit');
    try {
      const serverUrl = await Promise.race([
        once(child, 'message').then(([told]) => String(told)),
        ended.then(() => Promise.reject(new Error('the server did not start'))),
      ]);
      gh.deliverTo(app, `${serverUrl}/api/github/webhooks`);
      const repository = await gh.createRepository({
        owner,
        collaborators: [[author, 'write']],
        files: {
          'README.md': '# sample\n',
          '.github/countersign.yml': POLICY,
          '.github/workflows/countersign.yml': workflow(serverUrl),
        },
      });
      await gh.installApp(app, repository);
      const query = async <R>(text: string, values: readonly unknown[] = []): Promise<R[]> =>
        (await database.pool.query(text, [...values])).rows as R[];
      const settle = async () => {
        for (let quiet = 0; quiet < 3; ) {
          await gh.idle(60_000);
          const [left] = await query<{ n: string }>(
            'select count(*) as n from graphile_worker.jobs where attempts < max_attempts',
          );
          quiet = left?.n === '0' ? quiet + 1 : 0;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      };
      await settle();
      return await fn({
        gh,
        app,
        repository,
        author,
        postgres: version,
        query,
        settle,
        async check(sha, name, accept, patienceMs = 60_000) {
          for (const end = performance.now() + patienceMs; performance.now() < end; ) {
            const found = gh.governing(repository, sha, name, app);
            if (found !== null && accept(found)) return found;
            await new Promise((resolve) => setTimeout(resolve, 2));
          }
          const last = gh.governing(repository, sha, name, app);
          throw new Error(
            `${name} on ${sha.slice(0, 10)}: ${last === null ? 'none' : `${last.status} ${last.title}`}`,
          );
        },
        async open(branch, files, named) {
          if (named === undefined) await repository.commit({ branch, author, message: 'Change', files });
          else
            for (const [index, [path, text]] of Object.entries(files).entries()) {
              const message = `Change ${path}\n\nBlock: part-${index + 1}`;
              await repository.commit({ branch, author, message, files: { [path]: text } });
            }
          return repository.openPull({ head: branch, user: author });
        },
      });
    } finally {
      if (child.connected) child.disconnect();
      await ended;
      await gh.close();
      await rm(folder, { recursive: true, force: true });
    }
  });
}
