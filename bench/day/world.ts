/** What a simulated day holds besides the database: who waits where, who works what, and what was counted. */
import type { Deps } from '../../app/flow/deps.ts';
import type { TicketResult } from '../../app/protocol/runner.ts';
import type { Actions, Job } from './actions.ts';
import type { Arrows } from './arrows.ts';
import type { DayClock } from './clock.ts';
import type { Followed, Tally } from './measure.ts';
import type { DayRunner } from './runner.ts';
import type { Tenant, Trace } from './trace.ts';

/** Tickets of a repository that are not over, and how many of them are with a runner that lives. */
export interface Place {
  open: number;
  leased: number;
}

/** As long as a settled provider or pool may stay so, and then some. */
const RESTLESS_MS = 75 * 60_000;

/** The day's state. */
export class World {
  readonly clock: DayClock;
  readonly deps: Deps;
  readonly trace: Trace;
  readonly tally: Tally;
  readonly runners = new Map<string, DayRunner>();
  /** Runners by repository, in order of coming. */
  readonly here = new Map<string, Set<DayRunner>>();
  /** Tickets whose runner was lost: what became of them is read after the sweeps. */
  readonly adrift = new Set<string>();
  readonly counts = new Map<string, number>();
  readonly #places = new Map<string, Place>();
  readonly #waiting = new Map<string, Set<DayRunner>>();
  open = 0;
  /** Whether something was done since that may have queued jobs. */
  queues = false;
  actions!: Actions;
  arrows!: Arrows;
  readonly lean: boolean;
  readonly #runs = new Map<Followed['arrival'], string>();

  constructor(clock: DayClock, deps: Deps, trace: Trace, tally: Tally, lean: boolean) {
    this.lean = lean;
    this.clock = clock;
    this.deps = deps;
    this.trace = trace;
    this.tally = tally;
  }

  /** The place of a repository. */
  place(repository: string): Place {
    const known = this.#places.get(repository);
    if (known !== undefined) return known;
    const made = { open: 0, leased: 0 };
    this.#places.set(repository, made);
    return made;
  }

  /** What is followed of a ticket. */
  followed(ticket: string): Followed {
    const found = this.tally.tickets.get(ticket);
    if (found === undefined) throw new Error(`a ticket that nobody queued: ${ticket}`);
    return found;
  }

  /** One more of something worth telling. */
  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  /** The run of a pull request that arrived. */
  opened(arrival: Followed['arrival'], run: string): void {
    this.#runs.set(arrival, run);
  }

  /** The run of a ticket. */
  runOf(ticket: string): string {
    return this.#runs.get(this.followed(ticket).arrival) as string;
  }

  /** A ticket was queued. */
  queued(ticket: string, followed: Followed): void {
    this.tally.tickets.set(ticket, followed);
    this.place(followed.arrival.repository).open++;
    this.open++;
  }

  /** A ticket went to a runner. */
  leased(job: Job, ticket: string): void {
    const followed = this.followed(ticket);
    followed.startedMs ??= this.clock.nowMs;
    followed.grants++;
    if (followed.endedMs !== null) this.tally.violations.push(`leased after its end: ${ticket}`);
    this.place(job.repository).leased++;
  }

  /** A result was accepted: whether it was the ticket's last is read where it may not be. */
  async ended(job: Job, ticket: string, end: TicketResult['end']): Promise<void> {
    this.place(job.repository).leased--;
    if (end === 'reviewed') this.over(ticket, end);
    else {
      this.trouble(job.tenant);
      this.adrift.add(ticket);
      await this.readAdrift();
    }
    await this.wakeOne(job.tenant);
  }

  /** A runner is gone with a ticket. */
  lost(job: Job, ticket: string): void {
    this.place(job.repository).leased--;
    this.adrift.add(ticket);
    this.trouble(job.tenant);
  }

  /** A ticket is over. */
  over(ticket: string, end: string): void {
    const followed = this.followed(ticket);
    if (followed.endedMs !== null) {
      this.tally.violations.push(`ended twice: ${ticket}`);
      return;
    }
    followed.endedMs = this.clock.nowMs;
    followed.end = end;
    this.place(followed.arrival.repository).open--;
    this.open--;
  }

