/** What the demo came to, read from the server's own database and verified there. */
import { sql } from 'drizzle-orm';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { findRunOfPull } from '../../db/store/run.ts';
import type { Pull } from '../pull.ts';
import type { Stage } from './stage.ts';

/** The content of `result.json`; counts are integers, durations milliseconds by step. */
export interface Outcome {
  readonly run: string;
  readonly gate: { readonly conclusion: string; readonly reasons: readonly string[] };
  readonly checkRuns: readonly {
    readonly name: string;
    readonly sha: string;
    readonly conclusion: string | null;
    readonly title: string | null;
    readonly annotations: number;
  }[];
  readonly tickets: number;
  readonly findings: number;
  readonly rows: number;
  readonly ledger: { readonly verified: boolean };
  readonly durations: Readonly<Record<string, number>>;
}

/** Reads and verifies the run of a pull request. */
export async function outcomeOf(
  { gh, server, app }: Stage,
  pull: Pull,
  sha: string,
  durations: Readonly<Record<string, number>>,
): Promise<Outcome> {
  const { database } = server.deps;
  const installation = gh.world.installations.find((one) => one.app === app);
  const run = await findRunOfPull(database.db, {
    installationId: String(installation?.id),
    repositoryId: String(pull.repository.id),
    pull: String(pull.number),
  });
  if (run === null) throw new Error('the server has no run of this pull request');
  const verified = await verifyRun(server.deps, run, { full: true });
  const decided = verified.rows.filter((row) => row.kind === 'gate.decided').at(-1);
  const count = async (table: string): Promise<number> => {
    const found = await database.db.execute<{ n: number }>(
      sql`select count(*)::int as n from ${sql.identifier(table)} where run_id = ${run.id}`,
    );
    return found.rows[0]?.n ?? 0;
  };
  return {
    run: run.id,
    gate: {
      conclusion: gh.governing(pull.repository, sha, 'countersign', app)?.conclusion ?? 'none',
      reasons: decided?.kind === 'gate.decided' ? decided.data.reasons.map((reason) => reason.code) : [],
    },
    checkRuns: gh
      .checkRuns(pull.repository, sha)
      .map(({ name, headSha, conclusion, title, annotations }) => ({
        name,
        sha: headSha,
        conclusion,
        title,
        annotations: annotations.length,
      })),
    tickets: await count('ticket'),
    findings: await count('finding'),
    rows: verified.rows.length,
    ledger: { verified: verified.verdict.kind === 'intact' },
    durations,
  };
}
