/** The server looks itself whether the code of a finding is gone: real git, the tickets of a real policy. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { fingerprint } from '../../../app/domain/finding.ts';
import { withRun } from '../../../app/flow/append-rows.ts';
import { cutTickets } from '../../../app/flow/cut-tickets.ts';
import type { Deps } from '../../../app/flow/deps.ts';
import { verifyRun } from '../../../app/flow/verify-run.ts';
import { createGitReader } from '../../../app/github/git.ts';
import { createGitHubApp } from '../../../app/github/octokit.ts';
import { carryFinding, listFindings } from '../../../db/store/finding.ts';
import { upsertRepository } from '../../../db/store/installation.ts';
import { storePolicy } from '../../../db/store/policy.ts';
import { findRun, updateRun } from '../../../db/store/run.ts';
import { type SandboxGitHub, startGitHub } from '../../../sandbox/github.ts';
import type { Repository } from '../../../sandbox/repository.ts';
import { type TestDatabase, testDatabase } from '../../helpers/database.ts';
import { app, cause } from '../../helpers/ledger.ts';
import {
  changedFile,
  INSTALLATION,
  openQueueRun,
  POLICY,
  queueDeps,
  seedRepository,
  setFiles,
  sha,
} from '../../helpers/queue.ts';
import { testRunner } from '../../helpers/runner.ts';

const folder = mkdtempSync(join(tmpdir(), 'cs-gone-'));
let gh: SandboxGitHub;
let repo: Repository;
let db: TestDatabase;
let deps: Deps;
let place: { installationId: string; repositoryId: string };
let reads = 0;

beforeAll(async () => {
  gh = await startGitHub();
});
afterAll(async () => {
  expect(gh.violations).toEqual([]);
  await gh.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  db = await testDatabase();
  const owner = gh.createUser(`alice-${Math.random().toString(36).slice(2, 8)}`);
  repo = await gh.createRepository({ owner, files: { 'README.md': 'x\n' } });
  const app = gh.createApp();
  const installed = await gh.installApp(app, repo);
  const github = createGitHubApp({
    appId: String(app.id),
    privateKey: app.privateKey,
    webhookSecret: app.webhookSecret,
    apiUrl: gh.apiUrl,
    log: pino({ level: 'silent' }),
  });
  const git = createGitReader({ directory: join(folder, String(repo.id)) });
  reads = 0;
  const base = queueDeps(db.database);
  deps = {
    ...base,
    // the queue's helpers log runners in under an installation of their own
    github: { ...base.github, installation: () => github.installation(String(installed.id)) },
    git: {
      ...base.git,
      readBlobs: (...args) => {
        reads++;
        return git.readBlobs(...args);
      },
    },
    settings: { ...base.settings, serverUrl: gh.url },
  };
  place = { installationId: INSTALLATION, repositoryId: String(repo.id) };
  await seedRepository(db.database);
  await db.database.transaction((tx) =>
    upsertRepository(tx, {
      id: place.repositoryId,
      installationId: INSTALLATION,
      ownerId: String(owner.id),
      owner: owner.login,
      name: repo.name,
      defaultBranch: 'main',
      private: false,
    }),
  );
  await openQueueRun(deps, 'r', 1, place);
});
afterEach(() => db.drop());

/** Pushes this content of a path, cuts its ticket and reviews it; `quote` is what the linter says, null nothing. */
async function review(content: string, quote: string | null, title = 'A hole', path = 'a.ts'): Promise<void> {
  await repo.commit({ branch: 'main', message: 'Change', files: { [path]: content } });
  const blobHead = createHash('sha1')
    .update(`blob ${Buffer.byteLength(content)}\0${content}`)
    .digest('hex');
  const run = await findRun(db.database.db, 'r');
  await setFiles(deps, 'r', [
    changedFile('r', path, { blobHead, key: sha(`${path} ${content} ${run?.policyHash}`) }),
  ]);
  await cutTickets(deps, { run: 'r' });
  const runner = await testRunner(deps, place.repositoryId);
  const [lease] = await runner.lease();
  if (lease === undefined) throw new Error('nothing to lease');
  const of = { path: lease.ticket.path, lens: 'security', title, quote: quote ?? '', ordinal: 0 };
  const found = {
    ...of,
    fingerprint: fingerprint(of),
    side: 'head' as const,
    start_line: 1,
    end_line: 1,
    severity: 'critical' as const,
    body: 'why',
    suggestion: null,
    grounded: true,
    reviewer: 'lint',
  };
  const { path: _path, ordinal: _ordinal, ...finding } = found;
  await runner.finish(lease, {
    verdict: quote === null ? 'approve' : 'findings',
    findings: quote === null ? [] : [finding],
  });
}

