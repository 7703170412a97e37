/** The pages over real HTTP: sign-in at the local GitHub, rights, and what a hostile pull request can do to them (nothing). */
import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { secretHash } from '../../../app/flow/login.ts';
import { spendLookup } from '../../../app/flow/read-right.ts';
import { createJar } from '../../../app/http/pages/cookie.ts';
import { pages } from '../../../app/http/pages/pages.tsx';
import { createVisits } from '../../../app/http/pages/visits.ts';
import { runLink } from '../../../app/http/run-link.ts';
import { addVisit } from '../../../db/store/visit.ts';
import type { User } from '../../../sandbox/model.ts';
import type { Pull } from '../../../sandbox/pull.ts';
import type { Repository } from '../../../sandbox/repository.ts';
import { asOwner } from '../../helpers/database.ts';
import { markerPolicy, type TestStage, testStage } from '../../helpers/stage.ts';
import { Visitor } from '../../helpers/visitor.ts';

const HOSTILE =
  '</title><script>alert(1)</script><img src=x onerror=alert(2)>\u202e"\'&amp; [x](javascript:alert(3))';
const FILE = 'src/<img src=x onerror=alert(4)>"\'.ts';

let stage: TestStage;
let repository: Repository;
let pull: Pull;
let forged: Pull;
let run: string;
let reader: User;
let stranger: User;
beforeAll(async () => {
  stage = await testStage();
  reader = stage.gh.createUser('rita');
  stranger = stage.gh.createUser('mallory');
  ({ repository } = await stage.repository({
    name: 'secret-shop',
    private: true,
    policy: markerPolicy(),
    collaborators: [
      [stage.author, 'write'],
      [reader, 'read'],
    ],
  }));
  await repository.commit({
    branch: 'topic',
    author: stage.author,
    message: `${HOSTILE}\n\nBlock: one`,
    files: { [FILE]: 'const a = 1; // BUG\n', 'b.ts': 'fine\n' },
  });
  pull = await repository.openPull({ head: 'topic', user: stage.author, title: HOSTILE });
  const { repository: other } = await stage.repository({ name: 'forged' });
  await other.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': 'BUG\n' } });
  forged = await other.openPull({ head: 'topic', user: stage.author, title: 'Forged' });
  for (const one of [pull, forged])
    await stage.verdict(one, { until: (check) => check.conclusion === 'failure' });
  await stage.settle();
  run = (await stage.run(pull))?.id ?? '';
});
afterAll(() => stage.close());

const visitor = () => new Visitor(stage.server.url);
const signedIn = async (user: User) => {
  const made = visitor();
  await made.enter(stage.gh, user);
  return made;
};
const lookups = () => stage.gh.count('repos/get-collaborator-permission-level');

describe('OPS-8: who is not signed in', () => {
  it('is asked to, in the same words whatever is behind the address', async () => {
    const pages = await Promise.all(
      [`/runs/${run}`, '/runs/no-such-run'].map(async (path) => (await visitor().get(path)).text),
    );
    const asked = pages.map((page) => page.replace(/%2Fruns%2F[\w-]+/, ''));
    expect(asked[0]).toBe(asked[1]);
    for (const path of ['/', '/queue', `/runs/${run}/ledger`]) {
      const seen = await visitor().get(path);
      expect(seen.status).toBe(401);
      expect(seen.text).toContain('Sign in with GitHub');
      expect(seen.text).not.toContain('secret-shop');
    }
    expect((await visitor().post(`/runs/${run}/ledger/verify`, {})).status).toBe(401);
  });

  it('attack: every page has a policy that runs no script and stands in no frame, and tells nobody where it was', async () => {
    const { headers } = await (await signedIn(stage.author)).get(`/runs/${run}`);
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('cache-control')).toBe('no-store');
    const api = await visitor().get('/api/v1/ping');
    expect(api.headers.get('content-security-policy'), 'pages alone').toBeNull();
  });
});

