/** The figures of a day as tables of a page. */
import { GROUPS, type Waits } from './measure.ts';

/** What one side came to, as plain data: sides are processes of their own. */
export interface SideFigures {
  readonly side: string;
  readonly tookMs: number;
  readonly lastMs: number;
  readonly dispatches: number;
  readonly jobs: number;
  readonly idleJobs: number;
  readonly lostJobs: number;
  readonly cancelledJobs: number;
  readonly runnerMinutes: number;
  readonly billedMinutes: number;
  readonly busyShare: number;
  /** Share of the slot time of a day that was used: of all tenants, and while the busiest one's dump lasted. */
  readonly slotShare: number;
  readonly ends: Readonly<Record<string, number>>;
  readonly counts: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
  readonly groups: readonly { readonly name: string; readonly waits: Waits; readonly spans: Waits }[];
}

const NAMES: Record<string, string> = {
  ours: 'Countersign',
  fifo: 'without fairness',
  alone: 'a runner a ticket',
};

/** The tables: what it cost, how long tickets and pull requests waited. */
export function tablesOf(sides: readonly SideFigures[]): string {
  const head = ['', ...sides.map(({ side }) => NAMES[side] ?? side)];
  const row = (name: string, cell: (one: SideFigures) => string | number) => [
    name,
    ...sides.map((one) => String(cell(one))),
  ];
  const cost = table(head, [
    row('dispatches', (one) => one.dispatches),
    row('jobs that started', (one) => one.jobs),
    row('… of which worked nothing', (one) => one.idleJobs),
    row('… lost, cancelled', (one) => `${one.lostJobs}, ${one.cancelledJobs}`),
    row('runner minutes', (one) => one.runnerMinutes),
    row('… as billed, a minute begun is a minute', (one) => one.billedMinutes),
    row('… in which a ticket was worked', (one) => `${Math.round(100 * one.busyShare)} %`),
    row('slot time used, of the models of all tenants', (one) => `${(100 * one.slotShare).toFixed(1)} %`),
    row('last ticket over at', (one) => `${(one.lastMs / 3_600_000).toFixed(1)} h`),
    row('ends', (one) =>
      Object.entries(one.ends)
        .map(([end, n]) => `${n} ${end}`)
        .join(', '),
    ),
    row('rules broken', (one) => one.violations.length),
  ]);
  const waits = table(
    [
      'wait of a ticket until its first lease, s',
      'tickets',
      ...sides.map(({ side }) => `${NAMES[side]}: p50 / p90 / p99`),
    ],
    GROUPS.map(([name], i) => [
      name,
      String(sides[0]?.groups[i]?.waits.n ?? 0),
      ...sides.map((one) => three(one.groups[i]?.waits)),
    ]),
  );
  const spans = table(
    [
      'pull request until its last ticket is over, s',
      'pull requests',
      ...sides.map(({ side }) => `${NAMES[side]}: p50 / p90 / p99`),
    ],
    GROUPS.map(([name], i) => [
      name,
      String(sides[0]?.groups[i]?.spans.n ?? 0),
      ...sides.map((one) => three(one.groups[i]?.spans)),
    ]),
  );
  return `${cost}\n\n${waits}\n\n${spans}`;
}

function three(waits: Waits | undefined): string {
  if (waits === undefined || waits.n === 0) return '–';
  return [waits.p50, waits.p90, waits.p99].map((one) => Math.round(one)).join(' / ');
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (i === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}
