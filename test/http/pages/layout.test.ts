import fc from 'fast-check';
import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import type { TicketView } from '../../../app/flow/read-run/tickets.ts';
import type { BlockView, PathView } from '../../../app/flow/read-run.ts';
import { createJar, formToken, localPath } from '../../../app/http/pages/cookie.ts';
import { layGraph, shares } from '../../../app/http/pages/run/graph.ts';
import { layTimeline, TIME, ticksOf } from '../../../app/http/pages/run/timeline.ts';

const block = (id: string, files: number, after: readonly string[] = []): BlockView => ({
  id,
  title: id,
  level: 'L1',
  files,
  counted: 0,
  verdict: 'reviewing',
  blocking: 0,
  other: 0,
  after,
  attempt: 1,
});
const path = (of: string, name: string): PathView => ({
  path: name,
  block: of,
  level: 'L1',
  change: 'M',
  ownership: 'owned',
  standing: 'pending',
  why: null,
});
const ticket = (queuedAtMs: number, more: Partial<TicketView> = {}): TicketView => ({
  id: 't',
  blockId: 'b',
  path: 'a.ts',
  round: 0,
  state: 'ended',
  level: 'L1',
  reviewers: ['marker'],
  provider: 'command',
  grant: 1,
  losses: 0,
  end: 'reviewed',
  verdict: 'approve',
  reason: null,
  queuedAtMs,
  endedAtMs: null,
  notBeforeMs: null,
  work: [],
  ...more,
});

describe('OPS-8: the graph of blocks and paths', () => {
  it('places are divided fairly: nobody gets more than they want, and none is left while somebody wants it', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(100), { maxLength: 20 }), fc.nat(200), (wants, most) => {
        const given = shares(wants, most);
        const sum = given.reduce((a, b) => a + b, 0);
        expect(given.every((n, i) => n >= 0 && n <= (wants[i] ?? 0))).toBe(true);
        expect(sum).toBe(
          Math.min(
            most,
            wants.reduce((a, b) => a + b, 0),
          ),
        );
      }),
    );
  });

  it('boxes never overlap, every line stands within its box, and what is not drawn is counted', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(60), { maxLength: 30 }), (sizes) => {
        const blocks = sizes.map((files, i) => block(`b${i}`, files, i > 0 ? [`b${i - 1}`, 'gone'] : []));
        const paths = sizes.flatMap((files, i) =>
          Array.from({ length: files }, (_, n) => path(`b${i}`, `${i}/${n}`)),
        );
        const graph = layGraph(blocks, paths);
        for (const [i, box] of graph.boxes.entries()) {
          const next = graph.boxes[i + 1];
          if (next !== undefined) expect(box.y + box.height).toBeLessThan(next.y);
          expect(box.y + box.height).toBeLessThanOrEqual(graph.height);
          const drawn = graph.paths.filter((one) => one.box === i);
          expect(drawn.length + box.more).toBe(box.block.files);
          for (const one of drawn) {
            expect(one.y).toBeGreaterThan(box.y);
            expect(one.y).toBeLessThan(box.y + box.height);
          }
        }
        expect(graph.boxes.length + graph.more).toBe(blocks.length);
        expect(graph.paths.length).toBeLessThanOrEqual(48);
        expect(graph.after).toHaveLength(Math.max(0, graph.boxes.length - 1));
      }),
      { numRuns: 50 },
    );
  });
});

