/** The side that starts a runner for each ticket: no plan, no dispatch of ours, the same lease. */
import { createHash } from 'node:crypto';
import { addLogin, addRunner, type Login } from '../../db/store/runner.ts';
import type { Job } from './actions.ts';
import { DAY_MS } from './trace.ts';
import type { World } from './world.ts';

/** A runner that no dispatch of ours stands for. */
export async function ownLogin(world: World, job: Job): Promise<Login> {
  const id = world.deps.ids.next();
  const place = { installationId: job.tenant.id, repositoryId: job.repository };
  await world.deps.database.transaction((tx) =>
    addRunner(tx, {
      id,
      ...place,
      pool: 'alone',
      workflowRun: job.workflowRun,
      attempt: 1,
      job: null,
      version: '0',
      capacity: 1,
      keys: null,
    }),
  );
  const identity: Login['identity'] = {
    role: 'worker',
    installation: job.tenant.id,
    repository: job.repository,
    run: null,
    workflowRun: job.workflowRun,
    attempt: 1,
    job: null,
    pool: 'alone',
  };
  const login = {
    id,
    runnerId: id,
    identity,
    tokenHash: createHash('sha256').update(id).digest(),
    claims: '',
  };
  await world.deps.database.transaction((tx) => addLogin(tx, login, DAY_MS));
  return login as unknown as Login;
}

/** Who waits for its one ticket looks each second and is heard of; here all of them in one statement now and then. */
export async function hearAll(world: World): Promise<void> {
  await world.clock.tell();
  await world.deps.database.pool.query('update runner set heartbeat_at = cs_now() where id = any($1)', [
    world.waitingRunners(),
  ]);
  world.clock.after(2 * 60_000, () => hearAll(world));
}

/** A runner for each ticket that has none, put back or left by a job that came to nothing: where fewer jobs are under way than tickets wait. */
export async function topUp(world: World): Promise<void> {
  const { rows } = await world.deps.database.pool.query<{ id: string; n: number }>(
    `select repository_id::text as id, count(*)::int as n from ticket
     where state in ('pending', 'leased') and (not_before is null or not_before <= cs_now()) group by 1 order by 1`,
  );
  if (rows.length === 0) return;
  const jobs = new Map<string, number>();
  for (const job of world.actions.jobs.values())
    jobs.set(job.repository, (jobs.get(job.repository) ?? 0) + 1);
  for (const { id } of rows) {
    const place = world.place(id);
    for (let n = jobs.get(id) ?? 0; n < place.open; n++) world.actions.dispatch(id, '');
  }
}
