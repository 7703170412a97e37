/**
 * What comes in on a day: tenants of very different size, their pull requests, and the weather. All of it
 * follows from the seed before anything runs, so that every side gets the very same day.
 */
import { logNormal, pick, stream, zipf } from './random.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** How long a day of arrivals is. */
export const DAY_MS = 24 * HOUR;

/** By how much a tenant asks for on its day, what it dumps at once left out. */
export type TenantClass = 'small' | 'medium' | 'large';

/** An installation. */
export interface Tenant {
  readonly id: string;
  readonly account: string;
  readonly owner: string;
  readonly class: TenantClass;
  readonly repositories: readonly string[];
  /** Slots of each model provider: what an installation has, or raised where much is reviewed. */
  readonly slots: number;
  /** Jobs that GitHub runs at a time for the account. */
  readonly jobs: number;
  /** It dumps thousands of tickets at once. */
  readonly noisy: boolean;
}

/** One file to review. */
export interface Work {
  readonly provider: 'command' | 'anthropic' | 'openai';
  /** How long the review takes when its provider is well. */
  readonly ms: number;
  /** Ends every runner that touches it. */
  readonly poison: boolean;
}

/** A pull request as it arrives. */
export interface Arrival {
  readonly atMs: number;
  readonly tenant: Tenant;
  readonly repository: string;
  readonly kind: 'ordinary' | 'dump';
  readonly files: readonly Work[];
}

/** Something that goes wrong for a while, for the tenants it names (null: everybody). */
export interface Weather {
  readonly what: 'quota' | 'slow' | 'actions';
  readonly fromMs: number;
  readonly toMs: number;
  readonly provider: string | null;
  readonly tenants: ReadonlySet<string> | null;
}

/** A day. */
export interface Trace {
  readonly seed: number;
  readonly tenants: readonly Tenant[];
  readonly arrivals: readonly Arrival[];
  readonly weather: readonly Weather[];
  readonly tickets: number;
}

/** How much of a day: 1 is 10,000 repositories and 100,000 tickets. */
export interface TraceOptions {
  readonly seed: number;
  readonly scale: number;
  /** The day's hours; fewer of them have the same in less time. */
  readonly hours?: number;
  /** How many times as much is dumped: a small scale makes small dumps. */
  readonly dumps?: number;
}

/** Hands out what a tenant has by its class: an account's plan at GitHub, and slots raised by its admin. */
const PLANS: Record<TenantClass, { readonly slots: number; readonly jobs: number }> = {
  small: { slots: 4, jobs: 20 },
  medium: { slots: 8, jobs: 40 },
  large: { slots: 48, jobs: 500 },
};
/** Share of the day's tickets that comes in dumps. */
const DUMPED = 0.15;
const REPOSITORIES = 10_000;
const TENANTS = 1_500;
const TICKETS = 100_000;

/** Arrivals over the hours, in parts: offices of three continents. */
const HOURS = [2, 2, 2, 2, 3, 3, 4, 5, 7, 9, 10, 9, 8, 8, 9, 10, 9, 8, 6, 5, 4, 4, 3, 2];

/** The day of a seed. */
export function traceOf({ seed, scale, hours = 24, dumps = 1 }: TraceOptions): Trace {
  const { arrivals, weather, ...day } = wholeDay(seed, scale, dumps);
  const at = (ms: number) => Math.floor((ms * hours) / 24);
  return {
    ...day,
    arrivals: arrivals.map((one) => ({ ...one, atMs: at(one.atMs) })),
    weather: weather.map((one) => ({ ...one, fromMs: at(one.fromMs), toMs: at(one.toMs) })),
  };
}

function wholeDay(seed: number, scale: number, times: number): Trace {
  const random = stream(seed);
  const tenants = tenantsOf(scale);
  const total = Math.round(TICKETS * scale);
  const places = tenants.flatMap((tenant) =>
    tenant.repositories.map((repository) => ({ tenant, repository, key: random() })),
  );
  // which repositories are busy has nothing to do with whose they are
  places.sort((one, other) => one.key - other.key);
  const cumulated = cumulate(zipf(places.length, 0.6));
  const arrivals: Arrival[] = [];
  let made = 0;
  const add = (tenant: Tenant, repository: string, atMs: number) => {
    const size = Math.min(60, Math.max(1, Math.round(logNormal(random(), random(), 4, 0.9))));
    const files = Array.from({ length: size }, () => work(random));
    arrivals.push({ atMs, tenant, repository, kind: 'ordinary', files });
    made += size;
  };
  // people go on working beside a dump: in the same repository, and in the others of the tenant
  for (const tenant of tenants.filter((one) => one.noisy))
    for (let n = Math.ceil(120 * Math.sqrt(scale)); n > 0; n--) {
      const at = n % 2 === 0 ? 0 : Math.floor(random() * tenant.repositories.length);
      add(tenant, tenant.repositories[at] as string, Math.floor((8 + 12 * random()) * HOUR));
    }
  while (made < total * (1 - DUMPED)) {
    const at = places[pick(cumulated, random())] as (typeof places)[number];
    add(at.tenant, at.repository, momentOf(random));
  }
  arrivals.push(...dumps(tenants, total * DUMPED * times, random));
  poison(arrivals, random);
  arrivals.sort((a, b) => a.atMs - b.atMs);
  return {
    seed,
    tenants,
    arrivals,
    weather: weatherOf(tenants, random),
    tickets: arrivals.reduce((sum, one) => sum + one.files.length, 0),
  };
}

