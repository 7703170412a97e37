/** Results the server has not accepted yet, on disk (ACT-5): a job's log and folder still show them when the server was away. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TicketResult } from '../app/protocol/runner.ts';
import type { LeaseRef } from './client.ts';

/** Keeps and forgets results by lease; the lease's token, a credential, is never written. */
export type Results = Readonly<{
  keep: (lease: LeaseRef, ticket: string, result: TicketResult) => Promise<string>;
  forget: (lease: LeaseRef) => Promise<void>;
}>;

/** A keeper of results below `dir`, readable by this user only. */
export function keepResults(dir: string): Results {
  const file = (lease: LeaseRef): string =>
    join(dir, `${lease.id.replace(/[^A-Za-z0-9_-]/g, '_')}-${lease.grant}.json`);
  return {
    async keep(lease, ticket, result) {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await writeFile(file(lease), JSON.stringify({ lease: lease.id, grant: lease.grant, ticket, result }), {
        mode: 0o600,
      });
      return file(lease);
    },
    async forget(lease) {
      await rm(file(lease), { force: true });
    },
  };
}
