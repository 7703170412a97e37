import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { Fault } from '../../app/errors.ts';
import { createLog } from '../../app/server/log.ts';

function capture(): { lines: () => string; log: ReturnType<typeof createLog> } {
  let text = '';
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += String(chunk);
      done();
    },
  });
  return { lines: () => text, log: createLog('info', stream) };
}

describe('the log', () => {
  it('is one JSON object a line, named by its event', () => {
    const { lines, log } = capture();
    log.info({ run: 'r1' }, 'decide-gate');
    expect(JSON.parse(lines())).toMatchObject({ level: 'info', event: 'decide-gate', run: 'r1' });
  });

  it('holds no secret, wherever it hangs', () => {
    const { lines, log } = capture();
    log.info({ token: 's3cret', a: { authorization: 's3cret', b: { privateKey: 's3cret' } } }, 'x');
    expect(lines()).not.toContain('s3cret');
  });

  it('drops what libraries hang on errors: payloads, requests, the parameters of a query', () => {
    const { lines, log } = capture();
    const probot = Object.assign(new Error('handler failed'), {
      event: { payload: 'FOREIGN' },
      aggregateErrors: ['FOREIGN'],
    });
    const octokit = Object.assign(new Error('Not Found'), {
      request: { body: 'FOREIGN' },
      response: { data: 'FOREIGN' },
    });
    const query = Object.assign(new Error('Failed query: insert into x values ($1)\nparams: FOREIGN'), {
      name: 'DrizzleQueryError',
    });
    log.error({ err: probot }, 'a');
    log.error({ err: octokit }, 'b');
    log.error({ err: new Fault('github_unavailable', 'no answer', { cause: query }) }, 'c');
    expect(lines()).not.toContain('FOREIGN');
    expect(lines()).toContain('"code":"github_unavailable"');
  });

  it('tells a failure of the network in one line: what, and what it came down to', () => {
    const { lines, log } = capture();
    const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' });
    const failed = new TypeError('fetch failed', { cause: refused });
    const octokit = Object.assign(new Error('fetch failed', { cause: failed }), { status: 500 });
    const cause = new Fault('github_unavailable', 'get-app: no answer from GitHub', {
      cause: octokit,
      retryable: true,
    });
    log.error({ err: cause }, 'sweep');
    expect(JSON.parse(lines()).err).toEqual({
      type: 'Fault',
      code: 'github_unavailable',
      message: 'get-app: no answer from GitHub',
      cause: 'connect ECONNREFUSED 127.0.0.1:1',
    });
  });

  it('quotes no parameters of a query that a passing fault came down to', () => {
    const { lines, log } = capture();
    const query = Object.assign(new Error('Failed query: select $1\nparams: FOREIGN'), {
      name: 'DrizzleQueryError',
    });
    log.error({ err: new Fault('database_unreachable', 'lost', { cause: query, retryable: true }) }, 'c');
    expect(JSON.parse(lines()).err).toMatchObject({ message: 'lost', cause: 'a query failed' });
    expect(lines()).not.toContain('FOREIGN');
  });
});
