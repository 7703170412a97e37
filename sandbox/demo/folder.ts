/** The demo's data: a folder of its own a process, so that two demos never meet, and none left behind. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fallbackFolder } from '../../db/embedded/place.ts';

/** A process id means something on one host only; containers that share a folder have names of their own. */
const HOST = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);

/** Makes this process's folder below `parent`, and removes those of processes of this host that are gone. */
export function openDemoFolder(parent: string): string {
  for (const name of readdirSync(parent)) {
    const [, host, pid] = /^data-([0-9a-f]{8})-([0-9]+)-/.exec(name) ?? [];
    if (host === HOST && !isAlive(Number(pid))) removeDemoFolder(join(parent, name));
  }
  return mkdtempSync(join(parent, `data-${HOST}-${process.pid}-`));
}

/** Removes such a folder, and where its Postgres lay if it could not lie there. */
export function removeDemoFolder(folder: string): void {
  rmSync(fallbackFolder(join(folder, 'postgres')), { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
