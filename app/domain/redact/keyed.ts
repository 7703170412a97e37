/**
 * What is kept of a secret that was redacted (REV-8): a kind and a keyed hash, so that two places with
 * the same value can be told equal. Two keys, neither enough alone: the runner hashes under a salt that
 * it is told with its ticket, the server again under a key that leaves it never. Nobody who reads the
 * database can try out guesses, and the server never sees what a runner redacted. Pure.
 */
import { createHmac } from 'node:crypto';
import type { Redactor } from '../redact.ts';

/** Something redacted: `hash` is lower-case hex, on the way from a runner the inner one, in a row the sealed one. */
export interface Redacted {
  readonly kind: string;
  readonly hash: string;
}

/** Most entries that are kept of one place. */
export const MOST_REDACTED = 32;

/** The inner hash of a value under a repository's salt: HMAC-SHA256, white space left out since a value may come split over lines. */
export function innerHash(salt: string, value: string): string {
  return createHmac('sha256', salt)
    .update('countersign redacted 1\n')
    .update(value.replace(/\s+/g, '').toWellFormed(), 'utf8')
    .digest('hex');
}

/** What a redactor takes out of these texts, each value once, in order of kind and hash. */
export function redactedOf(redactor: Redactor, salt: string, texts: readonly (string | null)[]): Redacted[] {
  const found = texts.flatMap((text) =>
    text === null
      ? []
      : redactor
          .find(text)
          .map(({ start, end, kind }) => ({ kind, hash: innerHash(salt, text.slice(start, end)) })),
  );
  return distinctRedacted(found);
}

/** Each hash once, in a stable order, at most `MOST_REDACTED`. */
export function distinctRedacted(all: readonly Redacted[]): Redacted[] {
  const byHash = new Map(all.map((one) => [one.hash, one]));
  return [...byHash.values()]
    .sort((a, b) => (`${a.kind} ${a.hash}` < `${b.kind} ${b.hash}` ? -1 : 1))
    .slice(0, MOST_REDACTED);
}

/** The keys of one repository's redactions, as the signer lends them: the salt may be told, the sealing key may not. */
export interface RedactionKeys {
  /** Lower-case hex; told to runners that work tickets of the repository. */
  readonly salt: string;
  /** The hash that is stored of an inner one. */
  seal(inner: string): string;
}

/** What a row keeps, from inner hashes; an empty list is left out. */
export function sealedField(keys: RedactionKeys, inner: readonly Redacted[]): { redacted?: Redacted[] } {
  if (inner.length === 0) return {};
  return {
    redacted: distinctRedacted(
      inner.map(({ kind, hash }) => ({ kind: kind.slice(0, 60), hash: keys.seal(hash) })),
    ),
  };
}
