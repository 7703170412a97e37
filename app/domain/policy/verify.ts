/** Verify commands as the policy writes them (VER-1): where each one runs, and what proves that it passed. */
import * as z from 'zod';
import { duration, patterns, residentName } from './values.ts';

/** A workflow file; its name alone once read. */
export const workflowFile = z
  .string()
  .regex(
    /^(\.github\/workflows\/)?[A-Za-z0-9._-]{1,100}\.ya?ml$/,
    'the name of a file in .github/workflows, such as countersign.yml',
  )
  .transform((text) => text.replace('.github/workflows/', ''));

/** The workflow file that `countersign workflow` prints for commands of `from: action`. */
export const VERIFY_WORKFLOW = 'countersign-verify.yml';

/** The name of the job that runs a command of `from: action`, as that workflow file gives it; by it GitHub's conclusion is found. */
export function verifyJobName(command: string): string {
  return `verify ${command}`;
}

/** The name of a verify command. */
export const commandName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$/, 'a name: letters, digits, ".", "_" and "-", at most 60');
/** A list of verify commands by name. */
export const commandNames = z.array(commandName, 'a list of verify commands').min(1).max(20);

// what the runner, git, the loader and a shell read themselves is not a command's to set
const RESERVED =
  /^(GITHUB_|ACTIONS_|RUNNER_|INPUT_|COUNTERSIGN_|NODE_OPTIONS$|LD_|DYLD_|GIT_|BASH_ENV$|ENV$|PATH$|HOME$|TMPDIR$|IFS$)/;
const variable = z
  .string()
  .regex(/^[A-Z][A-Z0-9_]{0,99}$/, 'an environment variable: capital letters, digits and _')
  .refine((name) => !RESERVED.test(name), 'a variable of its own; those of the runner are set by it');

const executed = {
  run: z
    .array(
      z
        .string()
        .min(1)
        .max(1000)
        .refine((text) => !text.includes('\0'), 'text without NUL'),
      'a list of arguments, such as [npm, test]; no shell reads it',
    )
    .min(1)
    .max(60)
    .describe('The program and its arguments; no shell reads it.'),
  timeout: duration('10s', '6h', 'How long it may take.').prefault('15m'),
  env: z
    .record(variable, z.string().max(4_000), 'a map from variables to text')
    .refine((env) => Object.keys(env).length <= 50, 'at most 50 variables')
    .default({})
    .describe('Environment variables it gets, as they stand here: no secret belongs in a policy.'),
  ports: z
    .array(variable)
    .max(10)
    .default([])
    .describe('Environment variables that each get the number of a free port.'),
  artifacts: patterns(50)
    .default([])
    .describe('Files it must leave behind; one that is missing fails it, whatever its exit code.'),
};

const ci = z.strictObject({
  from: z
    .literal('ci')
    .describe(
      "A job of the repository's own CI; GitHub's conclusion of its newest attempt on the head is the receipt.",
    ),
  workflow: workflowFile.describe('The file in `.github/workflows`.'),
  job: z
    .string()
    .trim()
    .min(1, 'the name of a job')
    .max(200, 'at most 200 characters')
    .describe(
      'The job, by the name that GitHub shows: `name:` of the job, else its id; a matrix adds its values in brackets.',
    ),
});

const action = z.strictObject({
  from: z
    .literal('action')
    .describe('A command that our Action runs in a `pull_request` workflow without credentials.'),
  ...executed,
  workflow: workflowFile.prefault(VERIFY_WORKFLOW).describe('The file that `countersign workflow` printed.'),
});

const pooled = z.strictObject({
  from: z
    .literal('pool')
    .describe(
      'A command that a resident pool runs on the head, in a container that is thrown away and holds no credential.',
    ),
  ...executed,
  pool: residentName.describe('The resident pool, one of `pools` that `serves` verify.'),
  image: z
    .string()
    .regex(/^\w[\w.:/@-]{0,299}$/, 'the name of an image, such as node:24-bookworm')
    .describe('The image of its container, as the machines of the pool name it; none is pulled.'),
  network: z
    .enum(['none', 'open'])
    .default('none')
    .describe('`open`: what the machine reaches, where the owner of the pool allows it as well.'),
});

/** One verify command. */
export const verifyCommand = z.discriminatedUnion(
  'from',
  [ci, action, pooled],
  'a verify command: {from: …}',
);

/** A verify command as the policy names it, defaults filled; times in milliseconds. */
export type VerifyCommand = z.infer<typeof verifyCommand>;

/** A command that our Action runs. */
export type ActionCommand = Extract<VerifyCommand, { from: 'action' }>;

/** A command that a resident pool runs. */
export type PoolCommand = Extract<VerifyCommand, { from: 'pool' }>;

/** A command whose proof is a job at GitHub. */
export type JobCommand = Exclude<VerifyCommand, PoolCommand>;
