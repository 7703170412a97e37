/**
 * A model of GitHub Actions: dispatched jobs wait for room in their account, start after a while that is
 * never the same, and now and then fail to start, are cancelled, or are lost without a word.
 */
import type { GitHubApp } from '../../app/github/port.ts';
import type { DayClock } from './clock.ts';
import type { Tally } from './measure.ts';
import { draw, logNormal } from './random.ts';
import type { Tenant, Trace } from './trace.ts';

/** A job of the workflow. */
export interface Job {
  readonly workflowRun: string;
  readonly repository: string;
  readonly tenant: Tenant;
  readonly nonce: string;
  state: 'queued' | 'starting' | 'running' | 'over';
  startedMs: number;
  /** Since when it works at least one ticket, and how long it did before. */
  busyFromMs: number | null;
  busyMs: number;
}

/** What the model tells: a job runs, its machine is gone, it is over as GitHub's delivery says. */
export interface ActionsListener {
  started(job: Job): Promise<void>;
  /** `cancelled`: it is told to stop and can give back what it has. */
  gone(job: Job, how: 'lost' | 'cancelled'): Promise<void>;
  over(job: Job, conclusion: string): Promise<void>;
}

const MINUTE = 60_000;
/** From a free place in the account to the job's first step, and from there to the Action's login. */
const START_MEDIAN_MS = 9_000;
const BOOT_MS = 3_000;
const DELIVERY_MS = 1_500;
/** Shares of jobs. In bad weather a fifth is lost, and starting takes eight times as long. */
const FAILS_TO_START = 0.002;
const CANCELLED = 0.003;
const LOST = 0.01;
const LOST_IN_WEATHER = 0.2;

/** The accounts and their jobs. */
export class Actions {
  readonly #clock: DayClock;
  readonly #trace: Trace;
  readonly #tally: Tally;
  readonly #listener: ActionsListener;
  readonly #tenants: ReadonlyMap<string, Tenant>;
  readonly #running = new Map<string, number>();
  readonly #waiting = new Map<string, Job[]>();
  readonly jobs = new Map<string, Job>();
  #n = 0;

  constructor(clock: DayClock, trace: Trace, tally: Tally, listener: ActionsListener) {
    this.#clock = clock;
    this.#trace = trace;
    this.#tally = tally;
    this.#listener = listener;
    this.#tenants = new Map(trace.tenants.flatMap((one) => one.repositories.map((id) => [id, one] as const)));
  }

  /** GitHub's side of `workflow_dispatch`: the id of the workflow run. */
  dispatch(repository: string, nonce: string): string {
    const tenant = this.#tenants.get(repository) as Tenant;
    const job: Job = {
      workflowRun: String(800_000_000 + this.#n++),
      repository,
      tenant,
      nonce,
      state: 'queued',
      startedMs: 0,
      busyFromMs: null,
      busyMs: 0,
    };
    this.jobs.set(job.workflowRun, job);
    this.#tally.dispatches++;
    const waiting = this.#waiting.get(tenant.account) ?? [];
    this.#waiting.set(tenant.account, waiting);
    waiting.push(job);
    this.#fill(tenant);
    return job.workflowRun;
  }

  /** A job ends: by itself, or as the model has it. */
  end(job: Job, conclusion: string): void {
    if (job.state === 'over') return;
    const { nowMs } = this.#clock;
    if (job.state === 'running') {
      const ms = nowMs - job.startedMs;
      if (job.busyFromMs !== null) job.busyMs += nowMs - job.busyFromMs;
      this.#tally.runnerMs += ms;
      this.#tally.billedMinutes += Math.ceil(ms / MINUTE);
      this.#tally.busyMs += job.busyMs;
      if (job.busyMs === 0) this.#tally.idleJobs++;
    }
    const had = job.state !== 'queued';
    job.state = 'over';
    this.jobs.delete(job.workflowRun);
    if (had) {
      this.#running.set(job.tenant.account, (this.#running.get(job.tenant.account) ?? 1) - 1);
      this.#fill(job.tenant);
    }
    this.#clock.after(DELIVERY_MS, () => this.#listener.over(job, conclusion));
  }

  #fill({ account, jobs }: Tenant): void {
    const waiting = this.#waiting.get(account) ?? [];
    while (waiting.length > 0 && (this.#running.get(account) ?? 0) < jobs) {
      this.#running.set(account, (this.#running.get(account) ?? 0) + 1);
      this.#start(waiting.shift() as Job);
    }
  }

  #start(job: Job): void {
    job.state = 'starting';
    const of = (what: string) => draw(this.#trace.seed, job.workflowRun, what);
    const bad = this.#isBad();
    if (of('fails') < FAILS_TO_START) {
      this.#clock.after(5_000, () => this.end(job, 'startup_failure'));
      return;
    }
    const delay = logNormal(of('u'), of('v'), START_MEDIAN_MS, 0.5) * (bad ? 8 : 1);
    this.#clock.after(delay, async () => {
      job.state = 'running';
      job.startedMs = this.#clock.nowMs;
      this.#tally.jobs++;
      this.#fate(job, of, bad);
      this.#clock.after(BOOT_MS, async () => {
        if (job.state === 'running') await this.#listener.started(job);
      });
    });
  }

  #fate(job: Job, of: (what: string) => number, bad: boolean): void {
    const fate = of('fate');
    const lost = bad ? LOST_IN_WEATHER : LOST;
    if (fate >= lost + CANCELLED) return;
    const how = fate < lost ? 'lost' : 'cancelled';
    this.#clock.after(of('when') * 4 * MINUTE, async () => {
      if (job.state !== 'running') return;
      await this.#listener.gone(job, how);
      if (how === 'lost') this.#tally.lostJobs++;
      else this.#tally.cancelledJobs++;
      // a machine that is gone is missed by GitHub after a while only; its minutes run on till then
      if (how === 'lost') this.#clock.after((2 + 8 * of('missed')) * MINUTE, () => this.end(job, 'failure'));
      else this.end(job, 'cancelled');
    });
  }

  #isBad(): boolean {
    const { nowMs } = this.#clock;
    return this.#trace.weather.some(
      (one) => one.what === 'actions' && one.fromMs <= nowMs && nowMs < one.toMs,
    );
  }

  /** The App as the arrows know it: dispatching and reading a workflow run are all that a day needs of GitHub. */
  port(): GitHubApp {
    const never = (): never => {
      throw new Error('a day asks GitHub for dispatches alone');
    };
    const installation = {
      dispatchWorkflow: async (
        repo: { id: string },
        _: string,
        __: string,
        inputs: Record<string, string>,
      ) => ({
        workflowRunId: this.dispatch(repo.id, inputs['nonce'] as string),
      }),
      getWorkflowRun: async () => ({
        status: 'in_progress',
        conclusion: null,
        attempt: 1,
        title: 'countersign',
        event: 'workflow_dispatch',
        headSha: 'a'.repeat(40),
        headBranch: 'main',
        path: '.github/workflows/countersign.yml',
        actor: 'countersign[bot]',
      }),
    };
    return {
      appId: '7',
      slug: async () => 'countersign',
      listInstallations: never,
      listRepositories: never,
      listDeliveries: never,
      redeliver: never,
      installation: async () => installation,
    } as unknown as GitHubApp;
  }
}
