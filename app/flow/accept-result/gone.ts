/**
 * Which findings' anchored code is gone from the content that was reviewed (RND-1). The server looks
 * itself: a runner that says so could otherwise clear what an honest one found.
 *
 * Reads: findings, the tickets that raised them, and their texts. Calls: git, only where a model
 * proposes `fixed` or a command is silent under another policy entry. May fail with:
 * `git_unavailable`, `github_unavailable` (retryable): the runner submits again within its lease.
 */

import { listOpenFindings } from '../../../db/store/finding.ts';
import { findRepository } from '../../../db/store/installation.ts';
import { findRun } from '../../../db/store/run.ts';
import { readTexts } from '../../../db/store/text.ts';
import type { Ticket } from '../../../db/store/ticket.ts';
import { ground, groundingText } from '../../domain/finding.ts';
import { encodePath } from '../../domain/path.ts';
import { redactor } from '../../domain/redact.ts';
import { entryChanged } from '../../domain/result.ts';
import { Fault } from '../../errors.ts';
import type { TicketResult } from '../../protocol/runner.ts';
import { cloneUrl } from '../clone-url.ts';
import type { Deps } from '../deps.ts';
import { withEntries } from './entries.ts';

/** A declared value that the runner masked: the server does not know it, so it masks none in the file. */
const MASK = '[redacted:secret]';
/** How a runner ends a quote that was too long; the mark is not in the file. */
const CUT = /[\u2026\ufffd]+$/u;

/**
 * Numbers of the open findings whose quote is nowhere in the new content, as far as anything hangs on
 * it: a model calls them fixed, or the command of that name, changed since, does not say them again.
 */
export async function goneFindings(
  deps: Deps,
  ticket: Ticket,
  result: TicketResult,
): Promise<ReadonlySet<number>> {
  const { spec } = ticket;
  const proposed = new Set(
    (result.answers ?? []).filter((one) => one.proposal === 'fixed').map((one) => one.finding),
  );
  const commands = spec.reviewers.some((one) => one.uses === 'command');
  if (result.end !== 'reviewed' || (proposed.size === 0 && !commands)) return new Set();
  const { db } = deps.database;
  const raised = new Set(result.findings.map((one) => one.fingerprint));
  const known = (await listOpenFindings(db, ticket.runId, encodePath(ticket.path))).filter(
    (one) => spec.blob[one.side] !== one.blob && !raised.has(one.fingerprint),
  );
  const open = (await withEntries(db, known)).filter((one) =>
    one.command ? entryChanged(spec, one) : proposed.has(one.number),
  );
  if (open.length === 0) return new Set();
  const oids = [...new Set(open.flatMap((one) => ticket.spec.blob[one.side] ?? []))];
  const blobs = await readBlobs(deps, ticket, oids);
  const quotes = await readTexts(
    db,
    open.map((one) => one.quote),
  );
  const files = new Map(
    [...blobs].map(([oid, bytes]) => {
      const text = bytes.toString('utf8');
      return [oid, groundingText(redactor().learn(text).redact(text))];
    }),
  );
  return new Set(
    open
      .filter((one) => {
        const oid = ticket.spec.blob[one.side];
        if (oid === null) return true;
        const file = files.get(oid);
        const quote = quotes.get(one.quote);
        // an erased text or a blob that cannot be had proves nothing
        if (file === undefined || typeof quote !== 'string') return false;
        // neither does a quote of nothing, or one with a value masked that only the runner knew
        const whole = quote.replace(CUT, '').trim();
        if (whole === '' || whole.includes(MASK)) return false;
        return !ground(file, { quote: whole, startLine: 1, endLine: file.lines }).grounded;
      })
      .map((one) => one.number),
  );
}

async function readBlobs(deps: Deps, ticket: Ticket, oids: readonly string[]): Promise<Map<string, Buffer>> {
  if (oids.length === 0) return new Map();
  const { db } = deps.database;
  const run = await findRun(db, ticket.runId);
  const repository = await findRepository(db, ticket.repositoryId);
  if (run === null || repository === null)
    throw new Fault('run_missing', 'the run or repository of the ticket is not known');
  const github = await deps.github.installation(run.installationId);
  const token = await github.readToken(repository);
  const url = cloneUrl(deps.settings, repository);
  return deps.git.readBlobs(repository, url, token, oids);
}
