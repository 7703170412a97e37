/**
 * `npm run demo`: the main road on this machine, from a pull request to a verified verdict. With
 * `--repo PATH --base REF --head REF` on a copy of a local repository; `--serve` keeps it up.
 * Exit 0: the verdict was reached (and, for the sample, green and verified); 1: it was not; 3: usage.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { openCopy, resolveSource } from './demo/copy.ts';
import { type Outcome, outcomeOf } from './demo/outcome.ts';
import { createProgress } from './demo/progress.ts';
import { showCheckRun } from './demo/show.ts';
import { type Stage, setStage } from './demo/stage.ts';
import { openSample } from './demo/tea-shop.ts';
import { published, verdictOn } from './demo/verdict.ts';

const usage = 'usage: npm run demo -- [--repo PATH --base REF --head REF] [--serve]';

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        repo: { type: 'string' },
        base: { type: 'string' },
        head: { type: 'string' },
        serve: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) {
      console.log(usage);
      process.exit(0);
    }
    const { repo, base, head } = values;
    if (repo === undefined && base === undefined && head === undefined)
      return { serve: values.serve, copy: null };
    if (repo !== undefined && base !== undefined && head !== undefined) {
      const copy = { path: resolve(repo), base, head };
      resolveSource(copy);
      return { serve: values.serve, copy };
    }
    throw new Error('--repo, --base and --head go together');
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
    process.exit(3);
  }
}

const { serve, copy } = readArguments();
const folder = join(process.cwd(), '.countersign', 'demo');
mkdirSync(folder, { recursive: true });
const resultFile = join(folder, 'result.json');
rmSync(resultFile, { force: true });
const progress = createProgress(process.stdout);
const started = performance.now();
let stage: Stage | undefined;
let starting: Promise<Stage> | undefined;
let reachedRun = '';

async function show(
  on: Stage,
  sha: string,
  repository: Parameters<Stage['gh']['checkRuns']>[0],
): Promise<void> {
  for (const run of on.gh.checkRuns(repository, sha)) progress.note(`\n${showCheckRun(run)}`);
  progress.note('');
}

async function work(): Promise<boolean> {
  starting = progress.step('start', 'Start Postgres, a local GitHub and the server', () => setStage(folder));
  const on = await starting;
  stage = on;
  progress.note(`server ${on.server.url}   GitHub ${on.gh.url}`);
  const opened =
    copy === null
      ? await progress.step('open', 'Make a repository and open a pull request', () => openSample(on))
      : await progress.step('open', `Copy ${copy.path} and open a pull request`, () => openCopy(on, copy));
  for (const line of opened.said) progress.note(line);
  const { pull } = opened;
  let sha = pull.head.sha;
  await progress.step('pending', 'Wait for the gate on the head', () => verdictOn(on, pull, sha, 'present'));
  await progress.step('review', 'Let runners review every file', () => verdictOn(on, pull, sha, 'concluded'));
  await published(on);
  await show(on, sha, pull.repository);
  if (opened.fix !== null) {
    const { fix } = opened;
    sha = await progress.step('fix', 'Push a commit that mends it', () => fix());
    await progress.step('again', 'Review what changed, and only that', () =>
      verdictOn(on, pull, sha, 'concluded'),
    );
    await published(on);
    await show(on, sha, pull.repository);
  }
  const outcome: Outcome = await progress.step('verify', 'Verify the ledger from its first row', () =>
    outcomeOf(on, pull, sha, progress.durations),
  );
  progress.note(
    `${outcome.rows} rows, ${outcome.tickets} tickets, ${outcome.findings} findings; ledger ${outcome.ledger.verified ? 'verified' : 'NOT verified'}`,
  );
  reachedRun = outcome.run;
  writeFileSync(resultFile, `${JSON.stringify({ ...outcome, durations: progress.durations }, null, 2)}\n`);
  const reached = ['success', 'failure', 'action_required'].includes(outcome.gate.conclusion);
  const good = copy === null ? outcome.gate.conclusion === 'success' : reached;
  console.log(
    `\nGate: ${outcome.gate.conclusion}${outcome.gate.reasons.length > 0 ? ` (${outcome.gate.reasons.join(', ')})` : ''} after ${((performance.now() - started) / 1000).toFixed(1)} s. ${relative(process.cwd(), resultFile)} has it all.`,
  );
  return good && outcome.ledger.verified && on.gh.violations.length === 0;
}

/** Resolves at the first signal; a second one is a person who does not want to wait. */
const stopped = new Promise<'stopped'>((done) => {
  let signals = 0;
  const stop = () => {
    signals += 1;
    if (signals > 1) process.exit(1);
    done('stopped');
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
});

let code = 1;
try {
  const working = work();
  const came = await Promise.race([working, stopped]);
  code = came === true ? 0 : 1;
  if (came === 'stopped') {
    console.log('\nStopped: ending what runs.');
    working.catch(() => {}); // it fails at what is closed under it
    // what is being started can only be ended once it is there
    stage = await starting?.catch(() => undefined);
  }
  if (stage !== undefined && stage.gh.violations.length > 0)
    console.error(`the local GitHub objects:\n${stage.gh.violations.join('\n')}`);
  if (came !== 'stopped' && serve && stage !== undefined) {
    const { gh, owner, server } = stage;
    // the local GitHub knows who sits at the browser and asks nothing: pages sign in by themselves
    gh.oauth.browser = owner;
    console.log(`Serving; stop with Ctrl-C. Pages, which sign in by themselves as ${owner.login}:`);
    for (const path of [`/runs/${reachedRun}`, '/', '/queue'])
      console.log(`  ${server.url}/signin?next=${encodeURIComponent(path)}`);
    console.log('For programs:');
    for (const path of ['/readyz', '/metrics', '/policy.schema.json', '/api/v1/openapi.json'])
      console.log(`  ${server.url}${path}`);
    await stopped;
  }
} catch (error) {
  console.error(error instanceof Error ? (error.stack ?? error.message) : error);
} finally {
  await stage?.close();
}
process.exit(code);
