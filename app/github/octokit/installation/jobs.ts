/** Jobs of workflows of one installation. */
import * as z from 'zod';
import { idSchema } from '../../lossless.ts';
import type { AnnotationInfo, HeadRun, JobCalls, JobInfo } from '../../port/job.ts';
import type { Addresses } from '../address.ts';
import { type Client, parse } from '../client.ts';

/** Most runs, jobs and annotations that are looked at: a commit has few, and GitHub's own lists end at 1,000. */
const MOST = 1_000;

const headRun = z
  .object({
    id: idSchema,
    run_attempt: z.int().default(1),
    path: z.string(),
    event: z.string(),
    status: z.string().nullish(),
    conclusion: z.string().nullish(),
    head_sha: z.string(),
  })
  .transform((run) => ({
    headSha: run.head_sha,
    info: {
      id: run.id,
      attempt: run.run_attempt,
      // some servers add `@` and a ref
      workflow: run.path.replace(/^\.github\/workflows\//, '').replace(/@.*$/s, ''),
      event: run.event,
      status: run.status ?? '',
      conclusion: run.conclusion ?? null,
    } satisfies HeadRun,
  }));

const jobShape = z
  .object({
    id: idSchema,
    run_attempt: z.int().default(1),
    name: z.string(),
    status: z.string(),
    conclusion: z.string().nullish(),
    started_at: z.string().nullish(),
    completed_at: z.string().nullish(),
    labels: z.array(z.string()).default([]),
    runner_group_name: z.string().nullish(),
    check_run_url: z.string(),
  })
  .transform(
    (job): JobInfo => ({
      id: job.id,
      attempt: job.run_attempt,
      name: job.name,
      status: job.status,
      conclusion: job.conclusion ?? null,
      startedAt: job.started_at ?? null,
      completedAt: job.completed_at ?? null,
      labels: job.labels,
      runnerGroup: job.runner_group_name ?? null,
      checkRun: /\/([0-9]+)$/.exec(job.check_run_url)?.[1] ?? job.id,
    }),
  );

const annotationShape = z
  .object({
    title: z.string().nullish(),
    annotation_level: z.string().nullish(),
    message: z.string().nullish(),
  })
  .transform(
    (one): AnnotationInfo => ({
      title: one.title ?? '',
      level: one.annotation_level ?? '',
      message: one.message ?? '',
    }),
  );

/** The calls about jobs. */
export function jobs(client: Client, addresses: Addresses): JobCalls {
  return {
    listRunsOnHead: (repo, head) =>
      addresses.read(repo, async (at) => {
        const items = await client.list(
          'GET /repos/{owner}/{repo}/actions/runs',
          { ...at, head_sha: head },
          { key: 'workflow_runs', most: MOST },
        );
        return items
          .map((item) => parse(headRun, item, 'actions/list-workflow-runs-for-repo'))
          .flatMap(({ headSha, info }) => (headSha === head ? [info] : []));
      }),

    listJobs: (repo, workflowRun) =>
      addresses.read(repo, async (at) => {
        const items = await client.list(
          'GET /repos/{owner}/{repo}/actions/runs/{run_id}/jobs',
          { ...at, run_id: workflowRun, filter: 'latest' },
          { key: 'jobs', most: MOST },
        );
        return items.map((item) => parse(jobShape, item, 'actions/list-jobs-for-workflow-run'));
      }),

    listAnnotations: (repo, checkRun) =>
      addresses.read(repo, async (at) => {
        const items = await client.list(
          'GET /repos/{owner}/{repo}/check-runs/{check_run_id}/annotations',
          { ...at, check_run_id: checkRun },
          { most: MOST },
        );
        return items.map((item) => parse(annotationShape, item, 'checks/list-annotations'));
      }),

    rerunJob: (repo, job) =>
      addresses.write(repo, async (at) => {
        await client.write('POST /repos/{owner}/{repo}/actions/jobs/{job_id}/rerun', { ...at, job_id: job });
      }),

    rerunWorkflowRun: (repo, workflowRun, what) =>
      addresses.write(repo, async (at) => {
        const verb = what === 'all' ? 'rerun' : 'rerun-failed-jobs';
        await client.write(`POST /repos/{owner}/{repo}/actions/runs/{run_id}/${verb}`, {
          ...at,
          run_id: workflowRun,
        });
      }),
  };
}
