/** What a person wrote in a command, as it may be kept (REV-8). */

import { type Redacted, redactedOf, sealedField } from '../../domain/redact/keyed.ts';
import { redactor } from '../../domain/redact.ts';
import { clip } from '../../domain/result.ts';
import type { Given } from './given.ts';

/** Most bytes that are kept of it: as much as a reviewer is shown of an answer. */
const MOST_BYTES = 4000;

/** The text without its secrets, cut, and what was taken out as the row keeps it. */
export function keptText(
  { deps, unit }: Given,
  said: string,
): { readonly text: string; readonly redacted: { redacted?: Redacted[] } } {
  const redact = redactor();
  const keys = deps.signer.redactionKeys(unit.run.installationId, unit.run.repositoryId);
  return {
    text: clip(redact.redact(said), MOST_BYTES),
    redacted: sealedField(keys, redactedOf(redact, keys.salt, [said])),
  };
}
