/** Workflow runs of one installation. */
import * as z from 'zod';
import { idSchema } from '../../lossless.ts';
import type { GitHub } from '../../port.ts';
import type { Addresses } from '../address.ts';
import { type Client, parse } from '../client.ts';
import { startedRunShape, workflowRunShape } from '../shapes.ts';

type Workflows = Pick<
  GitHub,
  'dispatchWorkflow' | 'getWorkflowRun' | 'listWorkflowRuns' | 'countJobs' | 'cancelWorkflowRun'
>;

/** The workflow calls; `orNull` turns `github_not_found` into null. */
export function workflows(
  client: Client,
  addresses: Addresses,
  orNull: <T>(promise: Promise<T>) => Promise<T | null>,
): Workflows {
  return {
    dispatchWorkflow: (repo, workflow, ref, inputs) =>
      addresses.write(repo, async (at) => {
        const { data } = await client.write(
          'POST /repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches',
          // the id of the run is answered only when asked for, and not by every server (POOL-4)
          { ...at, workflow_id: workflow, ref, inputs, return_run_details: true },
        );
        const told = z.object({ workflow_run_id: idSchema }).safeParse(data);
        return { workflowRunId: told.success ? told.data.workflow_run_id : null };
      }),

    getWorkflowRun: (repo, id) =>
      orNull(
        addresses.read(repo, async (at) => {
          const { data } = await client.read('GET /repos/{owner}/{repo}/actions/runs/{run_id}', {
            ...at,
            run_id: id,
          });
          const { id: _, ...run } = parse(startedRunShape, data, 'actions/get-workflow-run');
          return run;
        }),
      ),

    listWorkflowRuns: (repo, workflow, since) =>
      addresses.read(repo, async (at) => {
        const items = await client.list(
          'GET /repos/{owner}/{repo}/actions/workflows/{workflow_id}/runs',
          { ...at, workflow_id: workflow, created: `>=${since}` },
          { key: 'workflow_runs', most: 100 },
        );
        return items.map((item) => parse(workflowRunShape, item, 'actions/list-workflow-runs'));
      }),

    countJobs: (repo, workflowRunId) =>
      addresses.read(repo, async (at) => {
        const route = 'GET /repos/{owner}/{repo}/actions/runs/{run_id}/jobs';
        const { data } = await client.read(route, { ...at, run_id: workflowRunId, per_page: 1 });
        return parse(z.object({ total_count: z.int() }), data, 'actions/list-jobs-for-workflow-run')
          .total_count;
      }),

    cancelWorkflowRun: (repo, id) =>
      addresses.write(repo, async (at) => {
        await client.write('POST /repos/{owner}/{repo}/actions/runs/{run_id}/cancel', { ...at, run_id: id });
      }),
  };
}
