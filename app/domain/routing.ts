/**
 * Which level, which reviewers, how long (ADM-3, POL-1, REV-1a, TKT-5). A level is decided once per
 * (run, path, content, policy) with `routeLevel`, recorded, and read back (BLK-6); `routeFile` then
 * names the reviewers for the level that was decided and never changes it.
 */
import type * as z from 'zod';
import type { kindSchema, levelSchema } from './ledger/row-fields.ts';
import { LIMITS } from './limits.ts';
import { compilePatterns } from './ownership/match.ts';
import type { WirePath } from './path.ts';
import type { ReviewerEntry } from './policy/reviewer.ts';
import { fallbacksOf, type Policy, type ReviewLevel } from './policy.ts';

/** What is known of a changed path when it is routed. */
export interface RoutedFile {
  readonly path: WirePath;
  /** The old path of a pair (GIT-4): rules of both paths apply (OWN-9). */
  readonly from: WirePath | null;
  readonly kind: z.infer<typeof kindSchema>;
  /** Lines of the file; null when they are not known: no route that asks for lines matches. */
  readonly lines: number | null;
  readonly guarded: boolean;
  /** Whether the path is deleted and no part of a pair. */
  readonly deleted: boolean;
}

/** Who reviews a file, or why nobody can. `reviewers` is empty at L0 only. */
export type Routing =
  | {
      readonly level: z.infer<typeof levelSchema>;
      readonly reviewers: readonly string[];
      readonly timeoutMs: number;
      /** Why the level is L0 though another was decided: `deleted` (TKT-5). */
      readonly reason?: 'deleted';
    }
  | { readonly invalid: 'route_invalid'; readonly detail: string };

const DEFAULT_TIMEOUT_MS = LIMITS.sessionTimeoutMs.default;
const ORDER: readonly ReviewLevel[] = ['L1', 'L2', 'L3'];

/** The higher of two levels. */
export function higherLevel(a: ReviewLevel, b: ReviewLevel): ReviewLevel {
  return ORDER.indexOf(a) >= ORDER.indexOf(b) ? a : b;
}

/**
 * The level the policy asks for: the highest one it has for a guarded path (OWN-8), else what the first
 * matching route says, for a pair the higher of both paths', else `byKind`. Trailers may raise it afterwards.
 */
export function routeLevel(policy: Policy, file: RoutedFile, byKind: ReviewLevel): ReviewLevel {
  if (file.guarded) return policy.highest;
  const levels = routesOf(policy, file).map((route) => route?.level ?? byKind);
  return levels.reduce(higherLevel);
}

/** Whether a matching route, of either path of a pair, asks for a person as well (GAT-6). */
export function routeHuman(policy: Policy, file: RoutedFile): boolean {
  return routesOf(policy, file).some((route) => route?.human === true);
}

/** The verify commands that matching routes name, of either path of a pair, sorted (VER-1). */
export function routeVerify(policy: Policy, file: RoutedFile): string[] {
  return [...new Set(routesOf(policy, file).flatMap((route) => route?.verify ?? []))].sort();
}

/**
 * The reviewers and the session timeout for a file at the level that was decided for it. A command
 * takes part only where its `paths` match, and in deletions only with `deletions: true`; a deletion
 * that nobody takes is L0 `deleted`, any other file `route_invalid`, with words that name the level.
 */
export function routeFile(
  policy: Policy,
  file: RoutedFile & { readonly level: z.infer<typeof levelSchema> },
): Routing {
  const level = file.level;
  if (level === 'L0') return { level, reviewers: [], timeoutMs: DEFAULT_TIMEOUT_MS };
  const routes = routesOf(policy, file);
  const timeoutMs = Math.max(...routes.map((route) => route?.timeout ?? DEFAULT_TIMEOUT_MS));
  const named = [...new Set(routes.flatMap((route) => route?.reviewers ?? policy.levels[level]))];
  const unknown = named.find((name) => !policy.reviewers.has(name));
  if (unknown !== undefined) return invalid(`no reviewer is named ${unknown}`);
  const taking = named.filter((name) => takes(policy, name, file));
  // a light level that nobody spelled out is one reviewer, and one that reads the file
  const first = policy.firstAtL1 && level === 'L1' && !routes.some((route) => route?.reviewers !== undefined);
  const reviewers = first ? taking.slice(0, 1) : taking;
  if (reviewers.length > 0) return { level, reviewers, timeoutMs };
  if (file.deleted) return { level: 'L0', reviewers: [], timeoutMs, reason: 'deleted' };
  if (named.length === 0) return invalid(`the policy names no reviewer for ${level}`);
  return invalid(`none of ${named.join(', ')} (${level}) reads this path`);
}

/** The policy entries that a review key holds for these reviewers: theirs in order, then their fallbacks' (TKT-1). */
export function keyEntries(
  policy: Policy,
  reviewers: readonly string[],
): {
  readonly reviewers: { readonly name: string; readonly entry: ReviewerEntry }[];
  readonly fallbacks: { readonly name: string; readonly entry: ReviewerEntry }[];
} {
  const entries = (names: readonly string[]) =>
    names.flatMap((name) => {
      const entry = policy.reviewers.get(name);
      return entry === undefined ? [] : [{ name, entry }];
    });
  return { reviewers: entries(reviewers), fallbacks: entries(fallbacksOf(policy, reviewers)) };
}

const invalid = (detail: string): Routing => ({ invalid: 'route_invalid', detail });

function takes(policy: Policy, name: string, file: RoutedFile): boolean {
  const reviewer = policy.reviewers.get(name);
  if (reviewer === undefined) return false;
  if (reviewer.uses !== 'command') return true;
  if (file.deleted && !reviewer.deletions) return false;
  return compiled(reviewer.paths)(file.path);
}

/** The first matching route for the path, and for the old path of a pair; undefined where none matches. */
function routesOf(policy: Policy, file: RoutedFile): (Policy['routes'][number] | undefined)[] {
  const paths = file.from === null ? [file.path] : [file.path, file.from];
  return paths.map((path) =>
    policy.routes.find(({ when }) => {
      const { lines } = when;
      if (when.paths !== undefined && !compiled(when.paths)(path)) return false;
      if (when.kinds !== undefined && !when.kinds.includes(file.kind)) return false;
      if (lines === undefined) return true;
      if (file.lines === null) return false;
      return file.lines >= (lines.min ?? 0) && file.lines <= (lines.max ?? Number.POSITIVE_INFINITY);
    }),
  );
}

// a policy's pattern lists are compiled once, not once a file: 4,000 files meet the same lists
const matchers = new WeakMap<readonly string[], (path: WirePath) => boolean>();

function compiled(patterns: readonly string[]): (path: WirePath) => boolean {
  const known = matchers.get(patterns);
  if (known !== undefined) return known;
  const made = compilePatterns(patterns);
  matchers.set(patterns, made);
  return made;
}
