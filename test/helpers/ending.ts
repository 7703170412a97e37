/** What a pull request came to, without what differs by chance (ids, times, who came first): two endings that are the same story are equal. */
import { showPath } from '../../app/domain/path.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { KilledStage } from './killed-stage.ts';

/** What an ending is read from. */
export type Ended = Pick<KilledStage, 'gh' | 'app' | 'run' | 'rows' | 'query' | 'gate'>;

/** One ending, to be compared as a whole. */
export interface Ending {
  readonly gate: { readonly conclusion: string; readonly reasons: readonly string[] };
  /** Check runs at GitHub by head (0 is the first), name and n, each with its conclusion and annotations. */
  readonly checks: readonly string[];
  readonly tickets: Readonly<Record<string, number>>;
  /** Rows by kind and subject, sorted; of the gate its verdicts, since how often it counts on the way is a matter of time. */
  readonly rows: readonly string[];
  readonly deliveries: Readonly<Record<string, number>>;
  /** What the app said in comments, one entry a comment, without what is said of the moment. */
  readonly comments: readonly string[];
}

type Rows = Awaited<ReturnType<Ended['rows']>>;

/** The ending of a pull request whose heads were these. Throws when the ledger does not verify or something contradicts it. */
export async function endingOf(stage: Ended, pull: Pull, heads: readonly string[]): Promise<Ending> {
  const rows = await stage.rows(pull);
  const verdicts = rows.filter((row) => row.kind === 'gate.decided');
  const last = verdicts.at(-1)?.data;
  const doubled = verdicts.filter((row, i) => row.data.digest === verdicts[i - 1]?.data.digest);
  if (doubled.length > 0) throw new Error(`the same verdict twice: rows ${doubled.map((row) => row.seq)}`);
  const run = await stage.run(pull);
  const tickets = await stage.query<{ state: string; n: number }>(
    'select state, count(*)::int as n from ticket where run_id = $1 group by state',
    [run.id],
  );
  // with why it failed: a round of a thousand is not met again soon
  const deliveries = await stage.query<{ state: string; n: number }>(
    `select concat_ws(' ', state, case when state = 'failed' then event || ' ' || error end) as state, count(*)::int as n
     from delivery where repository_id = $1 group by 1`,
    [String(pull.repository.id)],
  );
  // findings are numbered in the order of their results, which is a matter of time
  const numbers = new Map(
    rows.flatMap((row) =>
      row.kind === 'finding.raised'
        ? [[row.data.finding, `${showPath(row.data.path)}:${row.data.start_line}`]]
        : [],
    ),
  );
  const gate = stage.gate(pull);
  const shown = gate?.conclusion ?? gate?.status ?? 'none';
  if (shown !== last?.conclusion)
    throw new Error(`GitHub shows ${shown}, the ledger says ${last?.conclusion}`);
  return {
    gate: {
      conclusion: last?.conclusion ?? 'none',
      reasons: (last?.reasons ?? []).map((one) => `${one.code} ${one.count}`).sort(),
    },
    checks: await checksOf(stage, pull, heads),
    tickets: Object.fromEntries(tickets.map((one) => [one.state, one.n])),
    rows: rows.flatMap((row) => subjectOf(row, heads, numbers)).sort(),
    deliveries: Object.fromEntries(
      deliveries
        .filter((one) => one.state !== 'done' && one.state !== 'ignored')
        .map((one) => [one.state, one.n]),
    ),
    comments: stage.gh
      .comments(pull)
      .filter((one) => one.viaApp === stage.app)
      .map((one) => timeless(one.body)),
  };
}

/** A comment without ids, numbers and times: what was answered to what. */
function timeless(body: string): string {
  return body
    .replaceAll(/[0-9a-f]{7,}|\d+|round-\w+|away-\w+|unheard|undisturbed/g, '#')
    .replaceAll(/cs:\S+/g, '');
}

/** GitHub's check runs of ours, each of which must be one that we know, under its own n. */
async function checksOf(stage: Ended, pull: Pull, heads: readonly string[]): Promise<string[]> {
  const known = await stage.query<{ sha: string; name: string; n: number; id: string; conclusion: string }>(
    'select sha, name, n, github_id::text as id, conclusion from check_run where repository_id = $1',
    [String(pull.repository.id)],
  );
  const shown = heads.flatMap((sha) =>
    stage.gh.checkRuns(pull.repository, sha).filter((one) => one.app === stage.app),
  );
  const lines = shown.map((one) => {
    const ours = known.find((row) => row.id === String(one.id));
    if (ours === undefined) throw new Error(`GitHub has a check run ${one.externalId} that we do not know`);
    if (ours.conclusion !== one.conclusion)
      throw new Error(`${one.externalId} is ${one.conclusion} at GitHub and ${ours.conclusion} here`);
    const places = one.annotations.map((note) => `${note.path}:${note.start_line}`).sort();
    return `${heads.indexOf(one.headSha)} ${one.name} ${ours.n} ${one.conclusion} ${places.join(' ')}`;
  });
  if (known.length !== shown.length)
    throw new Error(`${known.length} check runs here, ${shown.length} at GitHub`);
  return lines.sort();
}

function subjectOf(
  row: Rows[number],
  heads: readonly string[],
  numbers: ReadonlyMap<number, string>,
): string[] {
  const head = (sha: string) => `head ${heads.indexOf(sha)}`;
  const of = (...parts: (string | number | boolean | null)[]) => [[row.kind, ...parts].join(' ')];
  switch (row.kind) {
    case 'gate.decided': {
      const { conclusion, reasons } = row.data;
      // how often it says that reviews are pending, and how many, is a matter of time
      if (conclusion === 'in_progress') return [];
      return of(head(row.data.head), conclusion, ...reasons.map((one) => one.code));
    }
    case 'run.head':
      return of(head(row.data.head), row.data.files, row.data.commits);
    case 'run.policy':
      return of(row.data.state);
    case 'run.allowed':
      return of(row.data.rule);
    case 'block.opened':
      return of(row.data.block, row.data.attempt);
    case 'block.claimed':
      return of(row.data.block, showPath(row.data.path), row.data.entry);
    case 'command.refused':
      return of(row.data.command, row.data.code);
    case 'human.acted':
      return of(row.data.act, head(row.data.head), ...row.data.paths.map((one) => showPath(one)));
    case 'block.contributed':
      return of(row.data.block, row.data.to, ...row.data.paths.map((one) => showPath(one)));
    case 'decision':
      return of(
        head(row.data.head),
        ...row.data.paths
          .map((one) => `${showPath(one.path)}:${one.level}:${one.block}:${one.ownership}`)
          .sort(),
      );
    case 'ticket.ended':
      return of(showPath(row.data.path), row.data.block, row.data.round, row.data.end, row.data.final);
    case 'finding.raised':
      return of(showPath(row.data.path), row.data.start_line, row.data.severity, row.data.state);
    case 'finding.ended':
      return of(numbers.get(row.data.finding) ?? 'unknown', row.data.state, row.data.reason);
    case 'finding.delivered':
      return of(head(row.data.head), ...row.data.findings.map((one) => numbers.get(one) ?? 'unknown').sort());
    default:
      return of(row.block);
  }
}
