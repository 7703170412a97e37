/** Container runtimes for tests: a stand-in that isolates nothing, and the machine's own where it works. */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findRuntime, type Runtime } from '../../action/verify/runtime.ts';

const never = new AbortController().signal;

/** Why a test of real containers is skipped where `realRuntime` answers null. */
export const NO_RUNTIME = 'no Podman or Docker that works here, or no static busybox to make an image of';

/** A stand-in below `dir`, and the folder to put first on the PATH of who shall find it. */
export async function standInRuntime(dir: string): Promise<{ runtime: Runtime; bin: string }> {
  const bin = join(dir, 'bin');
  mkdirSync(bin, { recursive: true });
  copyFileSync('test/fixtures/runtime/docker.cjs', join(bin, 'docker'));
  chmodSync(join(bin, 'docker'), 0o755);
  const runtime = await findRuntime({ PATH: `${bin}:${process.env['PATH']}`, HOME: dir }, never);
  if ('none' in runtime) throw new Error(runtime.none);
  return { runtime, bin };
}

/** A runtime of this machine that ran a container of a small image of that name just now; null where there is none. */
export async function realRuntime(dir: string, image: string): Promise<Runtime | null> {
  const busybox = ['/bin/busybox', '/usr/bin/busybox'].find((file) => existsSync(file));
  const conf = join(dir, 'containers.conf');
  writeFileSync(
    conf,
    '[containers]\ndefault_ulimits=["nofile=1024:1024","nproc=1024:1024"]\n[engine]\nruntime="runc"\n',
  );
  const found = await findRuntime(
    { ...(process.env as Record<string, string>), CONTAINERS_CONF: conf },
    never,
  );
  if ('none' in found || busybox === undefined) return null;
  const run = (...args: string[]) =>
    execFileSync(found.program, args, {
      env: found.env,
      stdio: ['ignore', 'pipe', 'ignore'],
      encoding: 'utf8',
    });
  try {
    const root = join(dir, 'image');
    mkdirSync(join(root, 'bin'), { recursive: true });
    copyFileSync(busybox, join(root, 'bin/busybox'));
    for (const name of ['sh', 'sleep', 'cat', 'env', 'id', 'touch', 'test', 'mkdir', 'ls', 'grep'])
      execFileSync('ln', ['-sf', 'busybox', join(root, 'bin', name)]);
    execFileSync('tar', ['-C', root, '-cf', join(dir, 'image.tar'), '.']);
    run('import', join(dir, 'image.tar'), image);
    run('run', '--rm', '--network=none', '--read-only', image, '/bin/sh', '-c', 'true');
    return found;
  } catch {
    return null;
  }
}
