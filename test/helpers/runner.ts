/** A runner that calls the arrows: it leases, and submits what a test says (no HTTP, no review). */
import { expect } from 'vitest';
import { acceptResult } from '../../app/flow/accept-result.ts';
import { admit } from '../../app/flow/admit.ts';
import { authenticate } from '../../app/flow/authenticate.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { type GivenLease, lease as leaseNow } from '../../app/flow/lease.ts';
import type { LeaseClaim } from '../../app/flow/lease-proof.ts';
import type { TicketResult } from '../../app/protocol/runner.ts';
import { seedLogin } from './queue.ts';

/** One runner with a login of its own. */
export interface TestRunner {
  readonly id: string;
  readonly token: string;
  lease(max?: number): Promise<readonly GivenLease[]>;
  claim(lease: GivenLease): Promise<LeaseClaim>;
  /** Admits the first reviewer where it is a model, and submits the end. */
  finish(lease: GivenLease, more?: Partial<TicketResult>): Promise<void>;
}

/** Logs a runner in, of the seeded repository and installation unless others are named. */
export async function testRunner(
  deps: Deps,
  repositoryId?: string,
  installationId?: string,
): Promise<TestRunner> {
  const login = await seedLogin(deps.database, null, repositoryId, installationId);
  const claim = async (lease: GivenLease): Promise<LeaseClaim> => ({
    login: await authenticate(deps, login.token),
    lease: lease.id,
    token: lease.token,
    grant: lease.grant,
  });
  return {
    ...login,
    claim,
    lease: async (max = 1) =>
      (
        await leaseNow(deps, {
          login: await authenticate(deps, login.token),
          max,
          request: null,
          again: false,
        })
      ).leases,
    async finish(lease, more = {}) {
      const reviewer = lease.ticket.reviewers[0];
      if (reviewer === undefined) throw new Error('a ticket without a reviewer');
      const mine = await claim(lease);
      let id = `${lease.id}.1`;
      if (reviewer.uses !== 'command') {
        const admitted = await admit(deps, mine, {
          reviewer: reviewer.name,
          purpose: 'review',
          promptTokens: 1,
        });
        expect(admitted.outcome).toBe('admitted');
        if (admitted.outcome === 'admitted') id = admitted.session;
      }
      const end = more.end ?? 'reviewed';
      await acceptResult(deps, mine, {
        end,
        detail: null,
        retry_after_ms: null,
        blobs: lease.ticket.blob,
        verdict: end === 'reviewed' ? 'approve' : null,
        partial: false,
        sessions: [
          {
            id,
            reviewer: reviewer.name,
            provider: reviewer.uses,
            model: null,
            end: end === 'reviewed' ? 'complete' : 'failed',
            detail: null,
            exit: null,
            tokens_in: 1,
            tokens_out: 1,
            cost_micro: 0,
            ms: 1,
          },
        ],
        findings: [],
        unplaced: [],
        brief_sha256: null,
        ms: 1,
        ...more,
      });
    },
  };
}
