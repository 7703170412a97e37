/** The heartbeats of a lease (ACT-5): on a timer of their own, whatever the work does. */
import type { Answer } from './client.ts';

/** The heartbeats of one lease. */
export type Heart = Readonly<{ stop: () => void; leftMs: () => number }>;

/** Beats every `heartbeat_ms`; a 409 means that the lease is lost, silence only when it must be over. */
export function startHeart<C extends string>(of: {
  lease: Readonly<{ expires_at: string; heartbeat_ms: number }>;
  beat: () => Promise<Answer<Readonly<{ expires_at: string; control: C }>>>;
  onControl: (control: C) => void;
  /** Gets why, in words. */
  onLost: (why: string) => void;
}): Heart {
  const { lease } = of;
  let endsAt = performance.now() + lifeOf(lease.expires_at, lease.heartbeat_ms);
  let busy = false;
  let stopped = false;
  const beat = async (): Promise<void> => {
    if (busy || stopped) return;
    busy = true;
    try {
      const answer = await of.beat();
      if (stopped) return;
      if (answer.ok) {
        endsAt = performance.now() + lifeOf(answer.value.expires_at, lease.heartbeat_ms);
        of.onControl(answer.value.control);
      } else if (answer.status === 409 || answer.status === 403 || answer.status === 404)
        of.onLost(answer.code);
    } catch {
      if (!stopped && performance.now() > endsAt) of.onLost('no heartbeat got through in its time');
    } finally {
      busy = false;
    }
  };
  const timer = setInterval(() => void beat(), Math.min(Math.max(50, lease.heartbeat_ms), 60_000));
  return {
    stop() {
      stopped = true;
      clearInterval(timer);
    },
    leftMs: () => Math.max(0, endsAt - performance.now()),
  };
}

const LONGEST_LIFE_MS = 3_600_000;

/** How long a lease lives from now. Clocks differ: an expiry that makes no sense here counts as four heartbeats. */
function lifeOf(expiresAt: string, heartbeatMs: number): number {
  const left = Date.parse(expiresAt) - Date.now();
  return left > 0 && left <= LONGEST_LIFE_MS ? left : Math.max(4 * heartbeatMs, 10_000);
}
