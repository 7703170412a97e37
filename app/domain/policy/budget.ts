/** What a policy says of spending (ADM-2, POL-1): limits by block, run and month, and the prices that money is counted by. */
import * as z from 'zod';
import type { ReviewerEntry } from './reviewer.ts';
import { count, reviewerName } from './values.ts';

const sessions = (of: string) =>
  count(1, 1_000_000, `Most sessions of models in ${of}, repairs and fallbacks included.`).optional();
const tokens = (of: string) =>
  count(1, 1_000_000_000_000, `Most tokens in ${of}, of prompts and answers together.`).optional();
const usd = (of: string) =>
  z
    .number('an amount of US dollars, such as 2.5')
    .positive('an amount above 0')
    .max(100_000_000, 'at most 100000000')
    .optional()
    .describe(`Most US dollars in ${of}, by \`budget.prices\`.`);
const price = (of: string) =>
  z
    .number('US dollars for a million tokens, such as 0.25')
    .min(0, 'not below 0')
    .max(1_000_000, 'at most 1000000')
    .describe(`US dollars for a million tokens of ${of}.`);

const RUN = 'a run (a pull request)';
const MONTH = 'the repository in a calendar month of UTC';
const OUTSIDERS = 'such runs in a month';

/** The key `budget`. */
export const budget = z
  .strictObject({
    block: z
      .strictObject({ sessions: sessions('a block') })
      .prefault({})
      .describe('Limits of each block of a run.'),
    run: z
      .strictObject({ sessions: sessions(RUN), tokens: tokens(RUN), usd: usd(RUN) })
      .prefault({})
      .describe('Limits of each run.'),
    month: z
      .strictObject({ tokens: tokens(MONTH), usd: usd(MONTH) })
      .prefault({})
      .describe('Limits of the repository, each calendar month of UTC.'),
    outsiders: z
      .strictObject({
        tokens: tokens(OUTSIDERS).describe(
          'Most tokens of such runs in a month; a fifth of `budget.month.tokens` where it is not given.',
        ),
        usd: usd(OUTSIDERS).describe(
          'Most US dollars of such runs in a month; a fifth of `budget.month.usd` where it is not given.',
        ),
      })
      .prefault({})
      .describe('The part of the month for runs that a person or `allow.authors` let spend (RUN-10).'),
    prices: z
      .record(
        reviewerName,
        z.strictObject({ input: price('its prompts'), output: price('its answers') }),
        'a map from reviewers to their prices',
      )
      .default({})
      .describe('What a reviewer of this policy costs; needed of each model where a limit is in `usd`.'),
  })
  .prefault({});

/** A fault of the budget at a path, with what would be accepted. */
export interface BudgetFault {
  readonly path: (string | number)[];
  readonly message: string;
  readonly accepted: string;
}

/** Money without a price of each model could not be counted; a price of nobody is a slip of the pen. */
export function budgetFaults(
  given: z.infer<typeof budget>,
  reviewers: ReadonlyMap<string, ReviewerEntry>,
): BudgetFault[] {
  const models = [...reviewers].flatMap(([name, entry]) => (entry.uses === 'command' ? [] : [name]));
  const strangers = Object.keys(given.prices).filter((name) => !models.includes(name));
  const faults = strangers.map((name) => ({
    path: ['budget', 'prices', name],
    message: `no model is named ${name}`,
    accepted: models.join(', ') || 'the name of a model reviewer',
  }));
  const inMoney = [given.run.usd, given.month.usd, given.outsiders.usd].some((one) => one !== undefined);
  const without = models.filter((name) => !Object.hasOwn(given.prices, name));
  if (!inMoney || without.length === 0) return faults;
  return [
    ...faults,
    {
      path: ['budget'],
      message: `a limit in usd needs a price of each model: ${without.join(', ')} has none`,
      accepted: `prices: {${without[0]}: {input: …, output: …}}, in US dollars for a million tokens`,
    },
  ];
}
