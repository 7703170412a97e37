/** Deliveries by 16 connections, each its own id, against one server or the other. */
import { fork } from 'node:child_process';
import { createHmac, generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import autocannon from 'autocannon';
import { asOwner } from '../../test/helpers/database.ts';
import { payload } from '../../test/helpers/payloads.ts';
import { withBenchDatabase } from '../database.ts';

/** Requests a second, and the time that 99 of 100 stay below, in ms. */
export interface Load {
  readonly rate: number;
  readonly p99: number;
}

/** Runs `fn` with a way to load either server for `ms`; every answer must be 2xx. */
export function withServers<T>(
  fn: (load: (side: 'ours' | 'peer', ms: number) => Promise<Load>, version: string) => Promise<T>,
): Promise<T> {
  return withBenchDatabase(2, async ({ url, version }) => {
    const secret = 'a secret of the ingest bench, 32 bytes and more';
    const { privateKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
      publicKeyEncoding: { type: 'pkcs1', format: 'pem' },
    });
    const child = fork(new URL('server.ts', import.meta.url), {
      execArgv: ['--import', 'tsx'],
      env: { ...process.env, I1_DATABASE: url, I1_SECRET: secret, I1_KEY: privateKey },
    });
    try {
      const [urls] = (await once(child, 'message')) as [{ ours: string; peer: string }];
      const body = JSON.stringify(payload('pull_request', 'opened'));
      const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
      let n = 0;
      const load = async (side: 'ours' | 'peer', ms: number): Promise<Load> => {
        // an inbox that grows from window to window would measure the disk's mood
        await asOwner(url, (client) =>
          client.query('truncate delivery, graphile_worker._private_jobs; checkpoint'),
        );
        const result = await autocannon({
          url: urls[side],
          connections: 16,
          duration: ms / 1000,
          sampleInt: 100,
          requests: [
            {
              method: 'POST',
              headers: {
                'content-type': 'application/json',
                'x-github-event': 'pull_request',
                'x-hub-signature-256': signature,
              },
              body,
              setupRequest: (request) => {
                n += 1;
                return { ...request, headers: { ...request.headers, 'x-github-delivery': `bench-${n}` } };
              },
            },
          ],
        });
        if (result['2xx'] === 0 || result.non2xx + result.errors > 0)
          throw new Error(
            `${side}: ${result['2xx']} accepted, ${result.non2xx} refused, ${result.errors} lost`,
          );
        return { rate: (result['2xx'] * 1000) / ms, p99: result.latency.p99 };
      };
      return await fn(load, version);
    } finally {
      child.disconnect();
      await once(child, 'exit');
    }
  });
}
