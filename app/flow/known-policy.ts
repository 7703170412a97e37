/** Policies by their hash, parsed once: one that was parsed is the same for ever (RUN-8). */
import type { Reader } from '../../db/client.ts';
import { loadPolicy } from '../../db/store/policy.ts';
import { type Policy, parsePolicy } from '../domain/policy.ts';

const parsed = new Map<string, Policy>();
const KEPT = 100;

/** The policy of a hash; null where there is none, it is missing or damaged, or not valid. */
export async function knownPolicy(reader: Reader, hash: string | null): Promise<Policy | null> {
  if (hash === null) return null;
  const known = parsed.get(hash);
  if (known !== undefined) return known;
  const bytes = await loadPolicy(reader, hash);
  if (bytes === null) return null;
  const reading = parsePolicy(bytes);
  if (!reading.ok) return null;
  parsed.set(hash, reading.policy);
  const oldest = parsed.keys().next().value;
  if (parsed.size > KEPT && oldest !== undefined) parsed.delete(oldest);
  return reading.policy;
}
