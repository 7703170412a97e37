import { Agent, get } from 'node:http';
import { Hono } from 'hono';
import { expect, it } from 'vitest';
import { listen } from '../../app/http/server.ts';

const ask = (agent: Agent, url: string): Promise<number> =>
  new Promise((done, failed) => {
    get(url, { agent }, (response) => {
      response.resume();
      response.once('end', () => done(response.statusCode ?? 0));
    }).once('error', failed);
  });

it('OPS-7: a stop waits for the request under way and not for the connection it came on', async () => {
  const http = await listen('127.0.0.1', 0);
  let answer: () => void = () => {};
  const held = new Promise<void>((done) => {
    answer = done;
  });
  let arrived: () => void = () => {};
  const here = new Promise<void>((done) => {
    arrived = done;
  });
  const app = new Hono();
  app.get('/poll', async (c) => {
    arrived();
    await held;
    return c.text('nothing');
  });
  http.open({ app, webhook: (_request, response) => response.end() });
  const agent = new Agent({ keepAlive: true });
  const poll = ask(agent, `${http.url}/poll`);
  await here;
  const begun = performance.now();
  const closed = http.close(60_000);
  answer();
  expect(await poll, 'what was under way is answered').toBe(200);
  await closed;
  expect(performance.now() - begun).toBeLessThan(50_000);
  agent.destroy();
});
