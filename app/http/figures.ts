/** Gauges of the queue, its runners, providers and spending (OPS-7): one statement however many a scrape asks. */
import { Gauge, type Registry } from 'prom-client';
import type { Figures } from '../flow/read-figures.ts';

interface Shown {
  readonly name: string;
  readonly help: string;
  /** The one label there is, and its values: closed sets (the pools are the operator's own), never a run, a repository or an installation. */
  readonly label?: string;
  readonly read: (figures: Figures) => number | readonly (readonly [value: string, n: number])[];
}

const MICRO = 1_000_000;
const OPEN = ['intended', 'sent', 'ambiguous', 'answered'];
const ENDED = ['done', 'missed', 'failed'];
const byState = (states: readonly string[], counts: Readonly<Record<string, number>>) =>
  states.map((state) => [state, counts[state] ?? 0] as const);

/** Every gauge of the queue, in the order of docs/operations.md. */
export const FIGURES: readonly Shown[] = [
  {
    name: 'countersign_tickets',
    help: 'Tickets by state: ready for a lease, waiting behind those, held for another, leased',
    label: 'state',
    read: ({ tickets }) => Object.entries(tickets),
  },
  {
    name: 'countersign_queue_age_seconds',
    help: 'Age of the oldest ticket that is ready for a lease; 0 without one',
    read: (figures) => figures.oldestReadyS,
  },
  { name: 'countersign_leases', help: 'Leases that are live', read: (figures) => figures.leases },
  {
    name: 'countersign_runners',
    help: 'Runners heard of within a minute',
    read: (figures) => figures.runners,
  },
  {
    name: 'countersign_resident_runners',
    help: 'Live runners of each resident pool',
    label: 'pool',
    read: ({ residents }) => residents.map(({ pool, runners }) => [pool, runners]),
  },
  {
    name: 'countersign_resident_capacity',
    help: 'Tickets that they can work at once',
    label: 'pool',
    read: ({ residents }) => residents.map(({ pool, capacity }) => [pool, capacity]),
  },
  {
    name: 'countersign_resident_leased',
    help: 'Tickets that they work now',
    label: 'pool',
    read: ({ residents }) => residents.map(({ pool, leased }) => [pool, leased]),
  },
  { name: 'countersign_sessions', help: 'Sessions under way', read: (figures) => figures.sessions },
  {
    name: 'countersign_admissions_waiting',
    help: 'Sessions that wait for a slot of their provider',
    read: (figures) => figures.admissionsWaiting,
  },
  {
    name: 'countersign_admission_age_seconds',
    help: 'Age of the oldest session that waits for a slot; 0 without one',
    read: (figures) => figures.oldestAdmissionS,
  },
  {
    name: 'countersign_slots_busy',
    help: 'Slots that are taken, by kind of provider',
    label: 'provider',
    read: ({ slots }) => slots.map(({ provider, busy }) => [provider, busy]),
  },
  {
    name: 'countersign_slots_free',
    help: 'Slots that are free, by kind of provider',
    label: 'provider',
    read: ({ slots }) => slots.map(({ provider, free }) => [provider, free]),
  },
  {
    name: 'countersign_providers_settled',
    help: 'Providers of installations that are out of service, by kind',
    label: 'provider',
    read: ({ settledProviders }) => settledProviders.map(({ provider, n }) => [provider, n]),
  },
  {
    name: 'countersign_pools_settled',
    help: 'Pools that are out of service',
    read: (figures) => figures.settledPools,
  },
  {
    name: 'countersign_dispatches_open',
    help: 'Dispatches that are not over, by state',
    label: 'state',
    read: ({ dispatchesOpen }) => byState(OPEN, dispatchesOpen),
  },
  {
    name: 'countersign_dispatches_ended',
    help: 'Dispatches that ended within an hour, by state',
    label: 'state',
    read: ({ dispatchesEnded }) => byState(ENDED, dispatchesEnded),
  },
  {
    name: 'countersign_spend_sessions',
    help: 'Sessions of models that were booked this month of UTC',
    read: ({ spend }) => spend.sessions,
  },
  {
    name: 'countersign_spend_tokens',
    help: 'Tokens that were booked, or are reserved under a limit, this month of UTC',
    read: ({ spend }) => spend.tokens,
  },
  {
    name: 'countersign_spend_usd',
    help: 'US dollars of the same, by the prices of the policies or what runners say',
    read: ({ spend }) => spend.micro / MICRO,
  },
  {
    name: 'countersign_reserved_tokens',
    help: 'Tokens that sessions under way have reserved',
    read: (figures) => figures.reservedTokens,
  },
  {
    name: 'countersign_kill_switches',
    help: 'Kill switches that are on, the whole app one of them',
    read: (figures) => figures.killSwitches,
  },
];

/** How long one reading serves, in ms: a scrape asks for all gauges at once. */
const FRESH_MS = 1_000;

/** Registers the gauges; where the database does not answer they are `NaN`, and those with labels left out. */
export function registerFigures(registry: Registry, read: () => Promise<Figures>): void {
  let last: { readonly at: number; readonly figures: Promise<Figures | null> } | null = null;
  const fresh = () => {
    const now = performance.now();
    if (last === null || now - last.at > FRESH_MS) last = { at: now, figures: read().catch(() => null) };
    return last.figures;
  };
  for (const { name, help, label, read: shown } of FIGURES) {
    new Gauge({
      name,
      help,
      labelNames: label === undefined ? [] : [label],
      registers: [registry],
      async collect() {
        this.reset();
        const figures = await fresh();
        if (figures === null) {
          if (label === undefined) this.set(Number.NaN);
          return;
        }
        const value = shown(figures);
        if (typeof value === 'number') this.set(value);
        else for (const [of, n] of value) this.set({ [label ?? '']: of }, n);
      },
    });
  }
}
