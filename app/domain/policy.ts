/**
 * The policy of a base branch, from its bytes (POL-1, RUN-8). What comes out is complete: every
 * default is filled, every name it mentions exists, and everything in it works in this version.
 */
import { crossCheck, type PolicyNote } from './policy/cross-check.ts';
import { explainIssue, type PolicyError } from './policy/explain.ts';
import { readYaml } from './policy/read-yaml.ts';
import type { ReviewerEntry } from './policy/reviewer.ts';
import { type PolicyFile, policySchema } from './policy/schema.ts';
import type { VerifyCommand } from './policy/verify.ts';

/** Where the policy lies in a repository. */
export const POLICY_PATH = '.github/countersign.yml';

/** A level that is reviewed. */
export type ReviewLevel = 'L1' | 'L2' | 'L3';

/** A whole policy: durations in milliseconds, level defaults filled (POL-1), names checked. */
export interface Policy extends Omit<PolicyFile, 'levels' | 'reviewers' | 'verify'> {
  /** By name, in the order of the file. */
  readonly reviewers: ReadonlyMap<string, ReviewerEntry>;
  /** The verify commands by name, in the order of the file (VER-1). */
  readonly verify: ReadonlyMap<string, VerifyCommand>;
  /** The default reviewers of each level; empty only when the policy has no reviewer at all. */
  readonly levels: Readonly<Record<ReviewLevel, readonly string[]>>;
  /** The highest level the policy names; L3 when it names none. Guarded paths are reviewed at it (OWN-8). */
  readonly highest: ReviewLevel;
  /** Whether L1 is not spelled out: then the first reviewer that reads a file has it alone. */
  readonly firstAtL1: boolean;
}

/** What a policy file says, or why it says nothing. */
export type PolicyReading =
  | { readonly ok: true; readonly policy: Policy; readonly notes: readonly PolicyNote[] }
  | { readonly ok: false; readonly errors: readonly PolicyError[] };

const MOST_ERRORS = 20;

/** Reads a policy file; never throws. Errors are `config_invalid`, by line, at most 20, never empty. */
export function parsePolicy(bytes: Uint8Array): PolicyReading {
  const yaml = readYaml(bytes);
  if (!yaml.ok) {
    return {
      ok: false,
      errors: yaml.faults.map((fault) => ({
        code: 'config_invalid',
        line: fault.line,
        path: '',
        message: fault.message,
        accepted: 'one YAML 1.2 document of plain maps, lists and words, at most 64 KiB',
      })),
    };
  }
  const parsed = policySchema.safeParse(yaml.data);
  if (!parsed.success) {
    const errors = parsed.error.issues.flatMap((issue) => explainIssue(issue, yaml.data, yaml.lineOf));
    return { ok: false, errors: errors.sort((a, b) => a.line - b.line).slice(0, MOST_ERRORS) };
  }
  const { errors, notes } = crossCheck(parsed.data, yaml.lineOf);
  if (errors.length > 0) return { ok: false, errors: errors.slice(0, MOST_ERRORS) };
  return { ok: true, policy: complete(parsed.data), notes };
}

function complete(file: PolicyFile): Policy {
  const all = Object.keys(file.reviewers);
  const named = (['L3', 'L2', 'L1'] as const).filter(
    (level) => file.levels[level] !== undefined || file.routes.some((route) => route.level === level),
  );
  return {
    ...file,
    reviewers: new Map(Object.entries(file.reviewers)),
    verify: new Map(Object.entries(file.verify)),
    levels: {
      L1: file.levels.L1 ?? all,
      L2: file.levels.L2 ?? all,
      L3: file.levels.L3 ?? all,
    },
    highest: named[0] ?? 'L3',
    firstAtL1: file.levels.L1 === undefined,
  };
}

/** Every reviewer that a session of these may fall back to, in order, none of themselves (REV-1). */
export function fallbacksOf(policy: Policy, reviewers: readonly string[]): string[] {
  const found: string[] = [];
  const queue = [...reviewers];
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    const entry = policy.reviewers.get(name);
    if (entry === undefined || entry.uses === 'command') continue;
    for (const next of entry.fallbacks) {
      if (reviewers.includes(next) || found.includes(next)) continue;
      found.push(next);
      queue.push(next);
    }
  }
  return found;
}

/** A policy to start from: one linter, no model, no key. Linked from the `not_enrolled` check and the docs (RUN-9). */
export const STARTER_POLICY = `# Countersign reviews every changed file and holds the merge until it is done.
# Reference: docs/policy.md
version: 1
reviewers:
  biome:
    uses: command
    run: [npx, "@biomejs/biome", lint, --reporter=sarif, "{path}"]
    output: sarif
    paths: ["**/*.{ts,tsx,js,jsx,mjs,cjs,json,css}"]
    trusted: true
`;
