/** A stage for admissions: leases of tickets with models, and the sessions under them. */
import { sql } from 'drizzle-orm';
import { type AdmitAsk, type AdmitOutcome, admit } from '../../app/flow/admit.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { endSession } from '../../app/flow/end-session.ts';
import { storePolicy } from '../../db/store/policy.ts';
import type { Login } from '../../db/store/runner.ts';
import { takeLeases } from '../../db/store/turn.ts';
import {
  INSTALLATION,
  POLICY,
  plainSpec,
  plainTicket,
  REPOSITORY,
  seedLogin,
  seedTickets,
  tokenHash,
} from './queue.ts';

/** A lease as its runner holds it. */
export interface Held {
  readonly id: string;
  readonly ticket: string;
  readonly session: string | null;
  /** Asks for one session. */
  admit(ask?: Partial<AdmitAsk>): Promise<AdmitOutcome>;
  /** Ends a session with its figures. */
  end(session: string, tokens?: number, how?: 'complete' | 'failed' | 'timeout' | 'abandoned'): Promise<void>;
}

/** The policy of the queue's runs with more in it; its hash. */
export function policyWith(deps: Deps, more: string): Promise<string> {
  return deps.database.transaction((tx) => storePolicy(tx, Buffer.concat([POLICY, Buffer.from(more)])));
}

/** Puts a run under a policy with this budget. */
export async function budgetRun(deps: Deps, run: string, budget: string): Promise<void> {
  const hash = await policyWith(deps, `budget: ${budget}\n`);
  await deps.database.db.execute(sql`update run set policy_hash = ${hash} where id = ${run}`);
}

/** Leases `n` tickets with the model of the queue's policy, and its fallback. */
export async function leaseModels(
  deps: Deps,
  run: string,
  paths: readonly string[],
  block = 'block',
): Promise<Held[]> {
  const login = await seedLogin(deps.database);
  await seedTickets(
    deps.database,
    paths.map((path) => {
      const ticket = plainTicket(run, path, { provider: 'openai', block, parallel: 16 });
      const spec = plainSpec(path, 'openai');
      return {
        ...ticket,
        spec: {
          ...spec,
          reviewers: [
            { name: 'model', uses: 'openai' as const, model: 'm-1', max_output: 500, fallbacks: ['other'] },
            { name: 'second', uses: 'xai' as const, model: 'm-3', max_output: 500 },
          ],
          fallbacks: [{ name: 'other', uses: 'xai' as const, model: 'm-2' }],
        },
      };
    }),
  );
  const names = paths.map((path) => {
    const id = deps.ids.next();
    return { id, path, tokenHash: tokenHash(id), sessionId: `s${id}` };
  });
  const granted = await takeLeases(deps.database.db, {
    runnerId: login.id,
    installationId: INSTALLATION,
    repositoryId: REPOSITORY,
    request: null,
    names,
    ttlMs: 300_000,
  });
  return granted.map((one) => {
    const claim = {
      login: { id: login.id, runnerId: login.id } as Login,
      lease: one.leaseId,
      token: one.leaseId,
      grant: one.grant,
    };
    return {
      id: one.leaseId,
      ticket: one.ticketId,
      session: one.sessionId,
      admit: (ask = {}) =>
        admit(deps, claim, { reviewer: 'model', purpose: 'review', promptTokens: 500, ...ask }),
      end: (session, tokens = 0, how = 'complete') =>
        endSession(deps, claim, session, {
          end: how,
          detail: null,
          tokensIn: tokens,
          tokensOut: 0,
          costMicro: 0,
        }),
    };
  });
}

/** What the counts stand at, by `scope id period`. */
export async function spentNow(
  deps: Deps,
): Promise<Record<string, { sessions: number; tokens: number; micro: number }>> {
  const { rows } = await deps.database.db.execute<Record<string, string>>(
    sql`select scope, id, period, sessions, tokens, micro from spend order by scope, id, period`,
  );
  const scopes = ['', 'block', 'run', 'outsiders', 'month', 'ceiling'];
  return Object.fromEntries(
    rows.map((row) => [
      `${scopes[Number(row['scope'])]} ${row['id']}${row['period'] === '' ? '' : ` ${row['period']}`}`,
      { sessions: Number(row['sessions']), tokens: Number(row['tokens']), micro: Number(row['micro']) },
    ]),
  );
}
