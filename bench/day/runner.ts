/**
 * A model of one running Action (action/drain.ts): it logs in, works up to four tickets at a time, asks for
 * the next with each result, looks again each second while it has room, and ends when nothing is left. What
 * it asks for goes through the product's own arrows; the review itself is a wait.
 */
import { LIMITS } from '../../app/domain/limits.ts';
import { Refusal } from '../../app/errors.ts';
import { authenticate } from '../../app/flow/authenticate.ts';
import { giveBack } from '../../app/flow/give-back.ts';
import { heartbeat } from '../../app/flow/heartbeat.ts';
import { login } from '../../app/flow/login.ts';
import type { TicketResult } from '../../app/protocol/runner.ts';
import type { Login } from '../../db/store/runner.ts';
import type { Job } from './actions.ts';
import type { Brought, Held } from './arrows.ts';
import type { World } from './world.ts';

const LOOK_MS = 1_000;
/** How long a runner without work stays. */
const IDLE_MS = LIMITS.idleMs.default;
/** Not heard of for longer, a request notes it (authenticate.ts). */
const QUIET_MS = LIMITS.runnerFreshMs.default / 3;
const DONE_IDLE_MS = 2_000;
/** How soon a provider that is over its quota says so. */
const REFUSED_MS = 1_500;
const TIMEOUT_MS = 300_000;
const POISON_MS = 5_000;

/** The Action of one job. */
export class DayRunner {
  readonly #world: World;
  readonly job: Job;
  /** With every result the next ticket is asked for; false: one ticket, and it is over. */
  readonly #drains: boolean;
  readonly #parallel: number;
  readonly #active = new Map<string, Held>();
  #token = '';
  #own: Login | null = null;
  #known: Login | null = null;
  /** When it was heard of last, and its login renewed. */
  #heardMs = 0;
  #renewedMs = 0;
  #idleFrom = 0;
  #done = false;
  #look = 0;
  dead = false;

  constructor(world: World, job: Job, drains: boolean) {
    this.#world = world;
    this.job = job;
    this.#drains = drains;
    this.#parallel = drains ? LIMITS.actionParallel.default : 1;
  }

  /** Its id where it needs no dispatch of ours. */
  get ownId(): string | undefined {
    return this.#own?.runnerId;
  }

  /** Whether it would take more work. */
  get free(): number {
    return this.dead ? 0 : this.#parallel - this.#active.size;
  }

