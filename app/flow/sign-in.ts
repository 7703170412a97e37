/**
 * Signs a person in to the pages (OPS-8) by GitHub's word, in two steps: where to send the browser with
 * what to remember, and what its return comes to. Nothing of GitHub's is kept but who it is.
 *
 * Reads: nothing. Writes: a visit. Calls: GitHub's OAuth, and with the token it gives, who that is. May
 * fail with: `not_supported` (no OAuth client is configured), `unauthorized`, `config_value`, what GitHub does.
 */
import { createHash } from 'node:crypto';
import { addVisit } from '../../db/store/visit.ts';
import { LIMITS } from '../domain/limits.ts';
import { Refusal } from '../errors.ts';
import type { GitHubSignIn } from '../github/port.ts';
import type { PageDeps } from './deps.ts';
import { secretHash } from './login.ts';

/** The path that GitHub sends people back to: the App's callback URL is the public URL with it. */
export const CALLBACK_PATH = '/signin/callback';

/** What the browser has to bring back, and where it goes. */
export interface SignInFlow {
  readonly state: string;
  /** The secret half of PKCE. */
  readonly verifier: string;
  readonly url: string;
}

/** Begins a sign-in. Throws `not_supported`. */
export function beginSignIn(deps: PageDeps): SignInFlow {
  const state = deps.ids.secret();
  const verifier = deps.ids.secret();
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const url = clientOf(deps).authorizeUrl({ state, challenge, redirectUri: redirectUri(deps) });
  return { state, verifier, url };
}

/** Ends it: the secret of a new visit, whatever visit there was before. */
export async function signIn(
  deps: PageDeps,
  answer: { readonly code: string; readonly verifier: string },
): Promise<string> {
  const person = await clientOf(deps).identify({ ...answer, redirectUri: redirectUri(deps) });
  const secret = deps.ids.secret();
  await deps.database.transaction((tx) =>
    addVisit(
      tx,
      {
        secretHash: secretHash(secret),
        family: deps.ids.next(),
        userId: person.id,
        login: person.login,
        installations: [...person.installations],
      },
      LIMITS.visitIdleMs.default,
    ),
  );
  deps.log.info({ user: person.id }, 'sign-in');
  return secret;
}

function clientOf(deps: PageDeps): GitHubSignIn {
  if (deps.signIn !== null) return deps.signIn;
  throw new Refusal('not_supported', 'nobody can sign in: CLIENT_ID and CLIENT_SECRET are not set');
}

function redirectUri(deps: PageDeps): string {
  return `${deps.settings.publicUrl}${CALLBACK_PATH}`;
}
