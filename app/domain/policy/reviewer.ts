/** Reviewers as the policy writes them (REV-1, REV-1a): only the kinds that work in this version. */
import * as z from 'zod';
import { severitySchema } from '../ledger/row-fields.ts';
import type { AgentKind } from '../transcript.ts';
import { count, lens, pattern, patterns, reviewerName } from './values.ts';

const keyVariable = z
  .string()
  .regex(/^[A-Z][A-Z0-9_]{0,99}$/, 'the NAME of an environment variable; never the key itself')
  .refine(
    (name) => !/^(GITHUB_|ACTIONS_|RUNNER_|INPUT_|COUNTERSIGN_|NODE_|LD_)/.test(name),
    'an environment variable of its own; those of the runner hold other secrets',
  )
  .describe('The environment variable of the job that holds the key of the provider; never a value.');

const baseUrl = z
  .string('an https address')
  .max(500)
  .refine((text) => {
    if (!URL.canParse(text)) return false;
    const url = new URL(text);
    const local = /^(localhost|127(\.[0-9]{1,3}){3}|\[::1\])$/.test(url.hostname);
    const plain = url.username === '' && url.password === '' && url.search === '' && url.hash === '';
    return plain && (url.protocol === 'https:' || (url.protocol === 'http:' && local));
  }, 'an https address without credentials or query (http only on this machine)')
  .describe('Where the provider is reached.');

const model = {
  model: z
    .string('the name of a model')
    .min(1, 'the name of a model')
    .max(200, 'at most 200 characters')
    .describe('The model, as the provider names it.'),
  max_output: count(256, 1_000_000, 'Most tokens of one answer.').optional(),
  lenses: z.array(lens).max(30).optional().describe('What this reviewer looks for, in order.'),
  fallbacks: z
    .array(reviewerName)
    .max(10)
    .default([])
    .describe('Model reviewers tried in order when this one is unavailable.'),
};

const provider = <T extends 'anthropic' | 'openai' | 'xai'>(uses: T, key: string) =>
  z.strictObject({
    uses: z.literal(uses).describe(`A model of ${uses}, asked through its API.`),
    ...model,
    base_url: baseUrl.optional(),
    key: keyVariable.default(key),
  });

/** A command-line agent: its model is an argument, so it begins like no option. */
const agent = <T extends AgentKind>(uses: T, name: string, key: z.ZodType<string>) =>
  z.strictObject({
    uses: z
      .literal(uses)
      .describe(
        `${name}, started on the runner without tools as another user; docs/security.md says what it takes.`,
      ),
    model: model.model.regex(
      uses === 'opencode' ? /^[A-Za-z0-9][\w.:@+-]*\/[\w./:@+-]+$/ : /^[A-Za-z0-9][\w./:@+[\]-]*$/,
      uses === 'opencode' ? 'provider/model' : 'the name of a model, without spaces',
    ),
    lenses: model.lenses,
    fallbacks: model.fallbacks,
    key,
  });

const command = z.strictObject({
  uses: z.literal('command').describe('Any program that reads one file and reports findings (REV-1a).'),
  run: z
    .array(
      z.string().min(1).max(1000),
      'a list of arguments, such as [biome, lint, "{path}"]; no shell reads it',
    )
    .min(1)
    .max(60)
    .refine(
      (argv) => argv.some((arg) => arg.includes('{path}')),
      'an argument that holds {path}, the file to read',
    )
    .describe('The program and its arguments; `{path}` is the file. No shell reads it.'),
  output: z
    .enum(['sarif', 'rdjson', 'checkstyle', 'eslint-json', 'countersign'])
    .describe(
      'What it prints: SARIF 2.1.0, reviewdog’s `rdjson`, Checkstyle XML, ESLint’s `json`, or our own JSON (docs/policy.md).',
    ),
  paths: patterns(100)
    .min(1, 'at least one path or glob: a file outside of them is not given to the command')
    .describe('The files it is given; a file outside of them counts as not read by it.'),
  ok_exit: z
    .array(z.int().min(0).max(255))
    .min(1)
    .max(20)
    .default([0, 1])
    .describe('Exit codes that mean it did its work.'),
  deletions: z.boolean().default(false).describe('Whether it is given the base side of deleted files.'),
  config: z
    .array(pattern)
    .max(50)
    .refine(
      (list) => list.every((path) => !/[*?[\]{}()]|\/$/.test(path)),
      'exact paths, no globs or directories',
    )
    .default([])
    .describe('Files laid beside the file, always as they are on the base commit.'),
  severity: z
    .strictObject({
      error: severitySchema.default('high').describe('Of what the program calls an error.'),
      warning: severitySchema.default('medium').describe('Of a warning.'),
      note: severitySchema.default('low').describe('Of anything milder.'),
    })
    .prefault({})
    .describe('The severity of each level that the program reports.'),
  lenses: z.array(lens).max(30).optional().describe('The first is the lens of its findings.'),
  trusted: z
    .literal(
      true,
      'true, which states that the program loads no code or configuration from the files it reads',
    )
    .describe('States that the program loads no code or configuration from the files it reads; required.'),
});

/** One reviewer. */
export const reviewer = z.discriminatedUnion(
  'uses',
  [
    command,
    z.strictObject({
      uses: z
        .literal('openai-compatible')
        .describe('A model behind any server that speaks the OpenAI protocol.'),
      ...model,
      base_url: baseUrl,
      key: keyVariable.optional(),
    }),
    provider('anthropic', 'ANTHROPIC_API_KEY'),
    provider('openai', 'OPENAI_API_KEY'),
    provider('xai', 'XAI_API_KEY'),
    agent('claude-code', 'Claude Code', keyVariable.default('ANTHROPIC_API_KEY')),
    agent('codex', 'Codex', keyVariable.default('OPENAI_API_KEY')),
    agent('grok', 'Grok Build', keyVariable.default('XAI_API_KEY')),
    agent('opencode', 'OpenCode', keyVariable),
  ],
  'a reviewer: {uses: …}',
);

/** A reviewer as the policy names it, defaults filled. */
export type ReviewerEntry = z.infer<typeof reviewer>;
