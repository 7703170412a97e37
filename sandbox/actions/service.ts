import type { User } from '../model.ts';
import type { OidcIssuer } from '../oidc.ts';
import { userJson } from '../render/accounts.ts';
import { repositoryJson } from '../render/repositories.ts';
import type { Repository } from '../repository.ts';
import { setCheck } from '../rest/check-runs.ts';
import type { World } from '../world.ts';
import { runContexts } from './contexts.ts';
import { BadExpression, condition, interpolate, type Scope, type Value } from './expressions.ts';
import { executeJob } from './job.ts';
import { cancelProcess, killGroup } from './process.ts';
import { startPullRuns } from './pull-runs.ts';
import { announceJob, announceRun, createJob, newRun } from './records.ts';
import type { Job, RunConclusion, WorkflowFile, WorkflowRun } from './run.ts';
import { BadWorkflow, parseWorkflow, type Workflow } from './workflow.ts';
import { WorkflowFiles } from './workflow-files.ts';

/** What happens to the next runs instead of the usual: tests set it with `disturb`. */
export interface RunDisturbance {
  /** never: the job stays queued; startup_failure: no job comes; blocked: an actor rule fails the run; late: waits. */
  readonly kind: 'never' | 'startup_failure' | 'blocked' | 'late';
  /** How many runs; default 1. */
  readonly times?: number;
  /** Milliseconds for `late`. */
  readonly delay?: number;
  /** Only runs of this repository; default: whichever comes next. */
  readonly repository?: Repository;
}

/** Workflow runs: started, run for real, cancelled, lost. Concurrency groups as GitHub keeps them. */
export class Actions {
  readonly world: World;
  readonly oidc: OidcIssuer;
  readonly files: WorkflowFiles;
  readonly #numbers = new Map<number, number>();
  readonly #disturbances: (RunDisturbance & { left: number })[] = [];
  readonly #plans = new WeakMap<WorkflowRun, { workflow: Workflow; payload: Value }>();

  constructor(world: World, oidc: OidcIssuer) {
    this.world = world;
    this.oidc = oidc;
    this.files = new WorkflowFiles(world);
    world.pullChanged = (pull, action, sender, more) => startPullRuns(this, pull, action, sender, more);
  }

  /** Every run, in the order of creation. */
  get runs(): readonly WorkflowRun[] {
    return this.world.workflowRuns;
  }

  /** Makes the next runs go wrong. */
  disturb(options: RunDisturbance): void {
    this.#disturbances.push({ ...options, left: options.times ?? 1 });
  }