function tenantsOf(scale: number): Tenant[] {
  const repositories = Math.max(20, Math.round(REPOSITORIES * scale));
  const n = Math.max(6, Math.round(TENANTS * scale));
  const shares = zipf(n, 0.9);
  let next = 0;
  return shares.map((share, i) => {
    const count = Math.max(1, Math.round(share * (repositories - n)) + 1);
    const size: TenantClass = i < Math.max(2, n / 100) ? 'large' : i < n / 10 ? 'medium' : 'small';
    const names = Array.from({ length: count }, () => String(70_000_000 + next++));
    return {
      id: String(5_000_000 + i),
      account: String(9_000_000 + i),
      owner: `tenant-${i}`,
      class: size,
      repositories: names,
      ...PLANS[size],
      // one of each class, and another one where there are many
      noisy: i === 1 || i === Math.max(2, Math.floor(n / 20)) || i === n - 2,
    };
  });
}

function cumulate(shares: readonly number[]): number[] {
  let sum = 0;
  return shares.map((one) => {
    sum += one;
    return sum;
  });
}

const HOURLY = cumulate(HOURS.map((one) => one / HOURS.reduce((a, b) => a + b, 0)));

function momentOf(random: () => number): number {
  return Math.floor((pick(HOURLY, random()) + random()) * HOUR);
}

/** Three tickets in ten are a linter's; the others are divided between two models. */
function work(random: () => number): Work {
  const kind = random();
  if (kind < 0.3)
    return { provider: 'command', ms: clamp(logNormal(random(), random(), 4_000, 0.7)), poison: false };
  const provider = kind < 0.65 ? 'anthropic' : 'openai';
  return { provider, ms: clamp(logNormal(random(), random(), 24_000, 0.7)), poison: false };
}

const clamp = (ms: number) => Math.round(Math.min(Math.max(ms, 500), 280_000));

/**
 * Each noisy tenant dumps a third: half as one pull request of many files (a rewrite of everything), half as
 * many pull requests of a bot at once, in one repository where small ones go on coming.
 */
function dumps(tenants: readonly Tenant[], total: number, random: () => number): Arrival[] {
  const noisy = tenants.filter((one) => one.noisy);
  return noisy.flatMap((tenant, i) => {
    const each = total / noisy.length;
    const repository = tenant.repositories[0] as string;
    const base = { tenant, repository, kind: 'dump' as const };
    const rewrite = Math.min(3_000, Math.round(each / 2));
    const out: Arrival[] = [
      {
        ...base,
        atMs: (9 + i) * HOUR + Math.floor(random() * 10 * MINUTE),
        files: Array.from({ length: rewrite }, () => work(random)),
      },
    ];
    for (let left = Math.round(each - rewrite); left > 0; left -= 10)
      out.push({
        ...base,
        atMs: (14 + i) * HOUR + Math.floor(random() * 2 * MINUTE),
        files: Array.from({ length: Math.min(10, left) }, () => work(random)),
      });
    return out;
  });
}

/** One file in thirty thousand, but at least one, ends whoever reviews it (TKT-6). */
function poison(arrivals: Arrival[], random: () => number): void {
  const small = arrivals.flatMap((one, i) => (one.kind === 'ordinary' && one.files.length > 1 ? [i] : []));
  const n = Math.max(1, Math.round(arrivals.reduce((sum, one) => sum + one.files.length, 0) / 30_000));
  for (let k = 0; k < n; k++) {
    const i = small[Math.floor(random() * small.length)] as number;
    const one = arrivals[i] as Arrival;
    arrivals[i] = { ...one, files: one.files.map((file, j) => (j === 0 ? { ...file, poison: true } : file)) };
  }
}

/** A quota storm for a tenth of the tenants with the largest two, a slow provider, an hour of lost runners. */
function weatherOf(tenants: readonly Tenant[], random: () => number): Weather[] {
  const struck = new Set(tenants.filter((_, i) => i < 2 || random() < 0.1).map((one) => one.id));
  return [
    { what: 'quota', fromMs: 10 * HOUR, toMs: 10.7 * HOUR, provider: 'anthropic', tenants: struck },
    { what: 'actions', fromMs: 12 * HOUR, toMs: 12.5 * HOUR, provider: null, tenants: null },
    { what: 'slow', fromMs: 15 * HOUR, toMs: 17 * HOUR, provider: 'openai', tenants: null },
    { what: 'quota', fromMs: 20 * HOUR, toMs: 20.5 * HOUR, provider: 'openai', tenants: struck },
  ];
}
