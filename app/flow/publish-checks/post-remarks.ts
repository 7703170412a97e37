/** Posts the one review of ours on a head, at most once whatever crashes: intent, GitHub, effect; found again by its marker (PUB-5). */
import type { CheckUnit } from '../../../db/store/check.ts';
import type { Repository } from '../../../db/store/installation.ts';
import { endRemark, intendRemark } from '../../../db/store/remark.ts';
import { STUCK_ATTEMPTS } from '../../domain/check.ts';
import { reviewMarker, reviewText } from '../../domain/suggestion.ts';
import { Fault } from '../../errors.ts';
import type { Deps } from '../deps.ts';
import type { Remarks } from './want-remarks.ts';

/** What became of the review. */
export type PostedRemarks =
  /** It is there, by this call or before, or there is nothing to post. */
  | 'settled'
  /** GitHub took none of it: the summary has to say so. */
  | 'refused'
  /** Its lines could not be read, or the head is another one by now. */
  | 'later';

/** Posts what is planned. Throws what GitHub does as `Fault`s; then the intent stands and the next call looks first. */
export async function postRemarks(
  deps: Deps,
  unit: CheckUnit,
  repository: Repository,
  remarks: Remarks,
  run: { readonly id: string; readonly page: string },
): Promise<PostedRemarks> {
  const { db } = deps.database;
  const { pull, state, comments, listed } = remarks;
  if (state === 'posted' || state === 'refused') return 'settled';
  if (state === 'unread') return 'later';
  const place = { repositoryId: unit.repositoryId, pull, sha: unit.sha };
  const findings = comments.map((one) => one.number);
  const marker = reviewMarker(unit.repositoryId, pull, unit.sha);
  const github = await deps.github.installation(repository.installationId);
  if (state === 'intended') {
    const found = await github.findReview(repository, pull, `${await deps.github.slug()}[bot]`, marker);
    if (found !== null) {
      await endRemark(db, place, { state: 'posted', githubId: found.id, findings });
      return 'settled';
    }
  }
  // what fails for ever is said in the summary
  if (remarks.attempts >= STUCK_ATTEMPTS) {
    await endRemark(db, place, { state: 'refused', githubId: null, findings: [] });
    return 'refused';
  }
  if (comments.length > 0) {
    // the diff that was read is the present head's: of another one nothing is posted
    const now = await github.getPull(repository, pull);
    if (now.head !== unit.sha || now.state === 'closed') return 'later';
  }
  await intendRemark(db, place, { runId: run.id, findings });
  if (comments.length === 0) {
    await endRemark(db, place, { state: 'posted', githubId: null, findings });
    return 'settled';
  }
  try {
    const body = reviewText(marker, comments.length, listed.length, run.page);
    const { id } = await github.createReview(repository, pull, { commit: unit.sha, body, comments });
    await endRemark(db, place, { state: 'posted', githubId: id, findings });
    return 'settled';
  } catch (error) {
    // GitHub does not say which comment it is about: all of them go to the summary
    if (!(error instanceof Fault) || error.code !== 'github_refused') throw error;
    await endRemark(db, place, { state: 'refused', githubId: null, findings: [] });
    return 'refused';
  }
}
