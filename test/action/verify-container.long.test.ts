/**
 * Verify commands in throw-away containers. Where this machine can run containers (Podman or Docker, and a static
 * busybox to make an image of), every test runs in real ones; everywhere on a stand-in that takes Docker's
 * documented flags and isolates nothing.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { containerPlace, createArguments } from '../../action/verify/container.ts';
import { type Executed, execute } from '../../action/verify/execute.ts';
import { verifyInContainer } from '../../action/verify/pooled.ts';
import { findRuntime, type Runtime } from '../../action/verify/runtime.ts';
import { containerOwner, sweepContainers } from '../../action/verify/sweep.ts';
import { redactor } from '../../app/domain/redact.ts';
import { receiptTrouble } from '../../app/protocol/receipt.ts';
import { realRuntime, standInRuntime } from '../helpers/containers.ts';
import { makeRepository } from './harness.ts';

const dir = mkdtempSync(path.join(tmpdir(), 'cs-container-'));
const never = new AbortController().signal;
/** Of this process alone, beside others on one machine. */
const POOL = `p${process.pid}`;
const IMAGE = `cs-test:${process.pid}`;
afterAll(() => {
  const [, [, runtime] = []] = machines;
  if (runtime != null)
    execFileSync(runtime.program, ['rmi', '--force', IMAGE], { env: runtime.env, stdio: 'ignore' });
  rmSync(dir, { recursive: true, force: true });
});

const machines: [name: string, runtime: Runtime | null][] = [
  ['a stand-in', (await standInRuntime(dir)).runtime],
  ['a real container', await realRuntime(dir, IMAGE)],
];

let count = 0;
type Run = { done: Executed; workspace: string; evidence: string; shown: string[] };

async function run(
  runtime: Runtime,
  code: string,
  more: {
    timeout?: number;
    artifacts?: string[];
    ports?: string[];
    env?: Record<string, string>;
    signal?: AbortSignal;
    onStart?: () => Promise<void>;
  } = {},
): Promise<Run> {
  const at = path.join(dir, `run-${++count}`);
  const workspace = path.join(at, 'work');
  const evidence = path.join(at, 'evidence');
  mkdirSync(workspace, { recursive: true });
  writeFileSync(path.join(workspace, 'a.txt'), 'one\n');
  const shown: string[] = [];
  const options = {
    runtime,
    image: IMAGE,
    network: 'none',
    memoryMb: 256,
    processes: 100,
    pool: POOL,
    owner: containerOwner(),
  } as const;
  const done = await execute({
    name: 't',
    command: { run: ['/bin/sh', '-c', code], env: {}, ports: [], artifacts: [], timeout: 60_000, ...more },
    base: null,
    head: null,
    workspace,
    evidence,
    tempDir: at,
    path: process.env['PATH'] ?? '',
    place: await containerPlace(options, never),
    redactor: redactor([]),
    show: (line) => void shown.push(line),
    signal: more.signal ?? never,
    ...(more.onStart === undefined ? {} : { onStart: more.onStart }),
  });
  return { done, workspace, evidence, shown };
}

const left = (runtime: Runtime): string =>
  execFileSync(runtime.program, ['ps', '--all', '--quiet', `--filter=label=countersign.pool=${POOL}`], {
    env: runtime.env,
    encoding: 'utf8',
  });

