import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAppAuth } from '@octokit/auth-app';
import { Octokit } from '@octokit/rest';
import { verify } from '@octokit/webhooks-methods';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { App, Installation, User } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';

interface Received {
  readonly guid: string;
  readonly event: string;
  readonly headers: Record<string, unknown>;
  readonly body: string;
  readonly payload: Record<string, never>;
}

let gh: SandboxGitHub;
let alice: User;
let app: App;
let repo: Repository;
let installation: Installation;
let pull: Pull;
let hook: Server;
let received: Received[] = [];
let status = 202;

beforeAll(async () => {
  hook = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      received.push({
        guid: String(request.headers['x-github-delivery']),
        event: String(request.headers['x-github-event']),
        headers: request.headers,
        body,
        payload: JSON.parse(body),
      });
      response.writeHead(status).end('seen');
    });
  });
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
  gh = await startGitHub();
  alice = gh.createUser('alice');
  app = gh.createApp();
  gh.deliverTo(app, `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`);
  repo = await gh.createRepository({ owner: alice });
  installation = await gh.installApp(app, repo);
  await repo.commit({ branch: 'topic', files: { 'a.txt': 'a\n' } });
  pull = await repo.openPull({ head: 'topic', user: alice });
  await gh.idle();
});

beforeEach(() => {
  received = [];
  status = 202;
});

afterAll(async () => {
  expect(gh.violations).toEqual([]);
  await gh.close();
  hook.closeAllConnections();
  await new Promise((resolve) => hook.close(resolve));
});

const names = () => received.map(({ event, payload }) => `${event}.${payload['action']}`).sort();

