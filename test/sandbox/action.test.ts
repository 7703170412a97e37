import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAppAuth } from '@octokit/auth-app';
import { Octokit } from '@octokit/rest';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WORKFLOW_PATH, workflowFile } from '../../app/domain/workflow.ts';
import { PROTOCOL_VERSION } from '../../app/protocol/runner.ts';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';

let gh: SandboxGitHub;
let server: Server;
const asked: { path: string; body: string }[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => {
      asked.push({ path: request.url ?? '', body });
      if (request.url === '/api/v1/ping') {
        const greeting = { protocol: PROTOCOL_VERSION, server: 'test', run: null };
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(greeting));
        return;
      }
      const error = { error: { code: 'login_refused', message: 'nobody gets in here' } };
      response.writeHead(403, { 'content-type': 'application/json' }).end(JSON.stringify(error));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  gh = await startGitHub();
});

afterAll(async () => {
  expect(gh.violations).toEqual([]);
  await gh.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

it('the workflow file people get runs this tree’s built Action, with its inputs and an identity of the job', async () => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const alice = gh.createUser('alice');
  const repo = await gh.createRepository({
    owner: alice,
    files: { [WORKFLOW_PATH]: workflowFile({ serverUrl: url, ref: 'acme/countersign@v1' }) },
  });
  const app = gh.createApp();
  const installation = await gh.installApp(app, repo);
  const auth = { appId: app.id, privateKey: app.privateKey, installationId: installation.id };
  const octokit = new Octokit({ baseUrl: gh.apiUrl, authStrategy: createAppAuth, auth });
  await octokit.rest.actions.createWorkflowDispatch({
    owner: 'alice',
    repo: 'sample',
    workflow_id: 'countersign.yml',
    ref: 'main',
    inputs: { nonce: 'abc' },
  });
  await gh.idle();
  const [run] = gh.actions.runs;
  const log = run?.jobs[0]?.log ?? '';
  expect({ conclusion: run?.conclusion, log }).toMatchObject({
    conclusion: 'failure',
    log: expect.stringContaining('starting'),
  });
  const token = /ey[\w-]+\.[\w-]+\.[\w-]+/.exec(asked.map(({ body }) => body).join('\n'))?.[0] ?? '';
  const keys = createRemoteJWKSet(new URL(`${gh.oidc.issuer}/.well-known/jwks`));
  const { payload } = await jwtVerify(token, keys, {
    issuer: gh.oidc.issuer,
    audience: url,
  });
  expect(payload['run_id']).toBe(String(run?.id));
  expect(log).not.toContain(token);
});
