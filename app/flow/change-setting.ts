/**
 * Changes a setting of an installation, or of the whole app (POL-2, CTL-5): the setting, what it does at once, and a
 * signed row on the chain of each installation it concerns, in one transaction. The kill switch revokes every lease
 * and raises the generation of every open run with it, so that nothing planned before starts any more.
 *
 * Reads: installation, setting, run, lease, ticket, dispatch, enrolment. Writes: setting, run, lease, ticket, slot,
 * texts, jobs; rows `settings.changed`. Calls: nothing. Queues: decide-gate, cancel-dispatches, dispatch, enrol.
 * May fail with: `not_found`.
 */
import type { Tx } from '../../db/client.ts';
import { listDispatching } from '../../db/store/dispatch.ts';
import { findInstallation, type Installation, listInstallations } from '../../db/store/installation.ts';
import { addJobs, type NewJob } from '../../db/store/job.ts';
import { listProviders, resizeSlots } from '../../db/store/provider.ts';
import { revokeReceiptLeases } from '../../db/store/receipt-lease.ts';
import {
  dropSetting,
  listEnrolled,
  listLiveLeases,
  lockLeasing,
  lockOpenRuns,
  putSetting,
  raiseGenerations,
  settingsOf,
  WHOLE_APP,
} from '../../db/store/setting.ts';
import { putText } from '../../db/store/text.ts';
import { turnQueue } from '../../db/store/turn.ts';
import { slotsOf } from '../domain/setting/key.ts';
import { Refusal } from '../errors.ts';
import { appendToInstallation, retried } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { asItWas } from './put-back.ts';

/** What is to be changed. `installation` null: the whole app; `value` undefined: the setting is taken away. */
export interface ChangeSettingInput {
  readonly installation: string | null;
  readonly key: string;
  readonly value: unknown;
  /** Who changes it, by their own word, and why. */
  readonly by: string;
  readonly reason: string;
  /** How it was said. */
  readonly via: 'command_line' | 'api';
}

/** What came of it. */
export interface ChangeSettingOutcome {
  readonly changed: boolean;
  /** Chains that bear a row of it. */
  readonly installations: number;
  /** Leases that were revoked. */
  readonly revoked: number;
}

/** Changes one setting; what is so already changes nothing. */
export async function changeSetting(
  deps: Pick<Deps, 'database' | 'signer' | 'log'>,
  input: ChangeSettingInput,
): Promise<ChangeSettingOutcome> {
  const outcome = await retried(() => deps.database.transaction((tx) => change(deps, tx, input)));
  const { key, installation } = input;
  deps.log.info({ key, installation: installation ?? 'all', ...outcome }, 'change-setting');
  return outcome;
}

async function change(
  deps: Pick<Deps, 'database' | 'signer'>,
  tx: Tx,
  { installation, key, value, by, reason, via }: ChangeSettingInput,
): Promise<ChangeSettingOutcome> {
  const of = installation === null ? await listInstallations(tx) : [await one(tx, installation)];
  const ids = of.map((each) => each.id);
  // runs before all else: whoever leases in a unit of work has its run's lock first
  const runs = key === 'kill' ? await lockOpenRuns(tx, ids) : [];
  if (key === 'kill') await lockLeasing(tx);
  const text = await putText(tx, reason);
  const at = { installationId: installation ?? WHOLE_APP, key };
  const changed =
    value === undefined
      ? await dropSetting(tx, at.installationId, key)
      : await putSetting(tx, { ...at, value, actor: by, reason: text });
  if (!changed) return { changed, installations: 0, revoked: 0 };
  let revoked = 0;
  const jobs: NewJob[] = [];
  if (key === 'kill') {
    await raiseGenerations(
      tx,
      runs.map((run) => run.id),
    );
    if (value !== undefined)
      revoked =
        (await revokeLeases(tx, ids)) +
        (await revokeReceiptLeases(
          tx,
          runs.map((run) => run.id),
        ));
    jobs.push(...runs.map((run) => jobOf('decide-gate', 'run', run.id, -10)));
    jobs.push(
      ...(value === undefined
        ? [...new Set(runs.map((run) => run.repositoryId))].map((id) =>
            jobOf('dispatch', 'repository', id, 0),
          )
        : (await listDispatching(tx, ids)).map((id) => jobOf('cancel-dispatches', 'repository', id, -10))),
    );
  }
  if (key === 'slots' || key.startsWith('slots.')) for (const id of ids) await resize(tx, id);
  if (key.startsWith('policy.'))
    jobs.push(
      ...(await listEnrolled(tx, ids)).map(({ repositoryId, baseRef }) => ({
        task: 'enrol',
        payload: { repository: repositoryId, baseRef },
        key: `enrol:${repositoryId}:${baseRef}`,
        priority: 10,
      })),
    );
  await addJobs(tx, jobs);
  for (const { id, epoch } of of)
    await appendToInstallation(deps, tx, { id, epoch }, 'settings.changed', {
      block: null,
      actor: { kind: 'person', id: by, via },
      cause: { kind: via, id: 'settings', sha256: null },
      data: {
        setting: key,
        value: value === undefined ? 'unset' : JSON.stringify(value).slice(0, 200),
        text,
        ...(installation === null ? { scope: 'app' as const } : {}),
      },
    });
  return { changed, installations: of.length, revoked };
}

async function one(tx: Tx, id: string): Promise<Installation> {
  const found = await findInstallation(tx, id);
  if (found !== null) return found;
  const known = (await listInstallations(tx)).map((each) => `${each.id} (${each.accountLogin})`);
  throw new Refusal('not_found', `there is no installation ${id}`, [...known.slice(0, 20), 'all'].join(', '));
}

/** CTL-5: who has a lease is told `revoked` at the next heartbeat; the tickets wait at the front of their blocks. */
async function revokeLeases(tx: Tx, ids: readonly string[]): Promise<number> {
  const live = await listLiveLeases(tx, ids);
  const { ended } = await turnQueue(tx, {
    ends: live.map(({ lease, ticket }) => ({ leaseId: lease, ...asItWas(ticket, 'revoked', 'killed') })),
    place: { installationId: '0', repositoryId: '0' },
    asks: [],
    ttlMs: 0,
  });
  return ended.size;
}

async function resize(tx: Tx, installationId: string): Promise<void> {
  const settings = await settingsOf(tx, installationId);
  for (const { name } of await listProviders(tx, installationId))
    if (name !== 'command') await resizeSlots(tx, installationId, name, slotsOf(settings, name));
}

function jobOf(task: string, field: string, id: string, priority: number): NewJob {
  return { task, payload: { [field]: id }, key: `${task}:${id}`, priority };
}
