import type { OperationId } from '../operations.ts';
import type { World } from '../world.ts';
import { type Bearer, Refused } from './call.ts';

const HOUR = 3_600_000;
const MINUTE = 60_000;

/** One request that was answered; benches count them. */
export interface RequestRecord {
  readonly operation: OperationId | 'git' | 'graphql' | 'other';
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly installationId: number | null;
  /** Whether it counts against the content-creation limit. */
  readonly content: boolean;
  readonly body: unknown;
  readonly at: Date;
  readonly milliseconds: number;
}

/** GitHub's limits (facts/github.md §12). Headers always tell; refusals come only where `enforce` says so. */
export interface LimitSettings {
  /** Requests an hour for each installation. */
  primary: number;
  contentPerMinute: number;
  contentPerHour: number;
  enforce: { primary: boolean; content: boolean };
}

// Everything that makes something a person may be notified of. Token and redelivery calls make none.
const NOT_CONTENT = /^(apps\/|checks\/rerequest|actions\/(cancel|force))/;

/** Whether an operation creates content. */
export function createsContent(
  operation: OperationId | 'git' | 'graphql' | 'other',
  method: string,
): boolean {
  return (
    method !== 'GET' &&
    operation !== 'git' &&
    operation !== 'graphql' &&
    operation !== 'other' &&
    !NOT_CONTENT.test(operation)
  );
}

/** Counts requests, writes x-ratelimit-* headers, refuses where told to. */
export class Limits {
  readonly settings: LimitSettings = {
    primary: 5000,
    contentPerMinute: 80,
    contentPerHour: 500,
    enforce: { primary: false, content: false },
  };
  readonly #windows = new Map<string, { resetAt: number; used: number }>();
  readonly #content = new Map<string, number[]>();

  /** Takes one request from the caller's budget; throws 403 when a limit that is enforced is over. */
  take(world: World, bearer: Bearer, operation: OperationId, method: string): Record<string, string> {
    const key = keyOf(bearer);
    const now = world.now().getTime();
    let window = this.#windows.get(key);
    if (window === undefined || window.resetAt <= now) {
      window = { resetAt: now + HOUR, used: 0 };
      this.#windows.set(key, window);
    }
    if (operation !== 'rate-limit/get') window.used++;
    const headers = this.headers(world, bearer);
    const { enforce, primary } = this.settings;
    if (enforce.primary && window.used > primary)
      throw new Refused(403, `API rate limit exceeded for ${key}.`, { headers });
    if (!createsContent(operation, method)) return headers;
    const recent = (this.#content.get(key) ?? []).filter((at) => at > now - HOUR);
    const lastMinute = recent.filter((at) => at > now - MINUTE).length;
    const over =
      lastMinute >= this.settings.contentPerMinute || recent.length >= this.settings.contentPerHour;
    if (enforce.content && over)
      throw new Refused(
        403,
        'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
        { headers: { ...headers, 'retry-after': '60' } },
      );
    recent.push(now);
    this.#content.set(key, recent);
    return headers;
  }

  /** The x-ratelimit-* headers of a caller. */
  headers(world: World, bearer: Bearer): Record<string, string> {
    const state = this.state(world, bearer);
    return {
      'x-ratelimit-limit': String(state.limit),
      'x-ratelimit-remaining': String(state.remaining),
      'x-ratelimit-used': String(state.used),
      'x-ratelimit-reset': String(state.reset),
      'x-ratelimit-resource': 'core',
    };
  }

  /** A caller's budget as GET /rate_limit tells it. */
  state(world: World, bearer: Bearer): { limit: number; remaining: number; used: number; reset: number } {
    const now = world.now().getTime();
    const window = this.#windows.get(keyOf(bearer)) ?? { resetAt: now + HOUR, used: 0 };
    const { primary } = this.settings;
    return {
      limit: primary,
      used: window.used,
      remaining: Math.max(primary - window.used, 0),
      reset: Math.ceil(window.resetAt / 1000),
    };
  }
}

function keyOf(bearer: Bearer): string {
  if (bearer.kind === 'app') return `app ID ${bearer.app.id}`;
  if (bearer.kind === 'nobody') return '127.0.0.1';
  const { installation, user } = bearer.token;
  return installation === null ? `user ID ${user.id}` : `installation ID ${installation.id}`;
}
