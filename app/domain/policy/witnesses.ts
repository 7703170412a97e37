/** What a policy says of two reviewers that agree (RND-3): L3 asks two of different provider or model. */
import { providerOf } from '../provider.ts';
import type { ReviewerEntry } from './reviewer.ts';
import type { PolicyFile } from './schema.ts';

/** A fault of a policy at a path, with what would be accepted. */
export interface WitnessFault {
  readonly path: (string | number)[];
  readonly message: string;
  readonly accepted: string;
}

/** How many different models stand behind these reviewers: by provider and model; commands are none. */
export function differentModels(
  reviewers: ReadonlyMap<string, ReviewerEntry>,
  names: readonly string[],
): number {
  const models = names.flatMap((name) => {
    const entry = reviewers.get(name);
    if (entry === undefined || entry.uses === 'command') return [];
    return [`${providerOf(entry)} ${entry.model ?? ''}`];
  });
  return new Set(models).size;
}

/** Consensus that could never be had: of a lens that nobody looks for, or where L3 has no two different models. */
export function consensusFaults(
  file: PolicyFile,
  reviewers: ReadonlyMap<string, ReviewerEntry>,
): WitnessFault[] {
  const found: WitnessFault[] = [];
  const atL3 = differentModels(reviewers, file.levels.L3 ?? [...reviewers.keys()]);
  for (const [lens, who] of Object.entries(file.review.consensus)) {
    const path = ['review', 'consensus', lens];
    if (!file.review.lenses.includes(lens))
      found.push({
        path,
        message: `${lens} is no lens of review.lenses`,
        accepted: file.review.lenses.join(', '),
      });
    else if (who === 'both' && atL3 < 2)
      found.push({
        path,
        message: `both takes two reviewers of different provider or model at L3; there ${atL3 === 1 ? 'is' : 'are'} ${atL3}`,
        accepted: 'any, or a second model under levels.L3',
      });
  }
  return found;
}

/** Whether the policy asks for L3 by name and has one model there: nobody then checks what it says. */
export function isAloneAtL3(file: PolicyFile, reviewers: ReadonlyMap<string, ReviewerEntry>): boolean {
  const named = file.levels.L3;
  return named !== undefined && differentModels(reviewers, named) === 1;
}
