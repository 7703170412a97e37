/** What waits, is leased, was dispatched and is out of service, in repositories that the visitor may write to. */
import type { QueueView, RepositoryQueue } from '../../flow/read-queue.ts';
import { Chip, type Frame, Layout, Table, When } from './layout.tsx';
import { count, type Word } from './words.ts';

/** The page. */
export function QueuePage({ frame, queue }: { readonly frame: Frame; readonly queue: QueueView }) {
  const now = queue.now.getTime();
  return (
    <Layout title="Queue" frame={frame} at="queue">
      <h1>Queue and pools</h1>
      <p class="lead soft">Of repositories that you may write to.</p>
      {queue.unanswered ? (
        <div class="note wait">
          <p>GitHub did not answer for some repositories: they are left out.</p>
        </div>
      ) : null}
      {queue.cut ? (
        <div class="note off">
          <p>There is more than a page holds: the busiest repositories are shown.</p>
        </div>
      ) : null}
      {queue.repositories.length === 0 ? (
        <p class="empty">There is no repository with runs that you may write to.</p>
      ) : (
        <>
          <Providers queue={queue} now={now} />
          {queue.repositories.map((one) => (
            <Repository of={one} now={now} />
          ))}
        </>
      )}
    </Layout>
  );
}

function Providers({ queue, now }: { readonly queue: QueueView; readonly now: number }) {
  if (queue.providers.length === 0) return null;
  return (
    <>
      <h2>Providers</h2>
      <Table
        caption="A settled provider is tried again by itself with one ticket."
        head={[
          'Provider',
          'Account',
          'State',
          { label: 'Slots in use', num: true },
          { label: 'Failures in a row', num: true },
        ]}
        rows={queue.providers.map((one) => [
          <strong>{one.name}</strong>,
          one.account,
          <Service until={one.settledUntilMs} now={now} />,
          (one.slots ?? 0) === 0 ? '–' : `${one.used ?? 0} of ${one.slots ?? 0}`,
          String(one.missed),
        ])}
      />
    </>
  );
}

function Service({ until, now }: { readonly until: number | null; readonly now: number }) {
  const word: Word =
    until === null
      ? { text: 'in service', tone: 'ok' }
      : { text: 'settled', tone: until > now ? 'bad' : 'wait' };
  return (
    <>
      <Chip word={word} />
      {until === null ? null : (
        <span class="soft small">
          {' '}
          next try <When ms={until} now={now} />
        </span>
      )}
    </>
  );
}

function Repository({ of, now }: { readonly of: RepositoryQueue; readonly now: number }) {
  const quiet = of.lines.length + of.leases.length + of.dispatches.length === 0;
  return (
    <section>
      <h2>
        <a href={of.address} rel="noreferrer">
          {of.repository}
        </a>
      </h2>
      {quiet ? <p class="empty">Nothing waits and nothing is worked.</p> : null}
      {of.lines.length === 0 ? null : (
        <Table
          caption="Tickets that are not over."
          head={[
            'Provider',
            { label: 'Next', num: true },
            { label: 'Waiting', num: true },
            { label: 'Held', num: true },
            { label: 'Leased', num: true },
            'Oldest',
          ]}
          rows={of.lines.map((line) => [
            line.provider,
            String(line.ready),
            String(line.waiting),
            String(line.held),
            String(line.leased),
            line.oldestMs === null ? '–' : <When ms={line.oldestMs} now={now} />,
          ])}
        />
      )}
      {of.leases.length === 0 ? null : (
        <details open>
          <summary>{count(of.leases.length, 'ticket')} with runners</summary>
          <Table
            caption="Live leases."
            head={['Path', 'Run', 'Pool', 'Since', 'Lapses without a sign']}
            rows={of.leases.map((lease) => [
              <code>{lease.path}</code>,
              <a href={`/runs/${lease.runId}`}>run</a>,
              lease.workflowRun === null ? (
                (lease.pool ?? '–')
              ) : (
                <a href={`${of.address}/actions/runs/${lease.workflowRun}`} rel="noreferrer">
                  {lease.pool ?? 'workflow run'}
                </a>
              ),
              <When ms={lease.grantedAtMs} now={now} />,
              <When ms={lease.expiresAtMs} now={now} />,
            ])}
          />
        </details>
      )}
      {of.dispatches.length === 0 ? null : (
        <details open>
          <summary>{count(of.dispatches.length, 'dispatch').replace(/dispatchs$/, 'dispatches')}</summary>
          <Table
            caption="Wake-ups that are not over."
            head={['Pool', 'State', 'Run', 'Asked', 'Given up']}
            rows={of.dispatches.map((one) => [
              one.workflowRun === null ? (
                one.pool
              ) : (
                <a href={`${of.address}/actions/runs/${one.workflowRun}`} rel="noreferrer">
                  {one.pool}
                </a>
              ),
              <Chip word={dispatchWord(one.state)} />,
              <a href={`/runs/${one.runId}`}>run</a>,
              <When ms={one.createdAtMs} now={now} />,
              one.dueAtMs === null ? '–' : <When ms={one.dueAtMs} now={now} />,
            ])}
          />
        </details>
      )}
      {of.residents.length === 0 ? null : (
        <details open>
          <summary>Resident pools</summary>
          <Table
            caption="Long-lived runners that the policy names; they may serve other repositories too."
            head={['Pool', 'State', { label: 'Runners', num: true }, { label: 'Tickets at once', num: true }]}
            rows={of.residents.map((one) => [
              one.pool,
              <Chip word={residentWord(one)} />,
              String(one.runners),
              one.runners === 0 ? '–' : `${one.leased} of ${one.capacity}`,
            ])}
          />
        </details>
      )}
      {of.pools.length === 0 ? null : (
        <details open>
          <summary>Pools</summary>
          <Table
            caption="Where runners come from."
            head={['Pool', 'State', { label: 'Missed in a row', num: true }]}
            rows={of.pools.map((one) => [
              one.name,
              <Service until={one.settledUntilMs} now={now} />,
              String(one.missed),
            ])}
          />
        </details>
      )}
    </section>
  );
}

function residentWord(of: RepositoryQueue['residents'][number]): Word {
  if (!of.registered) return { text: 'not registered here', tone: 'bad' };
  if (of.runners === 0) return { text: 'no runner is alive', tone: 'bad' };
  return of.leased < of.capacity ? { text: 'in service', tone: 'ok' } : { text: 'busy', tone: 'wait' };
}

function dispatchWord(state: string): Word {
  if (state === 'answered') return { text: 'a runner came', tone: 'ok' };
  if (state === 'ambiguous') return { text: 'no telling', tone: 'wait' };
  return { text: state === 'sent' ? 'sent' : 'being sent', tone: 'busy' };
}
