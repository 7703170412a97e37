import { setTimeout as delay } from 'node:timers/promises';

/** Waits so many milliseconds, or until the signal says stop; never throws. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}
