/** What a failed model call means for the ticket (TKT-2): by status and error code, never by message text. */
import * as z from 'zod';
import type { Unavailable } from './reviewer.ts';

/** A provider's failure as the ticket records it. */
export type ProviderFailure = Readonly<{
  end: Extract<Unavailable, 'quota' | 'rate_limited' | 'provider_error' | 'too_large'>;
  detail: string;
  retryAfterMs: number | null;
  /** Whether the provider refused the form of the request: it may take another. */
  refusedForm: boolean;
}>;

const quotaCodes = new Set([
  'insufficient_quota',
  'billing_error',
  'billing_hard_limit_reached',
  'quota_exceeded',
]);
const sizeCodes = new Set(['context_length_exceeded', 'request_too_large', 'string_above_max_length']);
const body = z.looseObject({
  error: z.looseObject({ code: z.unknown().optional(), type: z.unknown().optional() }),
});
/** Longest wait that a provider is believed. */
const LONGEST_RETRY_MS = 24 * 3_600_000;

/** Classifies an HTTP failure; `status` undefined means that no answer came. */
export function providerFailure(of: {
  status: number | undefined;
  body: string | undefined;
  headers: Readonly<Record<string, string>> | undefined;
  now: Date;
}): ProviderFailure {
  const codes = codesOf(of.body);
  const retryAfterMs = retryAfter(of.headers, of.now);
  const failure = (end: ProviderFailure['end'], refusedForm = false): ProviderFailure => ({
    end,
    // codes are the provider's words of a few characters; its message may echo the prompt
    detail: `status ${of.status ?? 'none'}${codes.length === 0 ? '' : ` ${codes.join(' ')}`}`.slice(0, 200),
    retryAfterMs,
    refusedForm,
  });
  if (codes.some((code) => quotaCodes.has(code))) return failure('quota');
  if (of.status !== 402 && of.status !== 429 && codes.some((code) => sizeCodes.has(code)))
    return failure('too_large');
  return failure(endOfStatus(of.status ?? null), of.status === 400 || of.status === 422);
}

/** The end that an HTTP status of a provider alone stands for; null: no answer came. */
export function endOfStatus(status: number | null): ProviderFailure['end'] {
  if (status === 402) return 'quota';
  if (status === 429) return 'rate_limited';
  return status === 413 ? 'too_large' : 'provider_error';
}

function codesOf(text: string | undefined): string[] {
  try {
    const { error } = body.parse(JSON.parse(text ?? ''));
    return [error.type, error.code].filter(
      (code): code is string => typeof code === 'string' && /^[\w.-]{1,60}$/.test(code),
    );
  } catch {
    return [];
  }
}

function retryAfter(headers: Readonly<Record<string, string>> | undefined, now: Date): number | null {
  const exact = Number(headers?.['retry-after-ms'] ?? Number.NaN);
  const given = headers?.['retry-after'];
  const seconds = Number(given ?? Number.NaN);
  const date = given === undefined ? Number.NaN : Date.parse(given) - now.getTime();
  const ms = Number.isFinite(exact) ? exact : Number.isFinite(seconds) ? seconds * 1000 : date;
  return Number.isFinite(ms) && ms >= 0 ? Math.min(Math.round(ms), LONGEST_RETRY_MS) : null;
}