  /** Whether a repository waits though no runner is there: the sweep's to find. */
  anyStarving(): boolean {
    for (const [repository, place] of this.#places) {
      if (place.open <= place.leased) continue;
      const here = this.here.get(repository) ?? new Set();
      if ([...here].every((runner) => runner.dead)) return true;
    }
    return false;
  }

  /** Reads which of the tickets that went astray are over. */
  async readAdrift(): Promise<void> {
    if (this.adrift.size === 0) return;
    await this.clock.tell();
    const { rows } = await this.deps.database.pool.query<{ id: string; state: string; end_code: string }>(
      `select id, state, end_code from ticket where id = any($1) and state <> 'leased'`,
      [[...this.adrift]],
    );
    for (const row of rows) {
      this.adrift.delete(row.id);
      if (row.state === 'ended' && this.followed(row.id).endedMs === null) this.over(row.id, row.end_code);
    }
  }

  readonly #troubled = new Set<string>();
  /** Until when sweeps may find something to do. */
  restlessMs = 0;

  /** Something went wrong in a tenant: from now on its rows are read before anything is said of them. */
  trouble(tenant: Tenant): void {
    this.#troubled.add(tenant.id);
    this.restlessMs = this.clock.nowMs + RESTLESS_MS;
  }

  /** Whether anything ever went wrong there, or is about to. */
  isTroubled(tenant: Tenant): boolean {
    return this.#troubled.has(tenant.id);
  }

  /** Whether something is wrong right now for a provider of a tenant. */
  isBad(what: 'quota' | 'slow', provider: string, tenant: Tenant): boolean {
    const { nowMs } = this.clock;
    return this.trace.weather.some(
      (one) =>
        one.what === what &&
        one.provider === provider &&
        one.fromMs <= nowMs &&
        nowMs < one.toMs &&
        (one.tenants === null || one.tenants.has(tenant.id)),
    );
  }

  /** Whether such weather is over a tenant, of whichever provider, or was long enough to be felt still. */
  weatherOver(what: 'quota' | 'slow', tenant: Tenant): boolean {
    const { nowMs } = this.clock;
    return this.trace.weather.some(
      (one) =>
        one.what === what &&
        one.fromMs <= nowMs &&
        nowMs < one.toMs &&
        (one.tenants === null || one.tenants.has(tenant.id)),
    );
  }

  /** A runner that was started for one ticket waits for one. */
  waitFor(runner: DayRunner): void {
    const { id } = runner.job.tenant;
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting);
    waiting.add(runner);
  }

  /** Something came free in a tenant: of those who wait for one ticket, the first with something to do looks. */
  async wakeOne(tenant: Tenant): Promise<void> {
    const waiting = this.#waiting.get(tenant.id);
    if (waiting === undefined) return;
    for (const runner of waiting) {
      const place = this.place(runner.job.repository);
      if (runner.dead) waiting.delete(runner);
      else if (place.open - place.leased > 0) {
        waiting.delete(runner);
        this.clock.after(1, () => runner.look());
        return;
      }
    }
  }

  /** Ids of those that wait for one ticket. */
  waitingRunners(): string[] {
    return [...this.#waiting.values()].flatMap((waiting) =>
      [...waiting].flatMap((runner) => (runner.dead ? [] : (runner.ownId ?? []))),
    );
  }

  /** After a sweep something may be ready anywhere: one of each tenant's looks. */
  async wakeEach(): Promise<void> {
    for (const tenant of this.trace.tenants) if (this.#waiting.has(tenant.id)) await this.wakeOne(tenant);
  }

  /** What NOTIFY does: who has room in the repository looks at once. */
  async wakeAll(repository: string): Promise<void> {
    for (const runner of this.here.get(repository) ?? []) if (runner.free > 0) await runner.look();
  }

  /** A poisoned ticket took its machine with it. */
  async loseJob(job: Job): Promise<void> {
    await this.runners.get(job.workflowRun)?.gone('lost');
    this.tally.lostJobs++;
    this.clock.after(2 * 60_000, () => this.actions.end(job, 'failure'));
  }
}

/** A moment of the day as its hours and minutes. */
export const hours = (ms: number) =>
  `${Math.floor(ms / 3_600_000)}:${String(Math.floor(ms / 60_000) % 60).padStart(2, '0')}`;
