import { Refused } from '../http/call.ts';
import type { Annotation, App, CheckAction, CheckRun, CheckSuite, Json, User } from '../model.ts';
import type { Repository } from '../repository.ts';
import type { World } from '../world.ts';
import { announceCheck } from './check-events.ts';
import { announceSuite, settleSuite, suiteOf } from './suites.ts';

const MAX_MESSAGE = 64 * 1024;
// facts/github.md §1: of more than 1,000 runs of one name in a suite the older ones are deleted.
const MAX_SAME_NAME = 1000;
const STALE_AFTER = 14 * 86_400_000;

function invalid(message: string): Refused {
  return new Refused(422, `Invalid request.\n\n${message}`);
}

/**
 * The rules of a check run that GitHub states only in prose (facts/github.md §1): conclusion with completed, `stale` is
 * GitHub's own, annotations (lines from 1, end not before start, columns from 1 and only on one line, in order, message
 * and raw_details 64 KB, title 255), title with a summary. One bad annotation fails the whole request (case 33).
 */
export function checkOutput(body: Json, existing: CheckRun | null): void {
  const { status, conclusion, completed_at: completedAt } = body;
  const concluded = conclusion !== undefined || (existing?.conclusion ?? null) !== null;
  if ((status === 'completed' || completedAt !== undefined) && !concluded)
    throw invalid('No subschema in "anyOf" matched.\nMissing required key: conclusion.');
  if (conclusion === 'stale') throw invalid('"stale" is not a conclusion that can be set.');
  const output = body['output'] as Json | undefined;
  if (output !== undefined && existing === null && output['title'] === undefined)
    throw invalid('"title" wasn\'t supplied.');
  for (const annotation of (output?.['annotations'] ?? []) as Annotation[]) checkAnnotation(annotation);
}

function checkAnnotation(one: Annotation): void {
  if (one.path === '') throw invalid('"path" wasn\'t supplied.');
  if (one.message.trim() === '') throw invalid('"message" wasn\'t supplied.');
  if (one.start_line < 1 || one.end_line < 1) throw invalid('Annotation lines start at 1.');
  if (one.end_line < one.start_line) throw invalid('Annotation end_line is before start_line.');
  const columns = [one.start_column, one.end_column].filter((column) => column !== undefined);
  if (columns.length > 0 && one.start_line !== one.end_line)
    throw invalid('Annotations only support start_column and end_column on the same line.');
  if (columns.some((column) => column < 1)) throw invalid('Annotation columns start at 1.');
  if (one.start_column !== undefined && one.end_column !== undefined && one.end_column < one.start_column)
    throw invalid('Annotation end_column is before start_column.');
  if (Buffer.byteLength(one.message) > MAX_MESSAGE) throw invalid('Annotation message exceeds 64 KB.');
  if (Buffer.byteLength(one.raw_details ?? '') > MAX_MESSAGE)
    throw invalid('Annotation raw_details exceeds 64 KB.');
  if ((one.title ?? '').length > 255) throw invalid('Annotation title exceeds 255 characters.');
}

/** Makes a check run. Not idempotent: the same app, sha, name and external_id give another id (facts/github.md §1). */
export async function createCheckRun(
  world: World,
  repository: Repository,
  app: App,
  sha: string,
  body: Json,
  ownSuite?: CheckSuite,
): Promise<CheckRun> {
  const suite = ownSuite ?? suiteOf(world, repository, app, sha, branchOf(repository, sha), null).suite;
  const run: CheckRun = {
    id: world.id('checkRun'),
    app,
    repositoryId: repository.id,
    suite,
    headSha: sha,
    name: '',
    status: 'queued',
    conclusion: null,
    createdAt: world.stamp(),
    startedAt: world.stamp(),
    completedAt: null,
    detailsUrl: null,
    externalId: '',
    title: null,
    summary: null,
    text: null,
    annotations: [],
    actions: [],
  };
  world.checkRuns.push(run);
  set(world, run, body);
  const twins = world.checkRuns.filter((one) => one.suite === suite && one.name === run.name);
  const [oldest] = twins;
  if (twins.length > MAX_SAME_NAME && oldest !== undefined)
    world.checkRuns.splice(world.checkRuns.indexOf(oldest), 1);
  settleSuite(world, suite);
  await announceCheck(world, repository, run, 'created', app.bot);
  if (run.status === 'completed') await completed(world, repository, run);
  return run;
}