describe.each(machines)('in %s', (name, runtime) => {
  const here = test.skipIf(runtime === null);
  const on = runtime as Runtime;

  here(
    'VER-1: a command gets the tree, a folder for evidence and what the policy says; nothing is left',
    async () => {
      process.env['POOL_TOKEN'] = 'a-token-of-the-pool';
      const { done, workspace, evidence, shown } = await run(
        on,
        'env; cat a.txt; echo proof > "$COUNTERSIGN_OUTPUT/proof.txt"; test "$WEB" -gt 1024',
        { env: { GREETING: 'hello' }, ports: ['WEB'] },
      ).finally(() => delete process.env['POOL_TOKEN']);
      expect(done.notes).toEqual([]);
      expect(receiptTrouble(done.receipt)).toBeNull();
      const names = shown
        .filter((line) => line.includes('='))
        .map((line) => line.slice(0, line.indexOf('=')));
      const allowed = [
        'CI',
        'HOME',
        'TMPDIR',
        'PATH',
        'HOSTNAME',
        'PWD',
        'SHLVL',
        '_',
        'OLDPWD',
        'WEB',
        'GREETING',
        'container',
        'TERM',
      ];
      expect(names.filter((name) => !allowed.includes(name) && !name.startsWith('COUNTERSIGN_'))).toEqual([]);
      expect(shown).toContain('one');
      expect(readFileSync(path.join(evidence, 'output/proof.txt'), 'utf8')).toBe('proof\n');
      expect(readdirSync(workspace)).toEqual(['a.txt']);
      const start = JSON.parse(readFileSync(path.join(evidence, 'start.json'), 'utf8'));
      expect(start.process).toMatch(/^container countersign-/);
      expect(left(on)).toBe('');
    },
  );

  here('VER-3: the exit that counts is the container’s; changes and missing artifacts are seen', async () => {
    expect((await run(on, 'exit 7')).done.receipt).toMatchObject({ started: true, exit: 7 });
    const changed = await run(on, 'echo more >> a.txt');
    expect(receiptTrouble(changed.done.receipt)).toBe('mutated');
    const missing = await run(on, 'mkdir out; echo x > out/a', { artifacts: ['out/', 'gone'] });
    expect(missing.done.receipt.artifacts.missing.items).toEqual(['gone']);
    expect(missing.done.receipt.mutated.items).toEqual([]);
    expect(left(on)).toBe('');
  });

  here('VER-2: a start that is refused elsewhere lets nothing go, and exits 125', async () => {
    const { done, workspace } = await run(on, 'touch ran', {
      onStart: () => Promise.reject(new Error('fenced')),
    });
    expect(done.receipt).toMatchObject({ started: false, exit: 125 });
    expect(existsSync(path.join(workspace, 'ran'))).toBe(false);
    expect(left(on)).toBe('');
  });

  here('VER-3: a time-out and a lost lease end the container, what ignores TERM in it too', async () => {
    const stubborn = 'trap "" TERM; echo began; while :; do sleep 0.2; done';
    const late = await run(on, stubborn, { timeout: 1000 });
    expect(late.done.receipt).toMatchObject({ timed_out: true, started: true });
    expect(receiptTrouble(late.done.receipt)).toBe('timed_out');
    const lost = new AbortController();
    const started = run(on, stubborn, {
      signal: lost.signal,
      onStart: async () => void setTimeout(() => lost.abort(), 500),
    });
    expect((await started).done.receipt).toMatchObject({ cancelled: true, tree: { after: null } });
    expect(left(on)).toBe('');
  });

  here('POOL-1: what a killed runner left is removed, and nothing of another pool', async () => {
    const gone = execFileSync('sh', ['-c', 'echo $$'], { encoding: 'utf8' }).trim();
    const soon = Math.ceil(Date.now() / 1000) + 60;
    for (const [name, pool, owner, untilS] of [
      ['gone', POOL, containerOwner(Number(gone)), soon],
      ['before-us', POOL, containerOwner(), soon],
      ['late', POOL, 'another-machine/1', soon - 120],
      ['beside-us', POOL, containerOwner(process.ppid), soon],
      ['elsewhere', POOL, 'another-machine/1', soon],
      ['other', `${POOL}-other`, containerOwner(Number(gone)), soon],
    ] as const)
      execFileSync(
        on.program,
        createArguments({
          options: { runtime: on, image: IMAGE, network: 'none', memoryMb: 256, processes: 100, pool, owner },
          untilS,
          name: `countersign-${name}-${POOL}`,
          user: { uid: 65_534, gid: 65_534 },
          workspace: dir,
          output: dir,
          env: {},
          argv: ['/bin/sh', '-c', 'true'],
        }),
        { env: on.env, stdio: 'ignore' },
      );
    expect(await sweepContainers(on, POOL, never)).toBe(3);
    expect(left(on).trim().split('\n')).toHaveLength(2);
    for (const name of ['beside-us', 'elsewhere'])
      execFileSync(on.program, ['rm', '--force', `countersign-${name}-${POOL}`], {
        env: on.env,
        stdio: 'ignore',
      });
    expect(left(on)).toBe('');
    expect(await sweepContainers(on, `${POOL}-other`, never)).toBe(1);
  });

  here('VER-1: an image that is not there is said, and none is pulled', async () => {
    const options = {
      runtime: on,
      network: 'none',
      memoryMb: 256,
      processes: 100,
      pool: POOL,
      owner: containerOwner(),
    } as const;
    await expect(containerPlace({ ...options, image: 'cs-not-here:1' }, never)).rejects.toMatchObject({
      code: 'config_value',
      message: 'the image cs-not-here:1 is not on this machine, and the pool pulls none',
    });
    await expect(containerPlace({ ...options, image: '--privileged' }, never)).rejects.toThrow(
      'not the name',
    );
  });

  test.skipIf(runtime === null || name === 'a stand-in')(
    'VER-1: no network, no rights, no other user, nothing of the machine, nothing to write to but the tree',
    async () => {
      const { done, shown } = await run(
        on,
        'id; cat /proc/self/status; cat /proc/net/dev; ls /; touch /bin/x; touch /tmp/fine',
      );
      expect(done.receipt.exit).toBe(0);
      const text = shown.join('\n');
      expect(text).toContain('uid=65534');
      for (const set of ['CapEff', 'CapPrm', 'CapBnd']) expect(text).toMatch(new RegExp(`${set}:\\s+0+\\n`));
      expect(text).toMatch(/NoNewPrivs:\s+1/);
      expect(
        text
          .match(/^ *\w+:.*\d+ +\d+ +\d+ +\d+ +\d+ +\d+ +\d+ +\d+ +\d+/gm)
          ?.map((l) => l.trim().split(':')[0]),
      ).toEqual(['lo']);
      expect(done.receipt.stderr.tail).toContain('Read-only file system');
    },
  );
});