  /** Starts a dispatched run: the file at `ref` runs, on the last commit of it (facts/github.md §7). */
  async start(init: {
    repository: Repository;
    file: WorkflowFile;
    text: string;
    ref: string;
    sha: string;
    actor: User;
    inputs: Readonly<Record<string, string>>;
  }): Promise<WorkflowRun> {
    const { world } = this;
    const { repository, file, ref, sha, actor, inputs } = init;
    const payload = {
      inputs,
      ref,
      repository: repositoryJson(world, repository),
      sender: userJson(world, actor),
      workflow: file.path,
    } as unknown as Value;
    const branch = ref.replace(/^refs\/(heads|tags)\//, '');
    return this.startRun({
      ...init,
      event: 'workflow_dispatch',
      head: { sha, branch, repository },
      base: '',
      payload,
      title: file.name,
    });
  }

  /** Starts a run of any event on the commit `sha`; GitHub shows it on the head commit. */
  async startRun(
    init: Omit<Parameters<typeof newRun>[1], 'number'> & { readonly text: string; readonly payload: Value },
  ): Promise<WorkflowRun> {
    const { world } = this;
    const { file, text, payload } = init;
    const number = (this.#numbers.get(file.id) ?? 0) + 1;
    this.#numbers.set(file.id, number);
    const run = newRun(world, { ...init, number });
    world.workflowRuns.push(run);
    await this.#prepare(run, text, payload);
    await announceRun(run, 'requested');
    world.background(`run ${run.id}`, () => this.#begin(run));
    return run;
  }

  /** Cancels: 7.5 s after SIGINT comes SIGTERM, 2.5 s later the kill; `force` passes over always() (§8). */
  async cancel(run: WorkflowRun, force: boolean): Promise<void> {
    run.cancelled = force ? 'forced' : run.cancelled === 'forced' ? 'forced' : 'asked';
    const running = run.jobs.filter((job) => job.process !== null);
    for (const job of running) {
      const child = job.process;
      if (child !== null) this.world.background('cancel', () => cancelProcess(child));
    }
    if (run.status !== 'queued' && run.status !== 'pending') return;
    for (const job of run.jobs) if (job.status === 'queued') await this.#endJob(run, job, 'cancelled');
    await this.#finish(run, 'cancelled');
  }

  /** The runner is gone (kill -9): nothing more is heard, GitHub shows the run in progress until `reportLost`. */
  lose(run: WorkflowRun): void {
    run.lost = true;
    for (const job of run.jobs) if (job.process !== null) killGroup(job.process);
  }

  /** GitHub notices that the runner is lost: the job failed. */
  async reportLost(run: WorkflowRun): Promise<void> {
    for (const job of run.jobs) if (job.status !== 'completed') await this.#endJob(run, job, 'failure');
    await this.#finish(run, 'failure');
  }

  /**
   * Re-run: same id, commit and inputs, the next attempt; `requested` is not sent again (facts/github.md §8). With
   * `only`, the jobs of these names and what needs them; the others stay with the attempt they ran in.
   */
  async rerun(run: WorkflowRun, only: ReadonlySet<string> | null = null): Promise<void> {
    if (run.status !== 'completed') throw new Error(`run ${run.id} has not ended`);
    const again = only === null ? null : this.#withDependents(run, only);
    run.attempt++;
    run.status = 'queued';
    run.conclusion = null;
    run.cancelled = 'no';
    run.lost = false;
    run.jobs = again === null ? [] : run.jobs.filter((job) => !again.has(job.key));
    run.startedAt = this.world.stamp();
    this.world.background(`run ${run.id}`, () => this.#begin(run));
  }

  #withDependents(run: WorkflowRun, names: ReadonlySet<string>): Set<string> {
    const keys = new Set(run.jobs.filter((job) => names.has(job.name)).map((job) => job.key));
    for (const { id, needs } of this.#plans.get(run)?.workflow.jobs ?? [])
      if (needs.some((need) => keys.has(need))) keys.add(id);
    return keys;
  }

  /** Kills everything that runs: the sandbox is closing. */
  stop(): void {
    for (const run of this.runs) {
      if (run.status === 'completed') continue;
      run.cancelled = 'forced';
      this.lose(run);
    }
  }

  async #prepare(run: WorkflowRun, text: string, payload: Value): Promise<void> {
    try {
      const workflow = parseWorkflow(text, run.workflow.path);
      const scope: Scope = { status: 'success', contexts: runContexts(run, payload) };
      if (workflow.runName !== null) run.displayTitle = interpolate(workflow.runName, scope);
      if (workflow.concurrency !== null)
        run.group = interpolate(workflow.concurrency.group, scope).toLowerCase();
      this.#plans.set(run, { workflow, payload });
    } catch (error) {
      if (!(error instanceof BadWorkflow) && !(error instanceof BadExpression)) throw error;
      run.failure = error.message;
    }
  }

  async #begin(run: WorkflowRun): Promise<void> {
    const plan = this.#plans.get(run);
    const disturbance = this.#disturbances.find(
      (one) => one.left > 0 && (one.repository === undefined || one.repository === run.repository),
    );
    if (disturbance !== undefined) disturbance.left--;
    if (disturbance?.kind === 'blocked')
      run.failure = "Event 'workflow_dispatch' is not allowed for this actor";
    if (plan === undefined || disturbance?.kind === 'startup_failure' || disturbance?.kind === 'blocked') {
      run.failure ??= 'startup failure';
      return this.#finish(run, disturbance?.kind === 'blocked' ? 'failure' : 'startup_failure');
    }
    if (await this.#queueInGroup(run, plan.workflow.concurrency?.cancelInProgress === true)) return;
    if (disturbance?.kind === 'late')
      await new Promise((resolve) => setTimeout(resolve, disturbance.delay ?? 0));
    await this.#runJobs(run, plan.workflow, plan.payload, disturbance?.kind === 'never');
  }

  /** One running and one pending run a group; a newer pending one replaces, that is cancels, the older (§8). */
  async #queueInGroup(run: WorkflowRun, cancelInProgress: boolean): Promise<boolean> {
    if (run.group === null) return false;
    const others = this.runs.filter(
      (one) =>
        one !== run &&
        one.repository === run.repository &&
        one.group === run.group &&
        one.status !== 'completed',
    );
    const active = others.filter((one) => one.status !== 'pending' && one.id < run.id);
    if (active.length === 0) return false;
    for (const one of others) if (one.status === 'pending') await this.cancel(one, false);
    if (cancelInProgress) for (const one of active) await this.cancel(one, false);
    run.status = 'pending';
    return true;
  }

  async #runJobs(run: WorkflowRun, workflow: Workflow, payload: Value, never: boolean): Promise<void> {
    if (run.cancelled !== 'no') return this.#finish(run, 'cancelled');
    // jobs that a re-run left alone have ended
    const ended = new Map<string, RunConclusion>(
      run.jobs.map((job) => [job.key, job.conclusion ?? 'skipped']),
    );
    const waiting = workflow.jobs.filter((job) => !ended.has(job.id));
    while (waiting.length > 0) {
      const index = waiting.findIndex((one) => one.needs.every((need) => ended.has(need)));
      const [definition] = waiting.splice(Math.max(index, 0), 1);
      if (definition === undefined) break;
      const failed = definition.needs.some((need) => ended.get(need) !== 'success');
      const scope: Scope = { status: failed ? 'failure' : 'success', contexts: runContexts(run, payload) };
      const job = await createJob(run, definition, interpolate(definition.name, scope));
      if (never) return;
      if (run.cancelled !== 'no' || !condition(definition.if, scope)) {
        await this.#endJob(run, job, run.cancelled === 'no' ? 'skipped' : 'cancelled');
        ended.set(definition.id, job.conclusion ?? 'skipped');
        continue;
      }
      await this.#startJob(run, job);
      const conclusion = await executeJob(this.world, this.oidc, run, job, workflow, definition, payload);
      if (run.lost) return;
      await this.#endJob(run, job, conclusion);
      ended.set(definition.id, conclusion);
    }
    const all = [...ended.values()];
    const conclusion = run.cancelled !== 'no' ? 'cancelled' : all.includes('failure') ? 'failure' : 'success';
    await this.#finish(run, conclusion);
  }

