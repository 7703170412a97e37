/** Which suggestions of a head go into the one review of ours, and which are shown in the summary instead (PUB-5). */
import type { CheckUnit } from '../../../db/store/check.ts';
import type { Repository } from '../../../db/store/installation.ts';
import { findRemark, type StoredRemark } from '../../../db/store/remark.ts';
import { pathKey } from '../../domain/path.ts';
import { redactor } from '../../domain/redact.ts';
import type { FindingFact } from '../../domain/run-state/state.ts';
import { type DiffLines, diffLines, placeSuggestion, suggestionComment } from '../../domain/suggestion.ts';
import type { ListedSuggestion } from '../../domain/summary/findings.ts';
import { Fault } from '../../errors.ts';
import { cloneUrl } from '../clone-url.ts';
import type { Deps } from '../deps.ts';
import type { Judged } from '../judge-run.ts';
import { textsOf } from './want-gate.ts';

/** A comment to post. */
export interface PlannedRemark {
  readonly number: number;
  readonly path: string;
  readonly startLine: number;
  readonly endLine: number;
  readonly body: string;
}

/** The review as it should be; `unread` where its lines could not be read now. */
export interface Remarks {
  readonly pull: string;
  readonly state: 'planned' | 'unread' | StoredRemark['state'];
  readonly comments: readonly PlannedRemark[];
  /** How often it was tried. */
  readonly attempts: number;
  /** Suggestions that are in no comment, for the summary. */
  readonly listed: readonly ListedSuggestion[];
}

/** Most comments of a review: more are slow to make, and to read (facts/github.md §13). */
const MOST_COMMENTS = 30;

/** The suggestions of open findings; null where the policy wants no comments, or none has one. */
export async function wantRemarks(
  deps: Deps,
  unit: CheckUnit,
  repository: Repository,
  { run, policy, state }: Judged,
  open: readonly FindingFact[],
): Promise<Remarks | null> {
  const { pull } = run;
  const suggesting = open.filter((finding) => finding.suggestion !== null);
  if (policy?.publish.comments !== 'review' || pull === null || suggesting.length === 0) return null;
  const stored = await findRemark(deps.database.db, { repositoryId: unit.repositoryId, pull, sha: unit.sha });
  const texts = await textsOf(
    deps,
    suggesting.flatMap((one) => [one.title, one.body, one.quote, one.suggestion ?? '']),
  );
  const listed = (finding: FindingFact, reason: string): ListedSuggestion => ({
    number: finding.number,
    path: finding.path,
    line: finding.startLine,
    suggestion: texts.get(finding.suggestion ?? '') ?? null,
    reason,
  });
  if (stored !== null && stored.state !== 'intended') {
    const reason = stored.state === 'refused' ? 'GitHub refused the review' : 'in no comment of this head';
    const rest = suggesting.filter((finding) => !stored.findings.includes(finding.number));
    return {
      pull,
      state: stored.state,
      attempts: 0,
      comments: [],
      listed: rest.map((one) => listed(one, reason)),
    };
  }
  const fresh = suggesting.filter(
    (one) =>
      one.side === 'head' && one.blob !== null && state.files.get(pathKey(one.path))?.blob.head === one.blob,
  );
  let sight: Sight;
  try {
    sight = await look(deps, repository, run.installationId, pull, fresh);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    deps.log.warn({ run: run.id, code: error.code }, 'publish-checks.suggestions-unread');
    return { pull, state: 'unread', attempts: 0, comments: [], listed: [] };
  }
  const { redact } = redactor();
  const comments: PlannedRemark[] = [];
  const rest: ListedSuggestion[] = [];
  for (const finding of suggesting) {
    const { path, number, severity, startLine, endLine } = finding;
    const head = fresh.includes(finding) ? sight.blobs.get(finding.blob ?? '') : undefined;
    const suggestion = texts.get(finding.suggestion ?? '');
    const quote = texts.get(finding.quote);
    if (typeof path !== 'string' || head === undefined || suggestion == null || quote == null) {
      rest.push(listed(finding, 'its lines are not in this head'));
      continue;
    }
    const diff = sight.diffs.get(path) ?? diffLines(null);
    const placed = placeSuggestion({ startLine, endLine, quote, suggestion }, head, diff, redact);
    if (!placed.ok || comments.length >= MOST_COMMENTS) {
      rest.push(listed(finding, placed.ok ? `over ${MOST_COMMENTS} comments` : placed.reason));
      continue;
    }
    const title = texts.get(finding.title) ?? 'text erased';
    const body = suggestionComment(
      { number, severity, title, body: texts.get(finding.body) ?? '' },
      placed.lines,
    );
    comments.push({ number, path, startLine, endLine, body });
  }
  const attempts = stored?.attempts ?? 0;
  return { pull, state: stored === null ? 'planned' : 'intended', attempts, comments, listed: rest };
}

interface Sight {
  /** Text of the head's files by blob id; a file that is no UTF-8 is not in it. */
  readonly blobs: ReadonlyMap<string, string>;
  readonly diffs: ReadonlyMap<string, DiffLines>;
}

/** The head's files by git, and the diff as GitHub shows it: a comment must stand on its lines, not on ours. */
async function look(
  deps: Deps,
  repository: Repository,
  installationId: string,
  pull: string,
  findings: readonly FindingFact[],
): Promise<Sight> {
  if (findings.length === 0) return { blobs: new Map(), diffs: new Map() };
  const github = await deps.github.installation(installationId);
  const token = await github.readToken(repository);
  const oids = [...new Set(findings.flatMap((one) => one.blob ?? []))];
  const read = await deps.git.readBlobs(repository, cloneUrl(deps.settings, repository), token, oids);
  const blobs = new Map<string, string>();
  for (const [oid, bytes] of read) {
    const text = bytes.toString('utf8');
    if (Buffer.from(text, 'utf8').equals(bytes)) blobs.set(oid, text);
  }
  const wanted = new Set(findings.map((one) => one.path));
  const patches = await github.listPatches(repository, pull);
  const diffs = new Map(
    patches.filter((one) => wanted.has(one.path)).map((one) => [one.path, diffLines(one.patch)]),
  );
  return { blobs, diffs };
}