describe('webhooks (facts §11)', () => {
  it('are signed over the raw bytes and carry GitHub’s headers', async () => {
    await pull.comment(alice, 'héllo \u2028 👀');
    await gh.idle();
    const [one] = received;
    expect(names()).toEqual(['issue_comment.created']);
    expect(
      await verify(app.webhookSecret, one?.body ?? '', String(one?.headers['x-hub-signature-256'])),
    ).toBe(true);
    expect(one?.headers).toMatchObject({
      'x-github-hook-installation-target-id': String(app.id),
      'x-github-hook-installation-target-type': 'integration',
      'user-agent': expect.stringMatching(/^GitHub-Hookshot\//),
    });
    expect(one?.payload).toMatchObject({
      installation: { id: installation.id },
      comment: { body: 'héllo \u2028 👀' },
    });
  });

  it('facts §14: a push sends push, check_suite.requested and synchronize with before and after', async () => {
    const before = pull.head.sha;
    const after = await pull.push({ files: { 'b.txt': 'b\n' } });
    await gh.idle();
    expect(names()).toEqual(['check_suite.requested', 'pull_request.synchronize', 'push.undefined']);
    expect(received.find((one) => one.event === 'pull_request')?.payload).toMatchObject({ before, after });
    expect(received.find((one) => one.event === 'push')?.payload).toMatchObject({
      forced: false,
      created: false,
    });
  });

  it('case 10: a force push to a sibling and back', async () => {
    const first = pull.head.sha;
    const second = await pull.forcePush({ files: { 'c.txt': 'c\n' } });
    await pull.forcePush(first);
    await gh.idle();
    const moves = received.filter((one) => one.event === 'pull_request').map((one) => one.payload['after']);
    expect(moves.sort()).toEqual([first, second].sort());
    expect(received.find((one) => one.event === 'push')?.payload).toMatchObject({ forced: true });
    expect(pull.head.sha).toBe(first);
  });

  it('edited tells the old base; draft, ready, close, reopen and merge follow', async () => {
    await repo.commit({ branch: 'other', files: {} });
    received = [];
    await pull.edit(alice, { base: 'other', title: 'New' });
    await pull.convertToDraft();
    await pull.readyForReview();
    await pull.close();
    await pull.reopen();
    await pull.edit(alice, { base: 'main' });
    await pull.merge(alice);
    await gh.idle();
    const edited = received.find((one) => one.payload['changes'] !== undefined)?.payload;
    expect(edited).toMatchObject({
      changes: { base: { ref: { from: 'main' } }, title: { from: expect.any(String) } },
    });
    const actions = received
      .filter((one) => one.event === 'pull_request')
      .map((one) => one.payload['action']);
    expect(actions.sort()).toEqual(
      ['edited', 'converted_to_draft', 'ready_for_review', 'closed', 'reopened', 'edited', 'closed'].sort(),
    );
    expect(await repo.tip()).toBe(pull.mergeCommit);
  });

  it('only a check run’s own app hears its button and its re-run', async () => {
    const octokit = new Octokit({
      baseUrl: gh.apiUrl,
      authStrategy: createAppAuth,
      auth: { appId: app.id, privateKey: app.privateKey, installationId: installation.id },
    });
    await octokit.rest.checks.create({
      owner: 'alice',
      repo: 'sample',
      name: 'buttons',
      head_sha: pull.head.sha,
      conclusion: 'failure',
      actions: [{ label: 'Allow', description: 'let it run', identifier: 'allow' }],
    });
    const [run] = gh.checkRuns(repo, pull.head.sha);
    if (run === undefined) throw new Error('no check run');
    await gh.pressButton(repo, run, 'allow', alice);
    await gh.rerequest(repo, run, alice);
    await gh.idle();
    expect(names()).toEqual([
      'check_run.completed',
      'check_run.created',
      'check_run.requested_action',
      'check_run.rerequested',
      'check_suite.completed',
    ]);
    const pressed = received.find((one) => one.payload['action'] === 'requested_action');
    expect(pressed?.payload).toMatchObject({
      requested_action: { identifier: 'allow' },
      sender: { login: 'alice' },
    });
  });

  it('case 4: a failed delivery is listed, not retried, and redelivered under the same GUID', async () => {
    const asApp = new Octokit({
      baseUrl: gh.apiUrl,
      authStrategy: createAppAuth,
      auth: { appId: app.id, privateKey: app.privateKey },
    });
    status = 503;
    await pull.comment(alice, 'lost');
    await gh.idle();
    status = 202;
    const failed = await asApp.rest.apps.listWebhookDeliveries({ status: 'failure' });
    expect(failed.data).toHaveLength(1);
    const [delivery] = failed.data;
    if (delivery === undefined) throw new Error('no delivery');
    expect(delivery).toMatchObject({ event: 'issue_comment', status_code: 503, redelivery: false });
    const { data: whole } = await asApp.rest.apps.getWebhookDelivery({ delivery_id: delivery.id });
    expect(whole.request.payload).toMatchObject({ comment: { body: 'lost' } });
    const answer = await asApp.rest.apps.redeliverWebhookDelivery({ delivery_id: delivery.id });
    expect(answer.status).toBe(202);
    await gh.idle();
    expect(received).toHaveLength(2);
    expect(new Set(received.map((one) => one.guid)).size).toBe(1);
    const pages = await asApp.paginate(asApp.rest.apps.listWebhookDeliveries, { per_page: 5 });
    expect(pages.length).toBe(gh.world.deliveries.length);
    gh.advance(3 * 86_400_000 + 1000);
    expect((await asApp.rest.apps.listWebhookDeliveries()).data).toEqual([]);
    gh.advance(-(3 * 86_400_000 + 1000));
  });

  it('case 2: deliveries can be doubled, dropped, delayed, held and reversed', async () => {
    const end = gh.webhooks.double(({ event }) => event === 'issue_comment', { times: 1 });
    await pull.comment(alice, 'twice');
    await gh.idle();
    expect(received).toHaveLength(2);
    expect(new Set(received.map((one) => one.guid)).size).toBe(1);
    end();
    gh.webhooks.drop(() => true, 1);
    await pull.comment(alice, 'never');
    await gh.idle();
    expect(received).toHaveLength(2);
    const hold = gh.webhooks.hold();
    await pull.comment(alice, 'first');
    await pull.comment(alice, 'second');
    await gh.idle();
    expect(hold.count()).toBe(2);
    hold.release('reversed');
    await gh.idle();
    expect(
      received
        .slice(2)
        .map((one) => (JSON.parse(one.body) as { comment: { body: string } }).comment.body)
        .sort(),
    ).toEqual(['first', 'second']);
    const undo = gh.webhooks.delay(50);
    await pull.comment(alice, 'late');
    await gh.idle();
    undo();
    expect(received).toHaveLength(5);
  });
});