  async #startJob(run: WorkflowRun, job: Job): Promise<void> {
    job.status = 'in_progress';
    job.startedAt = this.world.stamp();
    await setCheck(this.world, run.repository, job.checkRun, { status: 'in_progress' });
    await announceJob(run, job, 'in_progress');
    if (run.status === 'in_progress') return;
    run.status = 'in_progress';
    await announceRun(run, 'in_progress');
  }

  async #endJob(
    run: WorkflowRun,
    job: Job,
    conclusion: Exclude<RunConclusion, 'startup_failure'>,
  ): Promise<void> {
    if (job.status === 'completed') return;
    job.status = 'completed';
    job.conclusion = conclusion;
    job.completedAt = this.world.stamp();
    for (const step of job.steps) if (step.status !== 'completed') step.conclusion = 'skipped';
    for (const step of job.steps) step.status = 'completed';
    await setCheck(this.world, run.repository, job.checkRun, {
      conclusion,
      // facts/github.md §17: what was printed is shown on the job's own check run
      output: {
        annotations: job.annotations.map(({ level, title, path, line, message }) => ({
          path,
          start_line: line,
          end_line: line,
          annotation_level: level === 'error' ? 'failure' : level,
          message,
          ...(title === null ? {} : { title }),
        })),
      },
    });
    await announceJob(run, job, 'completed');
  }

  async #finish(run: WorkflowRun, conclusion: RunConclusion): Promise<void> {
    if (run.status === 'completed') return;
    run.status = 'completed';
    run.conclusion = conclusion;
    run.updatedAt = this.world.stamp();
    await announceRun(run, 'completed');
    const next = this.runs.find(
      (one) => one.status === 'pending' && one.repository === run.repository && one.group === run.group,
    );
    const plan = next === undefined ? undefined : this.#plans.get(next);
    if (next === undefined || plan === undefined) return;
    next.status = 'queued';
    this.world.background(`run ${next.id}`, () => this.#runJobs(next, plan.workflow, plan.payload, false));
  }
}
