import { listProviders } from '../../db/store/provider.ts';
import { clearReason, setReason } from '../../db/store/reason.ts';
import { clearDue, countBehind, fillWindows, pointTickets } from '../../db/store/ticket.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Policy } from '../domain/policy.ts';
import { count } from '../domain/summary/title.ts';
import type { RunUnit } from './append-rows.ts';

/**
 * Points the waiting tickets of a run away from settled providers, fills its windows, and says whom
 * the rest waits for; returns how many tickets became ready (POOL-3).
 *
 * Reads: providers. Writes: ticket, `provider_down`. Calls: nothing. Queues: decide-gate.
 */
export async function pointTicketsOf(unit: RunUnit, policy: Policy | null): Promise<number> {
  const { tx, run } = unit;
  const settled = (await listProviders(tx, run.installationId)).filter((one) => one.settledUntil !== null);
  await pointTickets(
    tx,
    run.id,
    settled.map((one) => one.name),
    settled.filter((one) => (one.settledUntil ?? unit.now) <= unit.now).map((one) => one.name),
  );
  const ready = await fillWindows(tx, run.id);
  await clearDue(tx, run.id);
  const behind = await countBehind(
    tx,
    run.id,
    settled.map((one) => one.name),
  );
  let changed: boolean;
  if (behind === 0) changed = await clearReason(tx, run.id, 'provider_down');
  else {
    const [first] = settled;
    const next = settled.map((one) => one.settledUntil).sort((a, b) => Number(a) - Number(b))[0];
    changed = await setReason(tx, run.id, {
      code: 'provider_down',
      dueAtMs: run.headAt.getTime() + (policy?.gate.deadline ?? LIMITS.gateDeadlineMs.default),
      detail: `${settled.map((one) => one.name).join(', ')} down since ${clock(first?.settledSince)}, next try ${clock(next)}, ${count(behind, 'file')} waiting`,
    });
  }
  if (changed) unit.enqueue('decide-gate', { run: run.id }, { key: `decide-gate:${run.id}` });
  return ready;
}

/** To the minute, as people read it. */
function clock(moment: Date | null | undefined): string {
  return moment == null ? 'a moment ago' : `${moment.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
