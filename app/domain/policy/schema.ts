/**
 * The policy `.github/countersign.yml` (POL-1, POL-3): one schema is parser, JSON Schema for editors
 * and reference page. It holds exactly what works; what a later version adds is named in `later.ts`
 * and refused, and so is a default whose behaviour comes with it. Defaults are the first choices of POL-1.
 */
import * as z from 'zod';
import { kindSchema, severitySchema } from '../ledger/row-fields.ts';
import { LIMITS } from '../limits.ts';
import { budget } from './budget.ts';
import { DEFAULT_POOL, pool } from './pool.ts';
import { reviewer } from './reviewer.ts';
import { count, duration, lens, names, patterns, reviewerName, userId } from './values.ts';
import { commandName, commandNames, verifyCommand } from './verify.ts';

const route = z.strictObject({
  when: z
    .strictObject({
      paths: patterns(200).min(1).optional().describe('Any of these matches the old or the new path.'),
      kinds: z.array(kindSchema).min(1).max(6).optional().describe('The kind of the path.'),
      lines: z
        .strictObject({
          min: count(0, 10_000_000, 'At least this many.').optional(),
          max: count(0, 10_000_000, 'At most this many.').optional(),
        })
        .optional()
        .describe('Lines of the file; a file whose lines are unknown does not match.'),
    })
    .refine((when) => Object.keys(when).length > 0, 'at least one of paths, kinds, lines')
    .describe('All of them must hold.'),
  level: z.enum(['L1', 'L2', 'L3']).optional().describe('The level instead of the one its kind gives.'),
  reviewers: names.optional().describe('The reviewers instead of those of the level.'),
  human: z.boolean().optional().describe('Whether a person has to approve such files as well (GAT-6).'),
  verify: commandNames
    .optional()
    .describe('The verify commands that must pass for a block with such a file (VER-1).'),
  timeout: duration('30s', '1h', 'How long one session may take.').prefault('300s'),
});

const clearer = z.enum(['write', 'maintain', 'admin']).default('write');

/** The reasons that L0 can have (BLK-6); each must be allowed for the gate to pass over it (BLK-7). */
export const unreviewedReasons = ['generated', 'moved', 'lockfile', 'deleted', 'vendored', 'binary'] as const;