describe('OPS-8: the line of time', () => {
  it('a ticket waits, is worked, fails, waits and is worked again', () => {
    const line = layTimeline(
      [
        ticket(1_000, {
          endedAtMs: 9_000,
          work: [
            { fromMs: 2_000, toMs: 3_000, end: 'timeout', seq: 4 },
            { fromMs: 5_000, toMs: 9_000, end: 'reviewed', seq: 9 },
          ],
        }),
      ],
      60_000,
    );
    expect(line).toMatchObject({ fromMs: 1_000, toMs: 9_000, more: 0 });
    const one = line?.lines[0];
    const scale = (TIME.right - TIME.left) / 8_000;
    expect(one?.waits.map((w) => Math.round((w.to - w.from) / scale))).toEqual([1_000, 2_000]);
    expect(one?.work.map((w) => [w.end, w.ms])).toEqual([
      ['timeout', 1_000],
      ['reviewed', 4_000],
    ]);
  });

  it('what goes on ends now; what never began waited until it was dropped', () => {
    const open = layTimeline([ticket(0, { state: 'pending', end: null })], 5_000);
    expect(open?.toMs).toBe(5_000);
    expect(open?.lines[0]?.waits).toEqual([{ from: TIME.left, to: TIME.right }]);
    const leased = layTimeline(
      [
        ticket(0, {
          state: 'leased',
          end: null,
          work: [{ fromMs: 1_000, toMs: null, end: null, seq: null }],
        }),
      ],
      5_000,
    );
    expect(leased?.lines[0]?.work[0]).toMatchObject({ to: TIME.right, ms: 4_000 });
    const dropped = layTimeline([ticket(0, { state: 'superseded', end: null, endedAtMs: 2_000 })], 5_000);
    expect(dropped?.toMs).toBe(2_000);
    expect(layTimeline([], 5_000)).toBeNull();
  });

  it('everything stays on the axis, whatever the clocks said', () => {
    const time = fc.integer({ min: 0, max: 1e13 });
    fc.assert(
      fc.property(
        fc.array(fc.record({ q: time, f: time, t: time }), { minLength: 1, maxLength: 80 }),
        time,
        (all, now) => {
          const line = layTimeline(
            all.map(({ q, f, t }) => ticket(q, { work: [{ fromMs: f, toMs: t, end: 'reviewed', seq: 1 }] })),
            now,
          );
          for (const one of line?.lines ?? [])
            for (const part of [...one.waits, ...one.work]) {
              expect(part.from).toBeGreaterThanOrEqual(TIME.left);
              expect(part.to).toBeLessThanOrEqual(TIME.right + 1e-6);
            }
          expect(line?.lines.length).toBe(Math.min(60, all.length));
        },
      ),
      { numRuns: 50 },
    );
  });

  it('has few round ticks', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e12 }), (ms) => {
        const ticks = ticksOf(ms);
        expect(ticks[0]).toBe(0);
        expect(ticks.length).toBeLessThanOrEqual(7);
        expect(ticks.at(-1)).toBeLessThanOrEqual(ms);
      }),
    );
  });
});

describe('OPS-8: no open redirect', () => {
  it.each([
    '//evil.example',
    '/\\evil.example',
    'https://evil.example',
    '/a//evil',
    '/%2f/evil',
    '/\t/evil',
    '/a?b=//evil',
    '',
  ])('after a sign-in nobody is sent to %j', (text) => {
    const to = localPath(text);
    expect(new URL(to, 'https://countersign.example').origin).toBe('https://countersign.example');
  });

  it('whatever text: the path leads to our own host, and our own pages stay reachable', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.webUrl(),
          fc.string().map((s) => `/${s}`),
        ),
        (text) => {
          const to = localPath(text);
          expect(new URL(to, 'https://countersign.example').origin).toBe('https://countersign.example');
          expect(to).toMatch(/^\/(?!\/)/);
        },
      ),
      { numRuns: 500 },
    );
    for (const own of [
      '/',
      '/queue',
      '/runs/01m8mwxnngfepdchae1h4mekjk',
      '/runs/a/ledger?from=50',
      '/?before=12',
    ])
      expect(localPath(own)).toBe(own);
  });
});

describe('OPS-8: cookies', () => {
  const set = async (publicUrl: string) => {
    const jar = createJar(publicUrl, 3_600_000, 600_000);
    const app = new Hono().get('/', (c) => {
      jar.setVisit(c, 'v'.repeat(43));
      jar.setFlow(c, { state: 's'.repeat(43), verifier: 'p'.repeat(43), next: '//evil' });
      return c.body(null);
    });
    return (await app.request('/')).headers.getSetCookie();
  };

  it('by https they are __Host-, Secure, HttpOnly, SameSite=Lax, for the whole host', async () => {
    const cookies = await set('https://countersign.example');
    expect(cookies).toHaveLength(2);
    for (const cookie of cookies)
      expect(cookie).toMatch(/^__Host-cs_\w+=[^;]+; Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Lax$/);
  });

  it('by http, where a browser would drop them, they are not Secure', async () => {
    for (const cookie of await set('http://127.0.0.1:3000'))
      expect(cookie).toMatch(/^cs_\w+=[^;]+; Max-Age=\d+; Path=\/; HttpOnly; SameSite=Lax$/);
  });

  it('what is no secret of ours is no visit, and a flow is read back whole or not at all', async () => {
    const jar = createJar('http://127.0.0.1', 1000, 1000);
    const read = async (cookie: string) => {
      const app = new Hono().get('/', (c) => c.json({ visit: jar.visit(c), flow: jar.flow(c) }));
      return (await app.request('/', { headers: { cookie } })).json();
    };
    const [state, verifier] = ['s'.repeat(43), 'p'.repeat(43)];
    const next = (path: string) => Buffer.from(path).toString('base64url');
    expect(
      await read(`cs_visit=${'v'.repeat(43)}; cs_signin=${state}.${verifier}.${next('/queue')}`),
    ).toEqual({
      visit: 'v'.repeat(43),
      flow: { state, verifier, next: '/queue' },
    });
    expect(await read(`cs_visit=short; cs_signin=${state}.short`)).toEqual({ visit: null, flow: null });
    expect(await read(`cs_signin=${state}.${verifier}.${next('//evil.example')}`)).toMatchObject({
      flow: { next: '/' },
    });
    expect(formToken('a')).not.toBe(formToken('b'));
  });
});
