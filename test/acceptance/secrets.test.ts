/** Canaries: values that may stand nowhere but where they were put, looked for in all that leaves the product (REV-8, house rule). */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestStage, testStage } from '../helpers/stage.ts';

const lines: string[] = [];
let stage: TestStage;
beforeAll(async () => {
  stage = await testStage({ logLevel: 'trace', log: (line) => lines.push(line) });
});
afterAll(() => stage.close());

it('REV-8: no secret of the server, of a job or of a file is in a log, a job log, GitHub, the queue or the ledger', async () => {
  const ids = stage.server.deps.ids as { secret: () => string };
  const told: string[] = [];
  const fresh = ids.secret.bind(ids);
  ids.secret = () => {
    const secret = fresh();
    told.push(secret);
    return secret;
  };
  const leaked = `ghp_${'q7W2e9R4t6'.repeat(4).slice(0, 36)}`;
  const { repository } = await stage.repository({ name: 'canaries' });
  const wrong = { times: 2, status: 500, message: 'boom' };
  stage.gh.faults.add({ ...wrong, on: 'git' });
  stage.gh.faults.add({ ...wrong, on: 'checks/create' });
  stage.gh.faults.add({ times: 1, on: 'apps/create-installation-access-token', hangUp: true });
  await repository.commit({
    branch: 'topic',
    author: stage.author,
    files: { 'src/a.ts': `const key = '${leaked}'; // BUG\n`, 'src/b.ts': 'export {};\n' },
  });
  const pull = await repository.openPull({ head: 'topic', user: stage.author });
  for (let tries = 0; tries < 20 && stage.gate(pull)?.status !== 'completed'; tries++) {
    await stage.settle();
    await stage.query('update graphile_worker._private_jobs set run_at = now() where locked_at is null');
    await stage.advance(5 * 60_000);
  }
  expect(stage.gate(pull)?.conclusion).toBe('failure');
  // PUB-7, OPS-8: the link of every check run leads to a page that asks for a login, whatever the run
  const link = stage.gate(pull)?.detailsUrl ?? '';
  const place = await fetch(link, { redirect: 'manual' });
  expect(place.status).toBe(401);
  expect(await place.text()).not.toContain('canaries');
  expect((await fetch(`${link}x`, { redirect: 'manual' })).status).toBe(401);
  // what is refused may be told, and tells nothing of what was shown
  const token = 'eyJhbGciOiJSUzI1NiJ9.eyJjYW5hcnkiOiJ4In0.c2lnbmF0dXJlLWNhbmFyeQ';
  const refused = await Promise.all([
    fetch(`${stage.server.url}/api/v1/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        protocol: '1.0',
        oidc: token,
        nonce: null,
        version: '1',
        capacity: 1,
        keys: null,
      }),
    }),
    fetch(`${stage.server.url}/api/v1/leases`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer canary-of-a-login-token' },
      body: '{"max":1,"wait_ms":0}',
    }),
    fetch(`${stage.server.url}/api/github/webhooks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-hub-signature-256': `sha256=${'c'.repeat(64)}` },
      body: '{}',
    }),
  ]);
  expect(refused.map((one) => one.status)).toEqual([401, 401, 401]);
  const answers = await Promise.all(refused.map((one) => one.text()));
  await stage.settle();

  const tokens = [...stage.gh.world.tokens.keys()];
  const [own] = await stage.query<{ installation_id: string }>('select installation_id from run limit 1');
  const secrets = [
    ['webhook secret', stage.app.webhookSecret],
    ...stage.app.privateKey
      .split('\n')
      .filter((line) => line.length > 40 && !line.startsWith('-'))
      .map((line) => ['private key', line]),
    ...tokens.map((one) => ['GitHub token', one]),
    ...told.map((one) => ['login or lease token', one]),
    ['leaked token', leaked],
    [
      'redaction salt',
      stage.server.deps.signer.redactionKeys(own?.installation_id ?? '', String(repository.id)).salt,
    ],
    ['shown token', token],
    ['shown login', 'canary-of-a-login-token'],
  ] as [string, string][];
  expect(told.length).toBeGreaterThan(3);
  expect(tokens.length).toBeGreaterThan(2);
  const tables = await stage.query<{ schema: string; name: string }>(
    `select schemaname as schema, tablename as name from pg_tables where schemaname in ('public', 'graphile_worker')`,
  );
  const rows: string[] = [];
  for (const { schema, name } of tables) {
    const found = await stage.query<Record<string, unknown>>(`select * from "${schema}"."${name}"`);
    rows.push(
      ...found.map((row) =>
        JSON.stringify(row, (_, value: unknown) =>
          typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer'
            ? Buffer.from((value as unknown as { data: number[] }).data).toString('latin1')
            : value,
        ),
      ),
    );
  }
  // REV-8: the finding tells that there was one, and which one it was only by a keyed hash
  const bodies = await stage.query<{ body: string }>(
    `select convert_from(body, 'UTF8') as body from ledger_row where kind = 'finding.raised'`,
  );
  expect(bodies.map((row) => row.body).join('\n')).toMatch(
    /"redacted":\[\{"hash":"[0-9a-f]{64}","kind":"github_token"/,
  );
  const places = {
    log: lines.join(''),
    answers: answers.join('\n'),
    checks: stage.gh
      .checkRuns(repository, pull.head.sha)
      .map((one) => JSON.stringify([one.title, one.summary, one.text, one.annotations]))
      .join('\\n'),
    comments: JSON.stringify(stage.gh.comments(pull).map((one) => one.body)),
    jobs: JSON.stringify(stage.gh.world.workflowRuns.flatMap((run) => run.jobs.map((job) => job.log))),
    database: rows.join('\n'),
  };
  expect(places.log.length).toBeGreaterThan(2_000);
  expect(rows.length).toBeGreaterThan(50);
  const found = Object.entries(places).flatMap(([place, text]) =>
    secrets.filter(([, secret]) => text.includes(secret)).map(([what]) => `${what} in ${place}`),
  );
  expect([...new Set(found)]).toEqual([]);
});
