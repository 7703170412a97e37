import { afterAll, beforeAll, expect, test } from 'vitest';
import { fingerprint } from '../../app/domain/finding.ts';
import { bookSpend } from '../../app/flow/book-spend.ts';
import { judgeRun } from '../../app/flow/judge-run.ts';
import { listFindings } from '../../db/store/finding.ts';
import { findRun, productNow } from '../../db/store/run.ts';
import { findTicket } from '../../db/store/ticket.ts';
import { budgetRun, spentNow } from '../helpers/admit.ts';
import {
  call,
  db,
  deps,
  leaseOne,
  logIn,
  result,
  runWith,
  startApi,
  stopApi,
  submit,
} from '../helpers/api.ts';

beforeAll(startApi);
afterAll(stopApi);

test('ADM-2: over HTTP a used-up budget is refused by name, the ticket ends with it, and what was found is kept', async () => {
  const run = await runWith(['a.ts', 'b.ts'], 'L2');
  await budgetRun(deps, run, '{run: {tokens: 21000}}');
  const { token } = await logIn(run);
  const first = await leaseOne(token);
  const ask = (lease: typeof first, purpose: string) =>
    call(
      `/api/v1/leases/${lease.id}/admit`,
      { token: lease.token, grant: lease.grant, reviewer: 'model', purpose, prompt_tokens: 900 },
      token,
    );
  const admitted = await ask(first, 'review');
  expect(admitted).toMatchObject({ status: 200, body: { outcome: 'admitted' } });
  const refused = await ask(first, 'repair');
  expect(refused).toMatchObject({ status: 400, body: { error: { code: 'budget' } } });
  const { message } = refused.body.error as { message?: string };
  expect(message).toBe("the run's budget of 21000 tokens is used up (budget.run.tokens)");
  const path = first.ticket.path;
  const quote = 'return 1';
  const session = {
    ...result(first).sessions[0],
    id: admitted.body.session,
    provider: 'openai',
    tokens_in: 800,
    tokens_out: 90,
  };
  const submitted = await submit(
    first,
    token,
    result(first, {
      end: 'budget',
      detail: `model: ${message}`,
      verdict: null,
      sessions: [session] as never,
      findings: [
        {
          fingerprint: fingerprint({ path, lens: 'correctness', title: 'Wrong', quote, ordinal: 0 }),
          side: 'head',
          start_line: 1,
          end_line: 1,
          severity: 'high',
          lens: 'correctness',
          title: 'Wrong',
          body: 'why',
          quote,
          suggestion: null,
          grounded: true,
          reviewer: 'model',
        },
      ],
    }),
  );
  expect(submitted).toMatchObject({ status: 200, body: { accepted: true } });
  expect(await findTicket(db.database.db, first.ticket.id)).toMatchObject({ state: 'ended', end: 'budget' });
  expect((await listFindings(db.database.db, run)).map((one) => [one.title.length, one.state])).toEqual([
    [64, 'open'],
  ]);
  await bookSpend(deps);
  expect((await spentNow(deps))[`run ${run}`]).toEqual({ sessions: 1, tokens: 890, micro: 0 });
  const found = await findRun(db.database.db, run);
  if (found === null) throw new Error('no run');
  const { state } = await judgeRun(deps, db.database.db, found, await productNow(db.database.db));
  expect(state.keys.get(first.ticket.key)?.failed).toMatchObject({
    end: 'budget',
    final: true,
    detail: `model: ${message}`,
  });
  // what it did not use is there for the next file
  expect(await ask(await leaseOne(token), 'review')).toMatchObject({
    status: 200,
    body: { outcome: 'admitted' },
  });
});