/** The policy's linter gets another command line, as a merge to the base branch does it. */
async function changePolicy(): Promise<void> {
  const bytes = Buffer.from(POLICY.toString().replace('run: [lint,', 'run: [lint, --fast,'));
  await db.database.transaction(async (tx) => {
    await updateRun(tx, 'r', { policyHash: await storePolicy(tx, bytes) });
  });
}

async function states(): Promise<unknown[]> {
  const run = await findRun(db.database.db, 'r');
  if (run === null) throw new Error('no run');
  const { verdict, rows } = await verifyRun(deps, run, { full: true });
  expect(verdict.kind).toBe('intact');
  const reasons = rows.flatMap((row) => (row.kind === 'finding.ended' ? [row.data.reason] : []));
  return [...(await listFindings(db.database.db, 'r')).map((one) => one.state), ...reasons];
}

describe('REV-5: a command that reads the finding at another path', () => {
  test('lottery: its silence there ends nothing while the code is there, as it may not look at that path', async () => {
    await review('open()\nrest\n', 'open()');
    await withRun(deps, 'r', async (unit) => {
      const print = sha('at b.ts');
      const seq = unit.append('finding.carried', {
        block: null,
        actor: app,
        cause,
        data: { finding: 1, from: 'a.ts', path: 'b.ts', fingerprint: print, head: 'a'.repeat(40) },
      });
      await carryFinding(unit.tx, 'r', 1, { path: 'b.ts', fingerprint: print, seq });
    });
    await review('rest\nopen()\n', null, 'A hole', 'b.ts');
    expect(await states()).toEqual(['open']);
    await review('rest\nmore\n', null, 'A hole', 'b.ts');
    expect(await states()).toEqual(['fixed', 'code_changed']);
  });
});

describe('RND-1: a command whose policy entry changed', () => {
  test('RND-1: its finding ends as code_changed once the quote is gone from the new content', async () => {
    await review('open()\nrest\n', 'open()');
    await changePolicy();
    await review('closed()\nrest\n', null);
    expect(await states()).toEqual(['fixed', 'code_changed']);
    expect(reads).toBe(1);
  });

  test('RND-1: it stands while the quote is anywhere in the new content, and ends when it went later', async () => {
    await review('open()\nrest\n', 'open()');
    await changePolicy();
    await review('rest\n  open()\nmore\n', null);
    expect(await states()).toEqual(['open']);
    await review('rest\nmore\n', null);
    expect(await states()).toEqual(['fixed', 'code_changed']);
  });

  test('RND-1: a quote that the runner cut is not taken for gone', async () => {
    const long = `const x = '${'y'.repeat(5_000)}';`;
    await review(`${long}\nrest\n`, `${long.slice(0, 3_999)}…`);
    await changePolicy();
    await review(`${long}\nother\n`, null);
    expect(await states()).toEqual(['open']);
    await review('other\n', null);
    expect(await states()).toEqual(['fixed', 'code_changed']);
  });

  test('RND-1, REV-8: a quote with a value masked that only the runner knew proves nothing', async () => {
    await review('key = hunter2hunter2\n', 'key = [redacted:secret]');
    await changePolicy();
    await review('key = hunter2hunter2\nmore\n', null);
    expect(await states()).toEqual(['open']);
    expect(reads).toBe(1);
  });

  test('RND-1: under the same entry silence is enough and nothing is read', async () => {
    await review('open()\nrest\n', 'open()');
    await review('rest\nopen()\n', null);
    expect(await states()).toEqual(['fixed', 'not_raised_again']);
    expect(reads).toBe(0);
  });
});