describe('OPS-8: signing in', () => {
  it('comes back to where it was asked for, and keeps a hash', async () => {
    const made = visitor();
    const page = await made.signIn(stage.gh, stage.author, `/runs/${run}`);
    expect(page.status).toBe(200);
    expect([...made.cookies.keys()]).toEqual(['cs_visit']);
    const kept = JSON.stringify(await stage.query("select *, encode(secret_hash, 'hex') as hex from visit"));
    expect(kept).not.toContain(made.cookies.get('cs_visit'));
    expect(kept).not.toMatch(/gh[ur]_/);
    expect(await stage.query("select 1 from stored_text where content like '%ghu_%'::bytea")).toEqual([]);
  });

  it('attack: a link of somebody else signs nobody in', async () => {
    const attacker = visitor();
    stage.gh.oauth.browser = stranger;
    const start = await attacker.get('/signin');
    const callback = await attacker.callback(start.location ?? '');
    const victim = visitor();
    expect((await victim.get(callback)).status).toBe(401);
    const began = visitor();
    await began.get('/signin');
    const mixed = await began.get(callback);
    expect(mixed.status).toBe(401);
    expect(began.cookies.size).toBe(0);
    expect((await began.get('/')).status).toBe(401);
  });

  it('attack: a callback works once, and `next` leads to our own host alone', async () => {
    stage.gh.oauth.browser = stage.author;
    const made = visitor();
    const start = await made.get(`/signin?next=${encodeURIComponent('//evil.example/x')}`);
    const flow = made.cookies.get('cs_signin') ?? '';
    const callback = await made.callback(start.location ?? '');
    const done = await made.get(callback);
    expect([done.status, done.location]).toEqual([303, '/']);
    const again = visitor();
    again.cookies.set('cs_signin', flow);
    expect((await again.get(callback)).status, 'GitHub takes a code once').toBe(401);
  });

  it('a new sign-in has a new secret, whatever the browser brought', async () => {
    const made = visitor();
    made.cookies.set('cs_visit', 'f'.repeat(43));
    await made.signIn(stage.gh, stage.author);
    expect(made.cookies.get('cs_visit')).not.toBe('f'.repeat(43));
    expect((await made.get('/')).status).toBe(200);
  });

  it('who denies it on GitHub is not signed in, and an error of GitHub is told without its text', async () => {
    stage.gh.oauth.browser = stage.author;
    stage.gh.oauth.denies = true;
    const made = visitor();
    const start = await made.get('/signin');
    const denied = await made.get(await made.callback(start.location ?? ''));
    stage.gh.oauth.denies = false;
    expect(denied.status).toBe(403);
    expect(made.cookies.size).toBe(0);
    const other = visitor();
    const state = new URL((await other.get('/signin')).location ?? '').searchParams.get('state');
    const told = await other.get(`/signin/callback?error=%3Cscript%3E&state=${state}`);
    expect(told.status).toBe(400);
    expect(told.text).not.toContain('script');
  });

  it('without an OAuth client the pages say what to set, and a run leads to its pull request', async () => {
    const deps = { ...stage.server.deps, signIn: null };
    const jar = createJar('https://cs.example', 1000, 1000);
    const app = new Hono().route('/', pages(deps, jar, createVisits(deps, jar))).route('/', runLink(deps));
    for (const path of ['/', '/queue', '/signin']) {
      const answer = await app.request(path);
      expect(answer.status).toBe(503);
      expect(await answer.text()).toContain('<code>CLIENT_SECRET</code>');
    }
    const link = await app.request(`/runs/${run}`);
    expect([link.status, link.headers.get('location')]).toEqual([
      302,
      `${stage.gh.url}/acme/secret-shop/pull/${pull.number}/checks`,
    ]);
  });
});

