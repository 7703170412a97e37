/** Results with findings on a synchronised run, by the product's own recording, and the table against the fold. */
import { expect } from 'vitest';
import { fingerprint } from '../../app/domain/finding.ts';
import { decodePath, pathKey, type WirePath } from '../../app/domain/path.ts';
import type { CheckedResult } from '../../app/domain/result.ts';
import type { RunState } from '../../app/domain/run-state/state.ts';
import { recordFindings } from '../../app/flow/accept-result/record.ts';
import { withRun } from '../../app/flow/append-rows.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { listFindings } from '../../db/store/finding.ts';
import type { Ticket } from '../../db/store/ticket.ts';
import { sha } from './facts.ts';

/** A finding as a test names it: by its quote. */
export interface Found {
  readonly quote: string;
  readonly severity?: CheckedResult['findings'][number]['severity'];
  readonly side?: 'head' | 'base';
}

let serial = 0;

/** Records a complete review of a present path by the command `lint` that found these, as accept-result does. */
export async function report(
  deps: Deps,
  run: string,
  state: RunState,
  path: WirePath,
  found: readonly Found[],
): Promise<void> {
  const file = state.files.get(pathKey(path));
  if (file?.key == null) throw new Error(`${pathKey(path)} is not reviewed`);
  const { key, blob } = file;
  const lease = `lease-${++serial}`;
  const by = {
    actor: { kind: 'runner', id: 'r', via: 'oidc' },
    cause: { kind: 'lease', id: lease, sha256: null },
  } as const;
  const reviewer = { name: 'lint', uses: 'command' as const };
  const ticket = {
    id: sha(`ticket ${key} ${serial}`),
    key,
    path: decodePath(path),
    blockId: file.block,
    spec: { reviewers: [reviewer], fallbacks: [], blob, head: state.heads.at(-1)?.head },
  } as unknown as Ticket;
  const findings = found.map(({ quote, severity = 'high', side = 'head' }) => ({
    fingerprint: fingerprint({ path, lens: 'security', title: `on ${quote}`, quote, ordinal: 0 }),
    side,
    start_line: 1,
    end_line: 1,
    severity,
    lens: 'security',
    title: `on ${quote}`,
    body: `because of ${quote}`,
    quote,
    suggestion: null,
    grounded: true,
    reviewer: 'lint',
  }));
  const session = { id: 's', reviewer: 'lint', end: 'complete' } as CheckedResult['sessions'][number];
  const checked: CheckedResult = {
    end: 'reviewed',
    verdict: findings.length > 0 ? 'findings' : 'approve',
    partial: false,
    detail: null,
    sessions: [session],
    findings,
  };
  await withRun(deps, run, async (unit) => {
    unit.append('ticket.ended', {
      block: file.block,
      ...by,
      data: {
        ticket: ticket.id,
        key,
        path,
        block: file.block,
        round: 0,
        grant: 1,
        level: file.level,
        policy: state.policy?.hash ?? null,
        end: 'reviewed',
        final: true,
        verdict: checked.verdict,
        partial: false,
        runner: null,
        sessions: [],
        findings: findings.map((one) => one.fingerprint),
        brief: null,
        result: null,
        ms: 1,
      },
    });
    await recordFindings(
      unit,
      ticket,
      checked,
      { ...by, late: false, keys: deps.signer.redactionKeys('1', '1') },
      { answers: [], gone: new Set() },
    );
  });
}

/** `F1 open a.ts` of every finding, once the table was found to say what the rows say. */
export async function standing(deps: Deps, run: string, state: RunState): Promise<string[]> {
  const stored = await listFindings(deps.database.db, run);
  const projected = stored.map((one) => [
    one.number,
    one.state,
    pathKey(one.path),
    one.fingerprint,
    one.severity,
    one.answer,
    one.dismissals,
    one.seq,
    one.carriedSeq,
  ]);
  const folded = [...state.findings.values()]
    .sort((a, b) => a.number - b.number)
    .map((one) => [
      one.number,
      one.state,
      pathKey(one.path),
      one.fingerprint,
      one.severity,
      one.answer,
      one.dismissals,
      one.seq,
      one.carriedSeq,
    ]);
  expect(projected, 'the table says what the rows say').toEqual(folded);
  expect(state.anomalies).toEqual([]);
  return stored.map((one) => `F${one.number} ${one.state} ${pathKey(one.path)}`);
}
