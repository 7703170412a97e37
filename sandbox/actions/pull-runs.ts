import picomatch from 'picomatch';
import { parse } from 'yaml';
import type { Json, User } from '../model.ts';
import type { Pull } from '../pull.ts';
import { userJson } from '../render/accounts.ts';
import { pullJson, testMerge } from '../render/pulls.ts';
import { repositoryJson } from '../render/repositories.ts';
import type { Value } from './expressions.ts';
import type { Actions } from './service.ts';
import { BadWorkflow } from './workflow.ts';

/** What a workflow file says of `pull_request`. */
export interface PullTrigger {
  readonly types: readonly string[];
  /** Globs of base branches; null: all. */
  readonly branches: readonly string[] | null;
}

// D:events-that-trigger-workflows: without `types` these three.
const STANDARD = ['opened', 'synchronize', 'reopened'];

/** A file's `pull_request` trigger, or null when it has none; throws BadWorkflow for filters that are not run here. */
export function pullTrigger(text: string): PullTrigger | null {
  const file: unknown = parse(text);
  const on = (file as Json | null)?.['on'];
  if (on === 'pull_request' || (Array.isArray(on) && on.includes('pull_request')))
    return { types: STANDARD, branches: null };
  if (typeof on !== 'object' || on === null || Array.isArray(on) || !('pull_request' in on)) return null;
  const trigger = (on as Json)['pull_request'] as Json | null;
  if (trigger === null) return { types: STANDARD, branches: null };
  for (const key of Object.keys(trigger))
    if (key !== 'types' && key !== 'branches') throw new BadWorkflow(`pull_request.${key} is not run here`);
  const list = (value: unknown): string[] | null => (value === undefined ? null : [value].flat().map(String));
  return { types: list(trigger['types']) ?? STANDARD, branches: list(trigger['branches']) };
}

/**
 * Starts the `pull_request` workflows of a pull request: the files of the merge of base and head run on
 * refs/pull/N/merge, so none at all while the two conflict; the run belongs to the head commit
 * (facts/github.md §3, §15; D:events-that-trigger-workflows).
 */
export async function startPullRuns(
  actions: Actions,
  pull: Pull,
  action: string,
  sender: User,
  more: Json,
): Promise<void> {
  const { repository, number } = pull;
  const { world } = repository;
  const sha = await testMerge(pull, await pull.baseTip());
  if (sha === null) return;
  for (const name of await repository.git.names(sha, '.github/workflows')) {
    if (!/\.ya?ml$/.test(name)) continue;
    const path = `.github/workflows/${name}`;
    const text = await actions.files.read(repository, sha, path);
    const trigger = text === null ? null : pullTrigger(text);
    if (text === null || trigger === null || !trigger.types.includes(action)) continue;
    const { branches } = trigger;
    if (branches !== null && !picomatch.isMatch(pull.base.ref, [...branches], { dot: true })) continue;
    const payload = {
      action,
      number,
      ...more,
      pull_request: await pullJson(pull),
      repository: repositoryJson(world, repository),
      sender: userJson(world, sender),
    } as unknown as Value;
    await actions.startRun({
      repository,
      file: actions.files.register(repository, path, text),
      text,
      event: 'pull_request',
      ref: `refs/pull/${number}/merge`,
      sha,
      head: { sha: pull.head.sha, branch: pull.head.ref, repository: pull.head.repository },
      base: pull.base.ref,
      actor: sender,
      inputs: {},
      payload,
      title: pull.title,
    });
  }
}