describe('OPS-8: a visit', () => {
  it('gets a new secret every quarter of an hour; the old one holds a minute for what is under way', async () => {
    const made = await signedIn(stage.author);
    const first = made.cookies.get('cs_visit') ?? '';
    await made.get('/');
    expect(made.cookies.get('cs_visit')).toBe(first);
    await stage.database.moveClock(15 * 60_000);
    const [a, b] = await Promise.all([made.get('/'), made.get('/queue')]);
    expect([a.status, b.status]).toEqual([200, 200]);
    const renewed = [a, b].filter((seen) => seen.headers.getSetCookie().length > 0);
    expect(renewed, 'of two at once one renews').toHaveLength(1);
    const second = made.cookies.get('cs_visit') ?? '';
    expect(second).not.toBe(first);
    const old = visitor();
    old.cookies.set('cs_visit', first);
    expect((await old.get('/')).status).toBe(200);
    expect(old.cookies.get('cs_visit'), 'an old secret begets nothing').toBe(first);
    await stage.database.moveClock(61_000);
    expect((await old.get('/')).status).toBe(401);
    expect((await made.get('/')).status).toBe(200);
  });

  it('ends after eight hours without a request, and after seven days whatever happens', async () => {
    const idle = await signedIn(stage.author);
    await stage.database.moveClock(8 * 3_600_000 + 1000);
    expect((await idle.get('/')).status).toBe(401);
    const busy = await signedIn(stage.author);
    for (let hours = 0; hours < 7 * 24; hours += 7) {
      expect((await busy.get('/queue')).status).toBe(200);
      await stage.database.moveClock(7 * 3_600_000);
    }
    expect((await busy.get('/')).status).toBe(401);
  });

  it('signing out needs a form of a page of ours, and ends every copy of the secret', async () => {
    const made = await signedIn(stage.author);
    const page = (await made.get('/')).text;
    const token = Visitor.token(page);
    const other = await signedIn(stranger);
    const foreign = Visitor.token((await other.get('/')).text);
    expect((await made.post('/signout', {})).status).toBe(403);
    expect((await made.post('/signout', { token: foreign })).status).toBe(403);
    expect((await made.post('/signout', { token }, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await made.get('/')).status).toBe(200);
    const copy = visitor();
    copy.cookies.set('cs_visit', made.cookies.get('cs_visit') ?? '');
    const out = await made.post('/signout', { token });
    expect([out.status, out.location]).toEqual([303, '/']);
    expect(made.cookies.size).toBe(0);
    expect((await copy.get('/')).status).toBe(401);
    expect((await made.post('/signout', { token: 'x'.repeat(5000) })).status, 'a form is small').toBe(413);
  });
});

describe('OPS-8: rights, by GitHub’s word', () => {
  it('one sees what one may read there; a run that is not there and one that may not be seen answer the same', async () => {
    const rita = await signedIn(reader);
    const mallory = await signedIn(stranger);
    expect((await rita.get(`/runs/${run}`)).status).toBe(200);
    const [hidden, none] = await Promise.all([mallory.get(`/runs/${run}`), mallory.get('/runs/no-such-run')]);
    expect([hidden.status, none.status]).toEqual([404, 404]);
    expect(hidden.text).toBe(none.text);
    expect(Object.fromEntries(hidden.headers)).toEqual({
      ...Object.fromEntries(none.headers),
      date: hidden.headers.get('date'),
    });
    for (const path of [`/runs/${run}/ledger`, `/runs/${encodeURIComponent('../../etc')}`])
      expect((await mallory.get(path)).status).toBe(404);
    expect((await rita.get('/')).text).toContain('secret-shop');
    expect((await mallory.get('/')).text).not.toContain('secret-shop');
    const token = Visitor.token((await mallory.get('/')).text);
    expect((await mallory.post(`/runs/${run}/ledger/verify`, { token })).status).toBe(404);
  });

  it('asks GitHub once a minute, and a right that was taken is gone a minute later', async () => {
    const carol = stage.gh.createUser('carol');
    repository.setCollaborator(carol, 'read');
    const made = await signedIn(carol);
    const before = lookups();
    for (let n = 0; n < 3; n++) expect((await made.get(`/runs/${run}`)).status).toBe(200);
    expect(lookups() - before).toBe(1);
    repository.setCollaborator(carol, 'none');
    await stage.database.moveClock(60_000);
    expect((await made.get(`/runs/${run}`)).status).toBe(404);
    expect(lookups() - before).toBe(2);
  });

  it('attack: the account counts, not its login: who took over a name sees nothing', async () => {
    const secret = 'k'.repeat(43);
    await stage.database.database.transaction((tx) =>
      addVisit(
        tx,
        {
          secretHash: secretHash(secret),
          family: 'taken',
          userId: '99',
          login: reader.login,
          installations: stage.gh.world.installations.map((one) => String(one.id)),
        },
        60_000,
      ),
    );
    const made = visitor();
    made.cookies.set('cs_visit', secret);
    expect((await made.get(`/runs/${run}`)).status).toBe(404);
    expect((await made.get('/')).text).not.toContain('secret-shop');
  });

  it('while GitHub does not answer nothing is shown, and it is said', async () => {
    const dora = stage.gh.createUser('dora');
    repository.setCollaborator(dora, 'write');
    const made = await signedIn(dora);
    const fault = { on: 'repos/get-collaborator-permission-level', status: 502, times: 9 } as const;
    stage.gh.faults.add(fault);
    const [page, list, queue] = await Promise.all([
      made.get(`/runs/${run}`),
      made.get('/'),
      made.get('/queue'),
    ]);
    stage.gh.faults.clear();
    expect(page.status).toBe(503);
    expect(page.text).toContain('Not now');
    for (const seen of [list, queue]) {
      expect(seen.status).toBe(200);
      expect(seen.text).toContain('GitHub did not answer');
      expect(seen.text).not.toContain('secret-shop');
    }
    expect((await made.get(`/runs/${run}`)).status, 'a failure is not kept').toBe(200);
  });

  it('attack: nobody uses up the installation’s quota by reloading', async () => {
    const made = await signedIn(stage.gh.createUser('eve'));
    const [visit] = await stage.query<{ user_id: string }>(
      'select user_id::text from visit order by signed_in_at desc limit 1',
    );
    const now = new Date((await stage.query<{ now: Date }>('select cs_now() as now'))[0]?.now ?? 0);
    const eve = { family: '', userId: visit?.user_id ?? '', login: 'eve', installations: [], now };
    for (let n = 0; n < 60; n++) spendLookup(stage.server.deps, eve, 1);
    const before = lookups();
    expect((await made.get(`/runs/${run}`)).status).toBe(429);
    expect(lookups()).toBe(before);
    await stage.database.moveClock(60_000);
    expect((await made.get(`/runs/${run}`)).status).toBe(404);
  });

  it('the queue is of repositories that one may write to', async () => {
    const [alice, rita] = [await signedIn(stage.author), await signedIn(reader)];
    const seen = await alice.get('/queue');
    expect(seen.text).toContain('acme/secret-shop');
    expect(seen.text).toContain('command');
    expect((await rita.get('/queue')).text).not.toContain('secret-shop');
  });
});

describe('OPS-8: the list of runs', () => {
  it('has thirty to a page, newest first, none twice, none left out, and none of others among them', async () => {
    const { repository: hidden } = await stage.repository({ name: 'hidden', private: true });
    await stage.settle();
    const copy = (prefix: string, repositoryId: number, minute: string) =>
      stage.query(
        `insert into run (id, installation_id, repository_id, pull, epoch, status, told_head, base_ref, head_at, opened_at, title)
         select '${prefix}-' || n, r.installation_id, r.id, 1000 + n, 1, 'open', 'f', 'main', cs_now(),
                cs_now() + n * interval '1 minute' + interval '${minute}', '${prefix} ' || n
           from repository r, generate_series(1, 70) n where r.id = ${repositoryId}`,
      );
    await copy('mine', repository.id, '0 s');
    await copy('theirs', hidden.id, '20 s');
    const rita = await signedIn(reader);
    const found: string[] = [];
    const sizes: number[] = [];
    for (let path: string | undefined = '/'; path !== undefined; ) {
      const { text } = await rita.get(path);
      expect(text).not.toContain('theirs');
      const ids = [...text.matchAll(/href="\/runs\/(mine-\d+)"/g)].map((match) => match[1] ?? '');
      sizes.push(text.match(/class="title"/g)?.length ?? 0);
      found.push(...ids);
      path = /href="(\/\?before=\d+)"/.exec(text)?.[1];
    }
    expect(found).toEqual(Array.from({ length: 70 }, (_, n) => `mine-${70 - n}`));
    expect(sizes.slice(0, 2)).toEqual([30, 30]);
    expect((await rita.get('/?before=1%27;drop')).status).toBe(200);
    await stage.query("delete from run where title like 'mine %' or title like 'theirs %'");
  });
});

describe('OPS-8: a run’s page', () => {
  it('attack: text of a pull request is text: no tag, no attribute, no address of it gets into the page', async () => {
    const alice = await signedIn(stage.author);
    for (const path of [`/runs/${run}`, '/', `/runs/${run}/ledger`, '/queue']) {
      const { text } = await alice.get(path);
      expect(text).not.toMatch(/<script|<img|onerror=alert\(\d\)>/i);
      expect(text).not.toContain('javascript:alert(3)"');
      expect(text).not.toContain('\u202e');
      // every address leads to us or to GitHub
      const links = [...text.matchAll(/(?:href|src|action)="([^"]*)"/g)].map((found) => found[1] ?? '');
      expect(links.length).toBeGreaterThan(3);
      for (const link of links) expect(link).toMatch(new RegExp(`^(?:/(?!/)|#|${stage.gh.url}/)`));
      expect(text).not.toMatch(/ on\w+="|style="/);
    }
    const page = (await alice.get(`/runs/${run}`)).text;
    expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(page).toContain('src/&lt;img src=x onerror=alert(4)&gt;');
  });

  it('shows the verdict, what holds it, who clears it, the finding with its rows, and the cost', async () => {
    const { text, status } = await (await signedIn(reader)).get(`/runs/${run}`);
    expect(status).toBe(200);
    for (const said of [
      'Failed',
      'open_findings',
      'Findings block',
      'push a fix',
      'Marked line',
      'F1',
      'marker',
    ])
      expect(text).toContain(said);
    expect(text).toMatch(/2 of 2 files reviewed/);
    const rows = await stage.rows(pull);
    const raised = rows.find((row) => row.kind === 'finding.raised')?.seq;
    expect(text).toContain(`/runs/${run}/ledger?from=${raised}#row-${raised}`);
    expect(text).toContain(`${rows.length} rows, verified`);
  });

  it('a run whose rows were changed shows that it does not verify, and nothing that rests on it', async () => {
    const id = (await stage.run(forged))?.id ?? '';
    const alice = await signedIn(stage.author);
    const verify = async () => {
      const page = (await alice.get(`/runs/${id}/ledger`)).text;
      return alice.post(`/runs/${id}/ledger/verify`, { token: Visitor.token(page) });
    };
    const before = await verify();
    expect(before.text).toContain('The ledger is intact');
    expect(before.text).toMatch(/Held against \d+ signed head/);
    await asOwner(stage.database.url, async (client) => {
      await client.query('alter table ledger_row disable trigger all');
      await client.query(
        `update ledger_row set body = convert_to(replace(convert_from(body, 'UTF8'), '"high"', '"info"'), 'UTF8')
          where run_id = $1 and kind = 'finding.raised'`,
        [id],
      );
      await client.query('alter table ledger_row enable trigger all');
    });
    const after = await verify();
    expect(after.status).toBe(200);
    expect(after.text).toContain('The ledger does not verify');
    const page = (await alice.get(`/runs/${id}`)).text;
    expect(page).toContain('The record of this run does not verify');
    expect(page).not.toContain('Marked line');
    expect(page).toContain('ledger_invalid');
  });

  it('rows are paged, newest first, and a form without our token verifies nothing', async () => {
    const alice = await signedIn(stage.author);
    const first = (await alice.get(`/runs/${run}/ledger`)).text;
    const last = (await stage.rows(pull)).length;
    expect(first.indexOf(`id="row-${last}"`)).toBeLessThan(first.indexOf('id="row-1"'));
    const some = (await alice.get(`/runs/${run}/ledger?from=3`)).text;
    expect(some).not.toContain('id="row-4"');
    expect(some).toContain('id="row-3"');
    expect(some).toContain('Newer rows');
    expect((await alice.get(`/runs/${run}/ledger?from=999999999999`)).status).toBe(200);
    expect((await alice.get(`/runs/${run}/ledger?from=-1;drop`)).status).toBe(200);
    expect((await alice.post(`/runs/${run}/ledger/verify`, { token: 'x' })).status).toBe(403);
  });

  it('a run that is over stands as it stood, however long ago', async () => {
    await pull.close();
    await stage.settle();
    await stage.database.moveClock(30 * 24 * 3_600_000);
    const { text } = await (await signedIn(reader)).get(`/runs/${run}`);
    expect(text).toMatch(/closed<\/span>/);
    for (const said of ['Failed', 'open_findings', 'Marked line']) expect(text).toContain(said);
    expect(text).not.toContain('past the deadline');
  });

  it('the style sheet and the icon are there, kept for long, and named by every page', async () => {
    const page = (await (await signedIn(stage.author)).get('/')).text;
    const style = /href="(\/assets\/\w+\.css)"/.exec(page)?.[1] ?? '';
    const sheet = await visitor().get(style);
    expect(sheet.headers.get('content-type')).toContain('text/css');
    expect(sheet.headers.get('cache-control')).toContain('immutable');
    expect(sheet.text).not.toMatch(/url\(|@import/);
    expect((await visitor().get('/assets/icon.svg')).status).toBe(200);
  });
});
