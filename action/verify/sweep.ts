/**
 * Containers that a killed runner left (POOL-1). Others of its pool may run on the same machine: a container is left when
 * the process that made it is gone from here, or when nobody can want it any more.
 */
import { hostname } from 'node:os';
import * as z from 'zod';
import { askRuntime, type Runtime } from './runtime.ts';

/** The labels of a container: its pool, who made it, and until when it is wanted. */
export const POOL_LABEL = 'countersign.pool';
/** As `containerOwner` says it. */
export const OWNER_LABEL = 'countersign.owner';
/** Seconds since 1970. */
export const UNTIL_LABEL = 'countersign.until';

const labelsSchema = z.record(z.string(), z.string());

/** This process, as a label names it. */
export function containerOwner(pid = process.pid): string {
  return `${hostname()}/${pid}`;
}

/** Removes what is left of this pool, and nothing of another one; to be called before this process makes any. */
export async function sweepContainers(runtime: Runtime, pool: string, signal: AbortSignal): Promise<number> {
  const listed = await askRuntime(
    runtime,
    ['ps', '--all', '--quiet', `--filter=label=${POOL_LABEL}=${pool}`],
    signal,
  );
  const ids = listed.split('\n').filter((line) => /^[0-9a-f]{6,64}$/.test(line));
  let removed = 0;
  for (const id of ids) {
    if (!isLeft(await labelsOf(runtime, id))) continue;
    await askRuntime(runtime, ['rm', '--force', '--volumes', id]).catch(() => '');
    removed += 1;
  }
  return removed;
}

async function labelsOf(runtime: Runtime, id: string): Promise<Readonly<Record<string, string>>> {
  const question = ['inspect', '--type=container', '--format={{json .Config.Labels}}', id];
  // one that went meanwhile has none, and is nobody's
  const said = await askRuntime(runtime, question).catch(() => '{}');
  const parsed = labelsSchema.safeParse(JSON.parse(said));
  return parsed.success ? parsed.data : {};
}

function isLeft(labels: Readonly<Record<string, string>>): boolean {
  const [host, pid] = (labels[OWNER_LABEL] ?? '').split('/');
  if (host === hostname() && !isAlive(Number(pid))) return true;
  return Number(labels[UNTIL_LABEL] ?? 0) * 1000 < Date.now();
}

/** Whether another process of that id lives; one of our own id was before us. */
function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