/** Changes a check run: annotations append, an old completed_at stays unless resent (facts/github.md §1). */
export async function setCheck(
  world: World,
  repository: Repository,
  run: CheckRun,
  body: Json,
): Promise<void> {
  const was = run.status;
  set(world, run, body);
  settleSuite(world, run.suite);
  if (run.status === 'completed' && (was !== 'completed' || body['conclusion'] !== undefined))
    await completed(world, repository, run);
}

async function completed(world: World, repository: Repository, run: CheckRun): Promise<void> {
  for (const queue of repository.queues.values()) world.background('merge queue', () => queue.settle());
  await announceCheck(world, repository, run, 'completed', run.app.bot);
  if (run.suite.status === 'completed')
    await announceSuite(world, repository, run.suite, 'completed', run.app.bot);
}

function set(world: World, run: CheckRun, body: Json): void {
  const text = (name: string): string | undefined =>
    body[name] === undefined ? undefined : String(body[name]);
  run.name = text('name') ?? run.name;
  run.detailsUrl = text('details_url') ?? run.detailsUrl;
  run.externalId = text('external_id') ?? run.externalId;
  run.startedAt = text('started_at') ?? run.startedAt;
  const status = text('status') as CheckRun['status'] | undefined;
  const conclusion = text('conclusion');
  if (conclusion !== undefined) {
    // Setting a conclusion completes the run.
    run.conclusion = conclusion;
    run.status = 'completed';
    run.completedAt = text('completed_at') ?? run.completedAt ?? world.stamp();
  } else if (status !== undefined) {
    run.status = status;
    if (status !== 'completed') {
      run.conclusion = null;
      run.completedAt = null;
    }
  }
  const output = body['output'] as Json | undefined;
  if (output !== undefined) {
    run.title = (output['title'] as string | undefined) ?? run.title;
    run.summary = (output['summary'] as string | undefined) ?? run.summary;
    run.text = (output['text'] as string | undefined) ?? run.text;
    run.annotations.push(...((output['annotations'] ?? []) as Annotation[]));
  }
  run.actions = (body['actions'] as CheckAction[] | undefined) ?? run.actions;
}

// Empty for fork branches: nobody's branch here has that commit (facts/github.md §2, §15).
function branchOf(repository: Repository, sha: string): string | null {
  const pull = repository.pulls.find((one) => one.head.sha === sha && one.head.repository === repository);
  return pull?.head.ref ?? null;
}

/** The run that governs a required check: the newest CREATED of that app, sha and name (facts/github.md §1). */
export function governingRun(
  world: World,
  repository: Repository,
  sha: string,
  name: string,
  appId: number | null,
): CheckRun | null {
  const runs = world.checkRuns.filter(
    (run) =>
      run.repositoryId === repository.id &&
      run.headSha === sha &&
      run.name === name &&
      (appId === null || run.app.id === appId),
  );
  return runs.reduce<CheckRun | null>((best, run) => (best === null || run.id > best.id ? run : best), null);
}

/** Re-request: the run itself is untouched, its suite goes to queued, its app hears of it (facts/github.md §1). */
export async function rerequestCheck(
  world: World,
  repository: Repository,
  run: CheckRun,
  sender: User,
): Promise<void> {
  run.suite.status = 'queued';
  run.suite.conclusion = null;
  await announceCheck(world, repository, run, 'rerequested', sender);
}

/** Runs left incomplete for more than 14 days become `stale` (facts/github.md §1). */
export function markStale(world: World): void {
  for (const run of world.checkRuns) {
    if (run.status === 'completed' || Date.parse(run.createdAt) + STALE_AFTER > world.now().getTime())
      continue;
    run.status = 'completed';
    run.conclusion = 'stale';
    run.completedAt = world.stamp();
    settleSuite(world, run.suite);
  }
}
