/** Error answers of the API: one shape, a status per code, nothing of the inside (`{error: {code, message, accepted?}}`). */
import { Fault, Refusal, type RefusalCode } from '../errors.ts';

const STATUS: Partial<Record<RefusalCode, 400 | 401 | 403 | 404 | 409 | 413 | 429>> = {
  unauthorized: 401,
  forbidden: 403,
  owner_mismatch: 403,
  owner_invalid: 403,
  not_found: 404,
  expired: 409,
  revoked: 409,
  superseded: 409,
  fenced: 409,
  conflict: 409,
  wrong_content: 409,
  too_large: 413,
  rate_limited: 429,
};

/** The answer to an error: a refusal's own words; of a fault only its code, so that nothing of the inside shows. */
export function answerError(error: unknown): {
  readonly status: 400 | 401 | 403 | 404 | 409 | 413 | 429 | 500 | 503;
  readonly body: { readonly error: { code: string; message: string; accepted?: string } };
  /** Seconds after which trying again may help. */
  readonly retryAfterS: number | null;
} {
  if (error instanceof Refusal) {
    const accepted = error.accepted === undefined ? {} : { accepted: error.accepted.slice(0, 1000) };
    return {
      status: STATUS[error.code] ?? 400,
      body: { error: { code: error.code, message: error.message.slice(0, 1000), ...accepted } },
      retryAfterS: null,
    };
  }
  if (error instanceof Fault && error.retryable) {
    return {
      status: 503,
      body: { error: { code: error.code, message: 'not now: try again' } },
      retryAfterS: Math.ceil((error.retryAfterMs ?? 1000) / 1000),
    };
  }
  return {
    status: 500,
    body: { error: { code: error instanceof Fault ? error.code : 'bug', message: 'this is our fault' } },
    retryAfterS: null,
  };
}
