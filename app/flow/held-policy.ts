/** A policy's bytes as the settings of their installation hold them (POL-2): what every later step reads. */
import type { Reader } from '../../db/client.ts';
import { settingsOf } from '../../db/store/setting.ts';
import { type HeldPolicy, holdPolicy } from '../domain/setting/hold.ts';

/** The bytes that count, and which keys the settings hold. */
export async function heldPolicy(
  reader: Reader,
  installationId: string,
  file: Uint8Array,
): Promise<HeldPolicy> {
  const settings = await settingsOf(reader, installationId);
  return holdPolicy(file, new Map([...settings].map(([key, { value }]) => [key, value])));
}
