/**
 * Where mode `verify` may run (ACT-3, VER-1): in a job of `pull_request` on the merge ref of a pull request,
 * which has a read-only token for forks, no secrets, and a cache of its own. Everything else is refused
 * before anything of the pull request is started.
 */
import * as z from 'zod';
import { oidSchema } from '../../app/domain/ledger/row-fields.ts';
import { Refusal } from '../../app/errors.ts';
import type { VerifyInputs } from './inputs.ts';

/** The pull request a job is for. */
export type PullEvent = Readonly<{ number: number; base: string; head: string; fork: boolean }>;

const repo = z.object({ id: z.number(), full_name: z.string() });
const payloadSchema = z.object({
  pull_request: z.object({
    number: z.int().min(1),
    base: z.object({ sha: oidSchema, repo }),
    // a fork that was deleted has no repository any more
    head: z.object({ sha: oidSchema, repo: repo.nullable() }),
  }),
});

const PULL_REF = /^refs\/pull\/[0-9]+\/merge$/;

const ACCEPTED = 'a workflow that is started by `on: pull_request`, as `countersign workflow` prints it';

/** The event of this job; throws Refusal `not_supported` for one that must not run code of a pull request, or `bad_request`. */
export function readPullEvent(inputs: VerifyInputs, payload: string): PullEvent {
  if (inputs.event === 'pull_request_target')
    throw new Refusal(
      'not_supported',
      'verify never runs on pull_request_target: such a job has secrets, a token that may write, and the cache of the default branch, and would give them to code of a pull request. Use on: pull_request',
      ACCEPTED,
    );
  if (inputs.event !== 'pull_request')
    throw new Refusal(
      'not_supported',
      `verify runs only on pull_request, and this job was started by ${inputs.event === '' ? 'nothing that is known' : inputs.event}: a run on a branch of the repository may write the cache that its releases restore`,
      ACCEPTED,
    );
  // after a merge, `pull_request: closed` runs on the base branch
  if (!PULL_REF.test(inputs.ref))
    throw new Refusal(
      'not_supported',
      `verify runs only on the merge ref of a pull request, and this job is on ${inputs.ref === '' ? 'no ref' : inputs.ref}`,
      'on: pull_request without the type closed',
    );
  if (inputs.canMint)
    throw new Refusal(
      'not_supported',
      'this job has id-token: write, so code of the pull request could prove itself as this repository. Take it from the job of verify',
      'permissions: contents: read',
    );
  const { pull_request: pull } = parsePayload(payload);
  const { base, head } = pull;
  const fork =
    head.repo === null || head.repo.id !== base.repo.id || head.repo.full_name !== base.repo.full_name;
  if (fork && !inputs.hosted)
    throw new Refusal(
      'not_supported',
      'verify never runs on a self-hosted runner for a pull request from a fork: what it leaves there would meet the next job',
      'runs-on: a GitHub-hosted machine',
    );
  return { number: pull.number, base: base.sha, head: head.sha, fork };
}

function parsePayload(text: string): z.infer<typeof payloadSchema> {
  let json: unknown = null;
  try {
    json = JSON.parse(text);
  } catch {
    // refused below, as an empty one is
  }
  const parsed = payloadSchema.safeParse(json);
  if (!parsed.success)
    throw new Refusal(
      'bad_request',
      `the file of GITHUB_EVENT_PATH does not hold a pull request (${parsed.error.issues[0]?.path.join('.') ?? '?'})`,
      'the event that GitHub wrote',
    );
  return parsed.data;
}
