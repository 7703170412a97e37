/**
 * Posts annotations of one check run in batches of 50 that GitHub appends (PUB-3, cases 31 and 33).
 * How many are there is GitHub's count; the order was committed before, so a batch is never sent
 * twice. The conclusion goes with the last batch. A refused batch is halved until what is bad is alone.
 */
import {
  type AnnotationPlan,
  advanceAnnotations,
  type CheckUnit,
  type StoredCheck,
} from '../../../db/store/check.ts';
import { BATCH } from '../../domain/summary/annotation.ts';
import { Fault } from '../../errors.ts';
import type { CheckRunContent, WriteTurn } from '../../github/port/check.ts';
import type { GitHub, RepositoryAddress } from '../../github/port.ts';
import type { Deps } from '../deps.ts';
import type { WantedFindings } from './want-findings.ts';
import type { Wanted } from './want-gate.ts';

/** Refusals of one check run after which what is refused is halved no more: the budget of writes is everybody's. */
const MOST_REFUSALS = 60;

/** Where to post, and how far it got. */
export interface AnnotateInput {
  readonly github: GitHub;
  readonly repository: RepositoryAddress;
  readonly unit: CheckUnit;
  readonly n: number;
  readonly githubId: string;
  /** Annotations that are there already: the first of the plan's order. */
  readonly posted: number;
  readonly plan: AnnotationPlan;
  readonly wanted: WantedFindings;
  readonly turn: WriteTurn;
  /** A concluded check run is never set back: it keeps a conclusion while more is appended. */
  readonly concluded: boolean;
}

/** Posts what is missing and concludes; answers how many are there, and the plan as it was in the end. */
export async function annotate(
  deps: Deps,
  input: AnnotateInput,
): Promise<{ readonly posted: number; readonly plan: AnnotationPlan }> {
  const { github, repository, unit, n, githubId, wanted, turn } = input;
  let { posted, plan } = input;
  let bad = 0;

  const content = (last: boolean): CheckRunContent => {
    const whole = wanted.contentWithout(plan.dropped);
    if (last || input.concluded) return whole;
    const { conclusion: _later, ...open } = whole;
    return { ...open, status: 'in_progress' };
  };
  const take = async (count: number) => {
    posted += count;
    await advanceAnnotations(deps.database.db, unit, n, { annotations: posted, plan });
  };
  const drop = async (findings: readonly number[], reason: string) => {
    plan = {
      order: plan.order.filter((number) => !findings.includes(number)),
      dropped: [...plan.dropped, ...findings.map((finding) => ({ finding, reason }))],
    };
    await advanceAnnotations(deps.database.db, unit, n, { annotations: posted, plan });
  };

  /** True when the conclusion went with it. */
  const send = async (numbers: readonly number[], last: boolean): Promise<boolean> => {
    const annotations = numbers.flatMap((number) => wanted.annotations.get(number) ?? []);
    try {
      await github.updateCheckRun(repository, githubId, { ...content(last), annotations }, turn);
      await take(numbers.length);
      return last;
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'github_refused') throw error;
      // before halving: is it the annotations at all?
      if (bad === 0) await github.updateCheckRun(repository, githubId, content(false), turn);
      bad += 1;
    }
    if (numbers.length === 1 || bad > MOST_REFUSALS) {
      await drop(numbers, 'GitHub refused it');
      return false;
    }
    const half = Math.ceil(numbers.length / 2);
    await send(numbers.slice(0, half), false);
    return send(numbers.slice(half), last);
  };

  let concluded = false;
  while (posted < plan.order.length) {
    const batch = plan.order.slice(posted, posted + BATCH);
    concluded = await send(batch, posted + batch.length >= plan.order.length);
  }
  if (!concluded) await github.updateCheckRun(repository, githubId, content(true), turn);
  return { posted, plan };
}

/** The order of annotations: what was planned stays where it is, what is new comes after it. */
export function planOf(
  shown: StoredCheck | undefined,
  wanted: Wanted | WantedFindings,
): AnnotationPlan | null {
  if (!('order' in wanted)) return null;
  const before = shown?.plan ?? { order: [], dropped: [] };
  const posted = before.order.slice(0, shown?.annotations ?? 0);
  const dropped = before.dropped.filter((one) => wanted.order.includes(one.finding));
  const known = new Set([...posted, ...dropped.map((one) => one.finding)]);
  // not yet posted ones may have been by a process that died: their order must not change
  const waiting = before.order.slice(posted.length).filter((number) => wanted.annotations.has(number));
  for (const number of waiting) known.add(number);
  return { order: [...posted, ...waiting, ...wanted.order.filter((number) => !known.has(number))], dropped };
}
