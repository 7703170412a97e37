/** GitHub's refusals → our Fault codes. GitHub has no error codes, so status, headers and, where only they tell, its fixed sentences decide. */
import { Fault } from '../../errors.ts';

/** GitHub's fixed sentences: nothing else tells these apart from other 403s. */
const SUSPENDED = 'This installation has been suspended';
const NOT_ACCESSIBLE = 'Resource not accessible by integration';
const SECONDARY = /secondary rate limit|abuse detection/i;

/** Wait of a secondary limit that names none: at least a minute (facts/github.md §12). */
const SECONDARY_WAIT_MS = 60_000;

/** The address that a request was made under has moved: the repository was renamed or transferred (case 75). */
export class Moved extends Error {
  override readonly name = 'Moved';
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number | undefined>>;
  readonly message: string;
}

/** The answer that an Octokit error carries; null for a request that had none. */
export function answerOf(error: unknown): Answer | null {
  if (typeof error !== 'object' || error === null || !('status' in error) || !('response' in error))
    return null;
  const { status, response } = error as { status: unknown; response: unknown };
  if (typeof status !== 'number' || typeof response !== 'object' || response === null) return null;
  const { headers, data } = response as { headers?: Answer['headers']; data?: unknown };
  const message =
    typeof data === 'object' && data !== null && 'message' in data
      ? String((data as { message: unknown }).message)
      : '';
  return { status, headers: headers ?? {}, message };
}

/**
 * What an error of a call means. `call` names it for the message; foreign text never gets in.
 * `nowMs` is this machine's clock, used only to turn a moment of GitHub's into a wait.
 */
export function toFault(call: string, error: unknown, nowMs: number): Fault {
  if (error instanceof Fault) return error;
  const answer = answerOf(error);
  if (answer === null)
    return new Fault('github_unavailable', `${call}: no answer from GitHub`, {
      cause: error,
      retryable: true,
    });
  const { status, headers } = answer;
  const fault = (code: ConstructorParameters<typeof Fault>[0], what: string, retryable = false) =>
    new Fault(code, `${call}: ${what} (${status})`, { retryable });

  const wait = limitWait(answer, nowMs);
  if (wait !== null)
    return new Fault('github_rate_limited', `${call}: rate limited (${status})`, {
      retryable: true,
      retryAfterMs: wait,
    });
  const token = call === 'create-installation-access-token';
  if (status === 403 && (token || answer.message === SUSPENDED))
    return fault('installation_gone', 'suspended');
  if (status === 404 && token) return fault('installation_gone', 'not installed');
  if (status === 403 && answer.message.startsWith(NOT_ACCESSIBLE)) {
    const needed = String(headers['x-accepted-github-permissions'] ?? '');
    const safe = /^[a-z_=;, ]{1,200}$/.test(needed) ? needed : 'unknown';
    return fault('permissions_missing', `needs ${safe}`);
  }
  if (status === 404 || status === 410) return fault('github_not_found', 'not found');
  // a token that was just revoked: the next one is fresh
  if (status === 401) return fault('github_unavailable', 'credentials refused', true);
  if (status >= 500) return fault('github_unavailable', 'GitHub failed', true);
  return fault('github_refused', 'refused');
}

/** What a GraphQL answer's own errors mean, by their type; null where the error is none of these. A refused token is a missing permission here (facts/github.md §10). */
export function queryFault(call: string, error: unknown): Fault | null {
  if (answerOf(error)?.status === 401)
    return new Fault('permissions_missing', `${call}: refused (401)`, { retryable: false });
  const errors = (error as { errors?: unknown } | null)?.errors;
  if (!Array.isArray(errors)) return null;
  const types = errors.map((one: unknown) => String((one as { type?: unknown } | null)?.type ?? ''));
  const says = (...known: string[]) => types.some((type) => known.includes(type));
  if (says('RATE_LIMITED', 'RATE_LIMIT'))
    return new Fault('github_rate_limited', `${call}: rate limited`, {
      retryable: true,
      retryAfterMs: SECONDARY_WAIT_MS,
    });
  if (says('FORBIDDEN', 'INSUFFICIENT_SCOPES'))
    return new Fault('permissions_missing', `${call}: not permitted`, { retryable: false });
  if (says('NOT_FOUND')) return new Fault('github_not_found', `${call}: not found`, { retryable: false });
  if (says('SERVICE_UNAVAILABLE', 'INTERNAL', 'TIMEOUT'))
    return new Fault('github_unavailable', `${call}: GitHub failed`, { retryable: true });
  return new Fault('github_refused', `${call}: refused`, { retryable: false });
}

/** How long a limit asks to wait, or null when the answer is no limit: a 403 with quota left and no such hint is a refusal of another kind (OPS-6). */
function limitWait({ status, headers, message }: Answer, nowMs: number): number | null {
  if (status !== 403 && status !== 429) return null;
  const after = Number(headers['retry-after']);
  if (headers['retry-after'] !== undefined && Number.isFinite(after)) return Math.max(1, after) * 1000;
  if (String(headers['x-ratelimit-remaining']) === '0') {
    const reset = Number(headers['x-ratelimit-reset']) * 1000;
    // their clock against their clock: ours may be wrong (case 78)
    const theirNow = Date.parse(String(headers['date'] ?? ''));
    const from = Number.isFinite(theirNow) ? theirNow : nowMs;
    return Number.isFinite(reset) ? Math.max(1000, reset - from) : SECONDARY_WAIT_MS;
  }
  return status === 429 || SECONDARY.test(message) ? SECONDARY_WAIT_MS : null;
}
