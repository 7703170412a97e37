import { rmSync } from 'node:fs';
import { killGroup } from './actions/process.ts';
import type { World } from './world.ts';

/** Should this process end before `close()`, its jobs are killed and its folder removed; gives the way to undo that. */
export function cleanOnExit(world: World): () => void {
  const clean = (): void => {
    for (const run of world.workflowRuns)
      for (const job of run.jobs) if (job.process !== null) killGroup(job.process);
    rmSync(world.root, { recursive: true, force: true });
  };
  process.once('exit', clean);
  return () => process.off('exit', clean);
}
