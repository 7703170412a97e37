import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startEmbedded } from '../../db/embedded.ts';
import { type Child, startChild } from '../helpers/process.ts';

// initdb of a machine that does other things can take many seconds
vi.setConfig({ testTimeout: 120_000 });

let folder: string;
let children: Child[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'countersign-embedded-'));
});
afterEach(async () => {
  for (const child of children) child.kill();
  await Promise.all(children.map((child) => child.ended));
  children = [];
  await gone(folder);
  rmSync(folder, { recursive: true, force: true });
});

interface Told {
  url: string;
  pid: number;
  reused: boolean;
  folder: string;
}
const start = () => {
  const child = startChild('embedded', [folder]);
  children.push(child);
  return child;
};
const told = async (child: Child) => JSON.parse(await child.line()) as Told;
const alive = (pid: number) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
async function until(what: () => boolean, ms = 60_000): Promise<boolean> {
  for (const end = Date.now() + ms; Date.now() < end; await new Promise((done) => setTimeout(done, 10))) {
    if (what()) return true;
  }
  return what();
}
const gone = (of: string) => until(() => !existsSync(join(of, 'data', 'postmaster.pid')));
async function query(url: string, text: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await client.query(text);
  } finally {
    await client.end();
  }
}

test('embedded: kill -9 of its owner leaves no server, no pid file, and all rows for the next start', async () => {
  const first = start();
  const { url, pid } = await told(first);
  await query(url, 'create table kept as select 7 as n');
  first.kill();
  expect(await until(() => !alive(pid))).toBe(true);
  expect(await gone(folder)).toBe(true);
  const second = await told(start());
  expect(second.reused).toBe(false);
  expect((await query(second.url, 'select n from kept')).rows).toEqual([{ n: 7 }]);
});

test('embedded: a first start raced by three processes makes one cluster and one server, which all can use', async () => {
  const all = await Promise.all([start(), start(), start()].map(told));
  expect(all.filter((one) => !one.reused)).toHaveLength(1);
  expect(new Set(all.map((one) => one.pid)).size).toBe(1);
  for (const one of all) expect((await query(one.url, 'select 1 as n')).rows).toEqual([{ n: 1 }]);
});

test('embedded: a process killed in the middle of the first start does not block the next one', async () => {
  const killed = start();
  await until(() => existsSync(join(folder, 'start.lock')));
  killed.kill();
  await killed.ended;
  const server = await startEmbedded({ folder, durable: false });
  expect((await query(server.url(), 'select 1 as n')).rows).toEqual([{ n: 1 }]);
  await server.stop();
});

test('embedded: a pid file whose number is another program’s by now is stale', async () => {
  const first = await startEmbedded({ folder, durable: false });
  await first.stop();
  writeFileSync(
    join(folder, 'data', 'postmaster.pid'),
    `${process.pid}\n${folder}/data\n1\n5432\n\n127.0.0.1\n\nready\n`,
  );
  const second = await startEmbedded({ folder, durable: false });
  expect(second.reused).toBe(false);
  await second.stop();
});

test('embedded: the password is random, in a file that nobody else reads, and never in the argument list', async () => {
  const server = await startEmbedded({ folder, durable: false });
  const password = readFileSync(join(server.folder, 'password'), 'utf8');
  expect(password).toHaveLength(24);
  expect(statSync(join(server.folder, 'password')).mode & 0o777).toBe(0o600);
  if (existsSync('/proc'))
    expect(readFileSync(`/proc/${server.pid}/cmdline`, 'utf8')).not.toContain(password);
  // nor does the server inherit what may hold the App's secrets
  if (process.platform === 'linux') {
    expect(readFileSync(`/proc/${server.pid}/environ`, 'utf8')).not.toContain('npm_');
  }
  await expect(query(server.url().replace(password, 'wrong'), 'select 1')).rejects.toMatchObject({
    code: '28P01',
  });
  await server.stop();
});

test.runIf(process.getuid?.() === 0)(
  'embedded: root below a folder of mode 0700 falls back to /var/tmp',
  async () => {
    const hidden = mkdtempSync(join(tmpdir(), 'countersign-hidden-')); // mkdtemp makes 0700, owned by root
    const server = await startEmbedded({ folder: join(hidden, 'postgres'), durable: false });
    expect(server.folder).toMatch(/^\/var\/tmp\/countersign-[0-9a-f]{16}$/);
    expect((await query(server.url(), 'select 1 as n')).rows).toEqual([{ n: 1 }]);
    await server.stop();
    rmSync(server.folder, { recursive: true, force: true });
    rmSync(hidden, { recursive: true, force: true });
  },
);
