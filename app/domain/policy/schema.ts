/**
 * The policy `.github/countersign.yml` (POL-1, POL-3): one schema is parser, JSON Schema for editors
 * and reference page. It holds exactly what works; what a later version adds is named in `later.ts`
 * and refused, and so is a default whose behaviour comes with it. Defaults are the first choices of POL-1.
 */
import * as z from 'zod';
import { kindSchema, severitySchema } from '../ledger/row-fields.ts';
import { reviewer } from './reviewer.ts';
import { count, duration, lens, names, patterns, reviewerName, userId } from './values.ts';

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
  timeout: duration('30s', '1h', 'How long one session may take.').prefault('300s'),
});

const workflowFile = z
  .string()
  .regex(
    /^(\.github\/workflows\/)?[A-Za-z0-9._-]{1,100}\.ya?ml$/,
    'the name of a file in .github/workflows, such as countersign.yml',
  )
  .transform((text) => text.replace('.github/workflows/', ''));

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
        authors: z.array(userId).max(1000).default([]).describe('Account ids whose pull requests may spend.'),
      })
      .prefault({})
      .describe('Who may spend without a person allowing it (RUN-10).'),
    gate: z
      .strictObject({
        block_at: severitySchema.default('high').describe('Findings of this severity or worse block.'),
        deadline: duration('1m', '7d', 'How long the gate waits for machines.').prefault('6h'),
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
        override: z.literal('none').default('none').describe('Who may override the gate.'),
        solo: z
          .literal(false)
          .default(false)
          .describe('Whether a lone maintainer may act on their own work.'),
      })
      .prefault({})
      .describe('Who may clear what (GAT-6).'),
    review: z
      .strictObject({
        parallel: count(1, 16, 'Tickets of a run that may be worked at once, 1 to 16.').default(6),
        max_lines: count(1, 1_000_000, 'A longer file ends `too_large`.').default(3000),
        drafts: z.enum(['off', 'on']).default('off').describe('Whether draft pull requests are reviewed.'),
        on_unavailable: z
          .literal('block')
          .optional()
          .describe('Files that no reviewer could read hold the gate until a review of them is complete.'),
        adaptive: z.literal('off').default('off').describe('Whether paths with a history rise a level.'),
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
      })
      .prefault({})
      .describe('How files are reviewed.'),
    reviewers: z
      .record(reviewerName, reviewer, 'a map from names to reviewers')
      .default({})
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
      .default([])
      .describe('The first route that matches a file replaces level and reviewers (ADM-3).'),
    pools: z
      .array(
        z.strictObject({
          kind: z.literal('workflow').describe('A workflow file started by `workflow_dispatch`.'),
          workflow: workflowFile.default('countersign.yml').describe('The file in `.github/workflows`.'),
          capacity: count(1, 256, 'Runners at once.').default(4),
          serves: z
            .array(z.literal('review'))
            .min(1)
            .max(1)
            .default(['review'])
            .describe('Kinds of tickets.'),
        }),
        'a list of pools',
      )
      .min(1)
      .max(10)
      .default([{ kind: 'workflow', workflow: 'countersign.yml', capacity: 4, serves: ['review'] }])
      .describe('Where tickets run (POOL-1).'),
    publish: z
      .strictObject({
        blocks: z
          .enum(['auto', 'off'])
          .default('auto')
          .describe('A check run for each named block, up to ten.'),
        annotations: count(0, 5_000, 'Most annotations of a head.').default(500),
        comments: z.literal('off').default('off').describe('Review comments.'),
      })
      .prefault({})
      .describe('What is shown on GitHub.'),
    commands: z
      .strictObject({
        prefix: z
          .string()
          .regex(/^(\/?[a-z][a-z0-9-]{0,19})?$/, 'a word such as cs, so that commands read /cs status')
          .transform((text) => text.replace('/', ''))
          .default('')
          .describe('A word before each command: `cs` makes `/cs status`.'),
        bots: z.array(userId).max(100).default([]).describe('Account ids of bots whose commands count.'),
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
export function policySchemaJson(): Record<string, unknown> {
  return z.toJSONSchema(policySchema, { io: 'input', target: 'draft-2020-12' }) as Record<string, unknown>;
}