/** The schema of the policy file: input as written, output with every default filled and durations in milliseconds. */
export const policySchema = z
  .strictObject({
    version: z.literal(1, 'the number 1').describe('The version of this format; required.'),
    mode: z
      .enum(['enforce', 'advisory'])
      .default('enforce')
      .describe('`advisory` reports as `countersign (advisory)`, which can never satisfy a required check.'),
    allow: z
      .strictObject({
        authors: z
          .array(userId)
          .max(1000)
          .prefault([])
          .describe('Account ids whose pull requests may spend.'),
      })
      .prefault({})
      .describe('Who may spend without a person allowing it (RUN-10).'),
    gate: z
      .strictObject({
        block_at: severitySchema.default('high').describe('Findings of this severity or worse block.'),
        deadline: duration('1m', '7d', 'How long the gate waits for machines.').prefault('6h'),
        patience: duration(
          '0s',
          '7d',
          'How long machines have before a person may answer for files that nobody read (POOL-3).',
        ).prefault('30m'),
        allow_unreviewed: z
          .array(z.enum(unreviewedReasons))
          .max(10)
          .default(['generated', 'moved', 'lockfile', 'deleted'])
          .describe('Reasons for which a file may stay unreviewed (BLK-7).'),
      })
      .prefault({})
      .describe('What holds a pull request.'),
    ownership: z
      .enum(['auto', 'declared'])
      .default('auto')
      .describe('`declared`: a path that no block declares is an orphan (OWN-4, OWN-5).'),
    guard: patterns(500)
      .default([])
      .describe('Paths that no block owns and that a maintainer clears (OWN-8).'),
    classes: z
      .strictObject({
        generated: patterns(500).default([]).describe('Files that a program writes.'),
        vendored: patterns(500).default([]).describe("Copies of others' files."),
        lockfile: patterns(500).default([]).describe('Lock files beyond the well-known names.'),
      })
      .prefault({})
      .describe('Files recorded and not reviewed (L0), beside `.gitattributes` at the merge base (BLK-6).'),
    people: z
      .strictObject({
        approve: clearer.describe('The least permission that clears what needs a person.'),
        dismiss: clearer.describe(
          'The least permission that dismisses a finding; below `gate.block_at` its author may too.',
        ),
        override: z
          .enum(['none', 'maintain', 'admin'])
          .default('none')
          .describe('Who may override the gate for one head, below critical findings (GAT-7).'),
        solo: z
          .boolean()
          .default(false)
          .describe('Whether somebody may answer for their own work while nobody else has write.'),
        carry: z
          .enum(['identical', 'none'])
          .default('identical')
          .describe('`identical`: an act counts on a later head whose changed files are the same.'),
      })
      .prefault({})
      .describe('Who may clear what (GAT-6).'),
    review: z
      .strictObject({
        parallel: count(
          LIMITS.runParallel.min,
          LIMITS.runParallel.max,
          'Tickets of a run that may be worked at once, 1 to 16.',
        ).default(LIMITS.runParallel.default),
        rounds: count(
          1,
          20,
          'Rounds in which a file is read with a blocking finding on it, before one at L3 and then a person (RND-2).',
        ).default(3),
        max_lines: count(1, 1_000_000, 'A longer file ends `too_large`.').default(3000),
        consensus: z
          .record(lens, z.enum(['any', 'both']), 'a map from lenses to any or both')
          .default({})
          .describe(
            'By lens: `both` lets a finding that only one of the different reviewers of L3 sees be shown without blocking (RND-3).',
          ),
        drafts: z.enum(['off', 'on']).default('off').describe('Whether draft pull requests are reviewed.'),
        reuse: z
          .enum(['on', 'off'])
          .default('on')
          .describe(
            'Whether a review of the same content in another pull request of this repository counts here, with all its findings (TKT-4).',
          ),
        on_unavailable: z
          .enum(['human', 'block'])
          .default('human')
          .describe(
            '`human`: a person may answer for files that no reviewer could read; `block`: only a review clears them.',
          ),
        adaptive: z
          .enum(['off', 'on'])
          .default('off')
          .describe(
            'Whether a path that had a blocking finding in the last 90 days, in any pull request of the repository, is reviewed one level higher (ADM-3).',
          ),
        lenses: z
          .array(lens)
          .min(1)
          .max(30)
          .default([
            'security',
            'correctness',
            'reliability',
            'performance',
            'maintainability',
            'tests',
            'docs',
          ])
          .describe('What reviewers look for, in order.'),
        show: z
          .strictObject({
            severity: severitySchema.default('info').describe('The mildest severity that is shown.'),
            lenses: z.array(lens).min(1).max(30).optional().describe('Only findings of these lenses.'),
            paths: patterns(200)
              .min(1)
              .optional()
              .describe('Only findings on paths that one of these matches.'),
          })
          .prefault({})
          .describe('Which findings are shown; all are kept, and one that blocks is never hidden (REV-6).'),
      })
      .prefault({})
      .describe('How files are reviewed.'),
    reviewers: z
      .record(reviewerName, reviewer, 'a map from names to reviewers')
      .prefault({})
      .describe('The reviewers by name (REV-1); none: the run waits with `setup_incomplete`.'),
    levels: z
      .strictObject({
        L1: names.optional().describe('Light; without it the first reviewer that reads the file.'),
        L2: names.optional().describe('Standard; without it all reviewers.'),
        L3: names.optional().describe('Deep; without it all reviewers.'),
      })
      .prefault({})
      .describe('The default reviewers of each level.'),
    routes: z
      .array(route, 'a list of routes')
      .max(200)
      .prefault([])
      .describe('The first route that matches a file replaces level and reviewers (ADM-3).'),
    verify: z
      .record(commandName, verifyCommand, 'a map from names to verify commands')
      .prefault({})
      .describe('Commands that must pass, by name; `verify` of a route says for which files (VER-1).'),
    budget: budget.describe('What may be spent (ADM-2); nothing given: no limit.'),
    pools: z
      .array(pool, 'a list of pools')
      .min(1)
      .max(10)
      .prefault([DEFAULT_POOL])
      .describe('Where tickets run (POOL-1).'),
    publish: z
      .strictObject({
        blocks: z
          .enum(['auto', 'off'])
          .default('auto')
          .describe('A check run for each named block, up to ten.'),
        annotations: count(0, 5_000, 'Most annotations of a head.').default(500),
        comments: z
          .enum(['off', 'review'])
          .default('off')
          .describe(
            '`review`: one review a head with the suggestions of its findings, each verified against the lines it changes.',
          ),
      })
      .prefault({})
      .describe('What is shown on GitHub.'),
    commands: z
      .strictObject({
        prefix: z
          .string()
          .regex(/^(\/?[a-z][a-z0-9-]{0,19})?$/, 'a word such as cs, so that commands read /cs status')
          .transform((text) => text.replace('/', ''))
          .prefault('')
          .describe('A word before each command: `cs` makes `/cs status`.'),
        bots: z.array(userId).max(100).prefault([]).describe('Account ids of bots whose commands count.'),
      })
      .prefault({})
      .describe('Commands in comments (docs/commands.md).'),
    fix: z
      .strictObject({ push: z.literal(false).default(false).describe('Whether fixes are pushed.') })
      .prefault({})
      .describe('Fixing.'),
  })
  .describe('The policy of Countersign, .github/countersign.yml.');

/** The policy as its schema gives it: defaults filled, level defaults not yet. */
export type PolicyFile = z.infer<typeof policySchema>;

/** The JSON Schema of the policy file, for editors: exactly what the parser takes, cross references aside (POL-3). */
export function policySchemaJson(): Readonly<Record<string, unknown>> {
  // made once: each fault of a file is explained by it
  json ??= z.toJSONSchema(policySchema, { io: 'input', target: 'draft-2020-12' }) as typeof json & object;
  return json;
}

let json: Readonly<Record<string, unknown>> | undefined;