describe('a head of a repository', () => {
  const [, runtime] = machines[1]?.[1] == null ? (machines[0] ?? []) : (machines[1] ?? []);

  test('VER-1: its files alone are in the container, as the tree that the head has; nothing of it is left', async () => {
    const repository = makeRepository(
      { 'a.txt': 'base\n' },
      { 'a.txt': 'head\n', 'sub/run.sh': '#!/bin/sh\necho ran\n' },
      (git, at) => {
        execFileSync('ln', ['-s', 'sub/run.sh', path.join(at, 'link')]);
        chmodSync(path.join(at, 'sub/run.sh'), 0o755);
        writeFileSync(path.join(at, '.gitattributes'), '* filter=evil export-ignore\n');
        git('add', '-A');
      },
    );
    const tempDir = path.join(dir, 'pooled');
    mkdirSync(tempDir);
    const shown: string[] = [];
    const { receipt } = await verifyInContainer({
      name: 'unit',
      command: {
        run: ['/bin/sh', '-c', './link; cat a.txt; ls -a'],
        env: {},
        ports: [],
        artifacts: [],
        timeout: 60_000,
      },
      container: {
        runtime: runtime as Runtime,
        image: IMAGE,
        network: 'none',
        memoryMb: 256,
        processes: 100,
        pool: POOL,
        owner: containerOwner(),
      },
      remote: repository.url,
      base: repository.base,
      head: repository.head,
      token: '',
      serverUrl: '',
      path: process.env['PATH'] ?? '',
      tempDir,
      redactor: redactor([]),
      show: (line) => void shown.push(line),
      onStart: async () => undefined,
      signal: never,
    });
    const tree = repository.git('rev-parse', `${repository.head}^{tree}`);
    expect(receipt).toMatchObject({ exit: 0, tree: { before: tree, after: tree }, head: repository.head });
    expect(shown).toEqual(expect.arrayContaining(['ran', 'head', 'sub', '.gitattributes']));
    expect(shown).not.toContain('.git');
    expect(readdirSync(tempDir)).toEqual([]);
    repository.remove();
  });
});

describe('without one', () => {
  test('VER-1: a machine without a runtime says so in one line', async () => {
    const empty = path.join(dir, 'empty');
    mkdirSync(empty);
    expect(await findRuntime({ PATH: empty }, never)).toEqual({
      none: 'no container runtime: docker is not there, podman is not there; takes no verify commands',
    });
    writeFileSync(
      path.join(empty, 'docker'),
      '#!/bin/sh\necho "Cannot connect to the Docker daemon" >&2\nexit 1\n',
      { mode: 0o755 },
    );
    expect(await findRuntime({ PATH: empty }, never)).toMatchObject({
      none: expect.stringContaining('docker does not answer (Cannot connect to the Docker daemon)'),
    });
  });

  test('ACT-4: every value of a policy is an argument of its own, after the image or behind its flag', () => {
    const runtime = { program: 'podman', version: '5', rootless: true, env: {} } as const;
    const args = createArguments({
      options: {
        runtime,
        image: 'img:1',
        network: 'open',
        memoryMb: 512,
        processes: 9,
        pool: POOL,
        owner: 'h/1',
      },
      untilS: 7,
      name: 'n',
      user: { uid: 1000, gid: 1000 },
      workspace: '/w',
      output: '/o',
      env: { A: '$(id) --privileged' },
      argv: ['--weird', '--privileged', '`id`'],
    });
    expect(args).toEqual([
      'create',
      '--name=n',
      `--label=countersign.pool=${POOL}`,
      '--label=countersign.owner=h/1',
      '--label=countersign.until=7',
      '--pull=never',
      '--hostname=countersign',
      '--network=bridge',
      '--cap-drop=ALL',
      '--security-opt=no-new-privileges',
      '--read-only',
      '--tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777',
      '--pids-limit=9',
      '--memory=512m',
      '--no-healthcheck',
      '--restart=no',
      '--userns=keep-id',
      '--user=1000:1000',
      '--volume=/w:/work:Z',
      '--volume=/o:/evidence:Z',
      '--workdir=/work',
      '--env=A=$(id) --privileged',
      '--entrypoint=--weird',
      'img:1',
      '--privileged',
      '`id`',
    ]);
    expect(() =>
      createArguments({
        options: {
          runtime,
          image: 'i',
          network: 'none',
          memoryMb: 1,
          processes: 1,
          pool: POOL,
          owner: 'h/1',
        },
        untilS: 7,
        name: 'n',
        user: { uid: 1, gid: 1 },
        workspace: '/w:/etc',
        output: '/o',
        env: {},
        argv: ['a'],
      }),
    ).toThrow('cannot be mounted');
  });
});
