import { createHmac } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { reconcile } from '../../app/flow/reconcile.ts';
import type { Delivery } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import { type Ending, endingOf } from '../helpers/ending.ts';
import { type KilledStage, killedStage } from '../helpers/killed-stage.ts';

let stage: KilledStage;
beforeAll(async () => {
  stage = await killedStage({ replicaWorks: true });
});
afterEach(() => {
  stage.postgres.watch = () => undefined;
  stage.gh.faults.clear();
});
afterAll(() => stage.close());

const concluded = (pull: Pull) => () => stage.gate(pull)?.status === 'completed';

/** Posts a kept delivery to a server under an id; answers the status, 0 when there was nobody. */
async function post(server: string, delivery: Delivery, id: string): Promise<number> {
  const signature = createHmac('sha256', stage.app.webhookSecret).update(delivery.body).digest('hex');
  return fetch(`${server}/api/github/webhooks`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-github-delivery': id,
      'x-github-event': delivery.event,
      'x-hub-signature-256': `sha256=${signature}`,
    },
    body: delivery.body,
  }).then(
    (answer) => answer.status,
    () => 0,
  );
}

/** Opens a pull request whose `opened` GitHub could not deliver; answers the delivery too. */
async function openUnheard(name: string): Promise<{ pull: Pull; opened: Delivery }> {
  const repository = await stage.repository(name);
  await stage.finish(() => true);
  const lost = stage.gh.webhooks.drop(({ event, action }) => event === 'pull_request' && action === 'opened');
  const pull = await stage.open(repository);
  lost();
  const opened = stage.gh.world.deliveries.findLast(
    (one) => one.event === 'pull_request' && one.action === 'opened' && one.repositoryId === repository.id,
  );
  if (opened === undefined) throw new Error('no delivery');
  return { pull, opened };
}

/** Ten copies in parallel, five under each id, on two servers in turn, while the reconciler finds the same head. */
async function fireTen(opened: Delivery, pull: Pull): Promise<number[]> {
  const reconciled = reconcile(stage.replica.deps, { repository: String(pull.repository.id) });
  const answers = Array.from({ length: 10 }, (_, i) =>
    post(i % 2 === 0 ? stage.url : stage.replica.url, opened, `${opened.guid}-${i < 5 ? 'X' : 'Y'}`),
  );
  await reconciled;
  return Promise.all(answers);
}

/** What there is once of each, whoever did it. */
async function expectOnce(pull: Pull, ending: Ending): Promise<void> {
  const repository = String(pull.repository.id);
  expect(await stage.query('select id from run where repository_id = $1', [repository])).toHaveLength(1);
  expect(ending.rows.filter((row, i) => row === ending.rows[i + 1])).toEqual([]);
  expect(ending.rows.filter((row) => row.startsWith('block.opened'))).toHaveLength(2);
  expect(ending.tickets).toEqual({ ended: 3 });
  expect(ending.checks).toEqual([
    '0 countersign / findings 1 failure src/a.ts:1 src/c.ts:1',
    '0 countersign 1 failure ',
  ]);
  expect(ending.deliveries).toEqual({});
}

describe('two servers on one database', () => {
  let once: Ending;

  it('case 2, attack 5: ten parallel copies under two ids, and the reconciler at the same head: one of everything', async () => {
    const { pull, opened } = await openUnheard('ten');
    const answers = await fireTen(opened, pull);
    expect(answers.filter((status) => status < 200 || status > 299)).toEqual([]);
    await stage.finish(concluded(pull));
    once = await endingOf(stage, pull, [pull.head.sha]);
    await expectOnce(pull, once);
    // doubled deliveries that come once all is done change nothing either
    const rows = await stage.rows(pull);
    await fireTen(opened, pull);
    await stage.finish(concluded(pull));
    expect(await stage.rows(pull)).toEqual(rows);
  });

  it.each([1, 4, 9])('case 2: the same while one of the servers is killed at its commit %i', async (n) => {
    const starts = stage.starts;
    // the two share the work as it comes: where the other did nearly all of it, there is no n-th commit to die at
    for (let round = 0; stage.starts === starts && round < 5; round++) {
      const { pull, opened } = await openUnheard(`ten-killed-${n}-${round}`);
      let seen = 0;
      stage.postgres.watch = ({ place }) => {
        if (place !== 'commit' || ++seen !== n) return undefined;
        return { when: n % 2 === 0 ? 'before' : 'after', act: () => stage.kill() };
      };
      await fireTen(opened, pull);
      await stage.finish(concluded(pull));
      stage.postgres.watch = () => undefined;
      const ending = await endingOf(stage, pull, [pull.head.sha]);
      await expectOnce(pull, ending);
      expect(ending).toEqual(once);
    }
    expect(stage.starts).toBe(starts + 1);
  });

  it('case 3: GitHub answers each call after 2.5 s: the webhook is answered at once, and a sweep over "failed" deliveries makes no second tickets', async () => {
    const repository = await stage.repository('slow');
    await stage.finish(() => true);
    // 12 s in the report; what counts is that it is longer than an answer may take
    const slow = stage.gh.faults.add({ delay: 2_500 });
    const pull = await stage.open(repository);
    const opened = await answered(repository.id);
    expect(opened.status).toBe('OK');
    // GitHub's own limit; that the edge waits for nobody but the database, the tests of webhook.ts say
    expect(opened.duration).toBeLessThan(10);
    // GitHub believes that it failed, and somebody presses "Redeliver" as well
    opened.status = 'timed out';
    opened.statusCode = 504;
    await stage.replica.sweep();
    stage.gh.webhooks.redeliver(opened);
    await answered(repository.id, true);
    // the rest of the round adds nothing but its length to what came twice meanwhile
    slow.remove();
    expect(slow.hits).toBeGreaterThan(0);
    await stage.finish(concluded(pull));
    const ending = await endingOf(stage, pull, [pull.head.sha]);
    await expectOnce(pull, ending);
    expect(ending).toEqual(once);
  });
});

/** The `opened` delivery of a repository, or its redelivery, once GitHub has an answer. */
async function answered(repositoryId: number, redelivery = false): Promise<Delivery> {
  for (;;) {
    const found = stage.gh.world.deliveries.find(
      (one) =>
        one.event === 'pull_request' &&
        one.action === 'opened' &&
        one.repositoryId === repositoryId &&
        one.redelivery === redelivery,
    );
    if (found !== undefined && found.status !== 'pending') return found;
    await new Promise((done) => setTimeout(done, 10));
  }
}
