/** The job's OIDC token (AUT-1). @actions/core is loaded here only: it is heavy and not needed before. */
import { Fault } from '../app/errors.ts';

/** A fresh token for our audience; throws Fault `oidc_unavailable` with the way out when the job may not have one. */
export async function oidcToken(audience: string): Promise<string> {
  const core = await import('@actions/core');
  try {
    return await core.getIDToken(audience);
  } catch (error) {
    const denied = error instanceof Error && error.message.includes('ACTIONS_ID_TOKEN_REQUEST');
    throw new Fault(
      'oidc_unavailable',
      denied
        ? 'This job has no OIDC token: its workflow needs `permissions: id-token: write`'
        : 'The OIDC token could not be fetched',
      // the message of the cause may quote the request; the token itself must not get near a log
      { retryable: !denied },
    );
  }
}