  /** Logs in and looks for work. `own`: a login that needs no dispatch of ours, for the side that has none. */
  async start(own: Login | null): Promise<void> {
    this.#own = own;
    this.#idleFrom = this.#world.clock.nowMs;
    if (own === null && !(await this.#logIn())) return this.#end('failure');
    await this.look();
  }

  async #logIn(): Promise<boolean> {
    const { world, job } = { world: this.#world, job: this.job };
    const repository = `${job.tenant.owner}/r${job.repository}`;
    const path = `${repository}/.github/workflows/countersign.yml@refs/heads/main`;
    try {
      world.queues = true;
      const done = await login(world.deps, {
        claims: {
          issuer: 'https://token.actions.test',
          tokenId: world.deps.ids.next(),
          expiresInS: 300,
          digest: 'd'.repeat(64),
          repositoryId: job.repository,
          ownerId: job.tenant.account,
          repository,
          event: 'workflow_dispatch',
          ref: 'refs/heads/main',
          refType: 'branch',
          workflowRef: path,
          jobWorkflowRef: null,
          workflowRun: job.workflowRun,
          attempt: 1,
          sha: null,
          job: job.workflowRun,
          environment: null,
        },
        protocol: '1.1',
        nonce: job.nonce,
        version: '0.1.0',
        capacity: this.#parallel,
        keys: null,
      });
      this.#token = done.token;
      this.#known = null;
      this.#heardMs = world.clock.nowMs;
      this.#renewedMs = world.clock.nowMs;
      return true;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      world.count(`login refused: ${error.code}`);
      return false;
    }
  }

  /** As the edge does it with each request; a login that is over is followed by a new one, once (ACT-5). */
  async #authenticated(): Promise<Login | null> {
    if (this.#own !== null) return this.#own;
    const { world } = this;
    await world.clock.tell();
    const { nowMs } = world.clock;
    // a lean day asks where asking does something: the runner is heard of again, or its login is over
    const idle = nowMs - this.#heardMs <= QUIET_MS && nowMs - this.#renewedMs < LIMITS.loginMs.default;
    if (world.lean && this.#known !== null && idle) return this.#known;
    for (const last of [false, true]) {
      try {
        const found = await authenticate(world.deps, this.#token);
        this.#known = found;
        if (nowMs - this.#heardMs > QUIET_MS) this.#heardMs = nowMs;
        return found;
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        world.count(`request refused: ${error.code}`);
        if (last || !(await this.#logIn())) break;
      }
    }
    return null;
  }

  /** Asks for as much as there is room for, and goes on looking while something may come. */
  async look(): Promise<void> {
    if (this.dead || this.free === 0) return;
    const { world } = this;
    const mine = ++this.#look;
    const place = world.place(this.job.repository);
    if (place.open - place.leased > 0) {
      const by = await this.#authenticated();
      if (by === null) return this.#end('failure');
      world.tally.events++;
      const brought = await world.arrows.lease(by, this.free);
      if (brought.held.length === 0) this.#heardMs = world.clock.nowMs;
      await this.#take(brought);
    } else this.#done = place.open === 0;
    if (this.dead || this.free === 0 || mine !== this.#look) return;
    const idle = world.clock.nowMs - this.#idleFrom;
    const patience = this.#done ? DONE_IDLE_MS : IDLE_MS;
    if (this.#active.size === 0 && this.#drains && idle >= patience) return this.#end('success');
    // one that was dispatched for a ticket waits for it, woken by what comes free
    if (!this.#drains) {
      world.waitFor(this);
      return;
    }
    world.clock.after(LOOK_MS, async () => {
      if (mine === this.#look) await this.look();
    });
  }

  get world(): World {
    return this.#world;
  }

  async #take({ held, done }: Brought): Promise<void> {
    this.#done = done;
    for (const one of held) this.#world.leased(this.job, one.ticket);
    for (const one of held) await this.#begin(one);
  }

  async #begin(held: Held): Promise<void> {
    const { world, job } = this;
    const { clock, tally } = world;
    if (this.#active.size === 0) job.busyFromMs = clock.nowMs;
    this.#active.set(held.id, held);
    const { arrival, index } = world.followed(held.ticket);
    const work = arrival.files[index] as (typeof arrival.files)[number];
    if (
      world.weatherOver('quota', job.tenant) ||
      (work.ms * 4 > TIMEOUT_MS && world.weatherOver('slow', job.tenant))
    )
      world.trouble(job.tenant);
    const by = await this.#authenticated();
    if (by === null) return this.#end('failure');
    if (!(await world.arrows.begin(by, held))) world.count('not admitted');
    const { provider } = held;
    if (work.poison) {
      clock.after(POISON_MS, () => (this.dead ? undefined : world.loseJob(job)));
      return;
    }
    const refused = world.isBad('quota', provider, job.tenant);
    const ms = work.ms * (world.isBad('slow', provider, job.tenant) ? 4 : 1);
    const end = refused ? 'rate_limited' : ms > TIMEOUT_MS ? 'timeout' : 'reviewed';
    const took = refused ? REFUSED_MS : Math.min(ms, TIMEOUT_MS);
    if (provider !== 'command')
      tally.slotMs.set(job.tenant.id, (tally.slotMs.get(job.tenant.id) ?? 0) + took);
    const over = clock.nowMs + took;
    this.#beat(held, over);
    clock.at(over, () => this.#finish(held, end, took));
  }

  #beat(given: Held, untilMs: number): void {
    const { clock, deps, tally } = this.#world;
    if (clock.nowMs + LIMITS.heartbeatMs.default >= untilMs) return;
    clock.after(LIMITS.heartbeatMs.default, async () => {
      if (this.dead || !this.#active.has(given.id)) return;
      tally.events++;
      const by = await this.#authenticated();
      if (by === null) return this.#end('failure');
      try {
        await heartbeat(deps, this.#claim(by, given));
        this.#heardMs = clock.nowMs;
        this.#renewedMs = clock.nowMs;
        this.#beat(given, untilMs);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        this.#world.count(`heartbeat refused: ${error.code}`);
        this.#drop(given.id);
        this.#world.lost(this.job, given.ticket);
      }
    });
  }

  async #finish(held: Held, end: TicketResult['end'], ms: number): Promise<void> {
    if (this.dead || !this.#active.has(held.id)) return;
    const { world } = this;
    const by = await this.#authenticated();
    if (by === null) return this.#end('failure');
    world.tally.events++;
    // a review that goes well where nothing went wrong queues the gate's decision alone
    world.queues ||= end !== 'reviewed' || !world.lean || world.isTroubled(this.job.tenant);
    try {
      const next = await world.arrows.end(by, held, end, ms, this.#drains ? 1 : 0);
      if (next?.held.length === 0) this.#heardMs = world.clock.nowMs;
      this.#drop(held.id);
      await world.ended(this.job, held.ticket, end);
      if (next !== null) await this.#take(next);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      world.count(`result refused: ${error.code}`);
      this.#drop(held.id);
      world.lost(this.job, held.ticket);
    }
    if (!this.#drains) return this.#end('success');
    await this.look();
  }

  #drop(id: string): void {
    this.#active.delete(id);
    if (this.#active.size > 0) return;
    const { nowMs } = this.#world.clock;
    this.#idleFrom = nowMs;
    if (this.job.busyFromMs !== null) this.job.busyMs += nowMs - this.job.busyFromMs;
    this.job.busyFromMs = null;
  }

  #claim(by: Login, given: Held) {
    return { login: by, lease: given.id, token: given.token, grant: given.grant };
  }

  /** Its machine is gone, or it was told to stop and gives back what it has. */
  async gone(how: 'lost' | 'cancelled'): Promise<void> {
    if (this.dead) return;
    this.#world.queues = true;
    if (how === 'cancelled')
      for (const given of this.#active.values()) {
        const by = await this.#authenticated();
        if (by !== null) await giveBack(this.#world.deps, this.#claim(by, given), 'stopping').catch(() => {});
      }
    this.dead = true;
    for (const given of this.#active.values()) this.#world.lost(this.job, given.ticket);
  }

  #end(conclusion: 'success' | 'failure'): void {
    if (this.dead) return;
    this.dead = true;
    for (const given of this.#active.values()) this.#world.lost(this.job, given.ticket);
    this.#world.actions.end(this.job, conclusion);
  }
}
