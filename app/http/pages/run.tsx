/** The page of one run. */
import type { RunView } from '../../flow/read-run.ts';
import { Chip, type Frame, Layout, Table, When } from './layout.tsx';
import { Findings } from './run/findings.tsx';
import { GraphFigure } from './run/graph-figure.tsx';
import { Tickets } from './run/timeline-figure.tsx';
import { Holds, Verdict } from './run/verdict.tsx';
import { blockWord, conclusionWord, count, duration, money, number, standingWord } from './words.ts';

/** The page. */
export function RunPage({ frame, run }: { readonly frame: Frame; readonly run: RunView }) {
  const name = `${run.repository}${run.pull === null ? '' : ` #${run.pull}`}`;
  return (
    <Layout title={`${titleOf(run)} · ${name}`} frame={frame}>
      <p class="crumb">
        <a href={run.repositoryAddress} rel="noreferrer">
          {run.repository}
        </a>{' '}
        {run.pullAddress === null ? (
          'merge group'
        ) : (
          <a href={run.pullAddress} rel="noreferrer">
            #{run.pull}
          </a>
        )}
      </p>
      <h1>{titleOf(run)}</h1>
      <div class="meta">
        {run.author === null ? null : <span>{run.author}</span>}
        <span>
          into <code>{run.baseRef}</code>
        </span>
        <span>
          opened <When ms={run.openedAtMs} now={run.nowMs} />
        </span>
        {run.status === 'open' ? null : <Chip word={{ text: run.status, tone: 'off' }} />}
        {run.epoch > 1 ? <span>epoch {run.epoch}</span> : null}
      </div>
      <Verdict run={run} />
      {run.ledger.fault === null ? null : (
        <div class="note bad" role="alert">
          <h2>The record of this run does not verify</h2>
          <p>{run.ledger.fault}</p>
          <p class="small">
            Nothing that rests on it is shown. The rows as they are stored are in its ledger.
          </p>
        </div>
      )}
      <nav class="jump" aria-label="On this page">
        {run.holds.length > 0 ? <a href="#holds">What holds it</a> : null}
        <a href="#blocks">Blocks</a>
        <a href="#findings">Findings</a>
        <a href="#tickets">Tickets</a>
        <a href="#people">People</a>
        <a href="#cost">Cost</a>
        <a href="#heads">Heads</a>
        <a href={`/runs/${run.id}/ledger`}>Ledger</a>
      </nav>
      <Holds run={run} />
      <h2 id="blocks">Blocks and paths</h2>
      <Blocks run={run} />
      <h2 id="findings">Findings</h2>
      <Findings run={run} />
      <h2 id="tickets">Tickets</h2>
      <Tickets tickets={run.tickets} nowMs={run.nowMs} />
      <h2 id="people">What people did</h2>
      <People run={run} />
      <h2 id="cost">Cost</h2>
      <Cost run={run} />
      <h2 id="heads">Heads</h2>
      <Heads run={run} />
      <h2 id="ledger">Ledger</h2>
      <p>
        {run.ledger.fault === null ? (
          <>
            {count(run.ledger.seq, 'row')}, verified. Head <code>{run.ledger.hash}</code>.
          </>
        ) : (
          'The chain does not verify.'
        )}{' '}
        <a href={`/runs/${run.id}/ledger`}>See every row</a>
      </p>
    </Layout>
  );
}

function titleOf(run: RunView): string {
  if (run.title !== '') return run.title;
  return run.pull === null ? `Merge group at ${run.head.slice(0, 10)}` : 'No title';
}

function Blocks({ run }: { readonly run: RunView }) {
  if (run.blocks.length === 0) return <p class="empty">The commits were not read yet, or change nothing.</p>;
  return (
    <>
      <GraphFigure blocks={run.blocks} paths={run.paths} />
      <details open={run.blocks.length <= 12}>
        <summary>{count(run.blocks.length, 'block')} as a table</summary>
        <Table
          caption="Blocks: a commit each, or commits that name one."
          head={[
            'Block',
            'Verdict',
            'Level',
            { label: 'Done', num: true },
            { label: 'Blocking', num: true },
            { label: 'Other findings', num: true },
            'Waits for',
          ]}
          rows={run.blocks.map((block) => [
            <>
              <strong>{block.title ?? block.id}</strong> <code class="soft">{block.id}</code>
            </>,
            <Chip word={blockWord(block.verdict)} />,
            block.level,
            `${block.counted} of ${block.files}`,
            String(block.blocking),
            String(block.other),
            block.after.length === 0 ? '–' : block.after.join(', '),
          ])}
        />
      </details>
      <details>
        <summary>{count(run.pathCount, 'path')} as a table</summary>
        <Table
          caption={
            run.pathCount > run.paths.length
              ? `The first ${run.paths.length} of ${run.pathCount} changed paths.`
              : 'Every changed path.'
          }
          head={['Path', 'Change', 'Block', 'Owned', 'Level', 'Standing', 'Why']}
          rows={run.paths.map((path) => [
            <code>{path.path}</code>,
            { A: 'added', M: 'modified', D: 'deleted', T: 'type' }[path.change] ?? path.change,
            path.block,
            path.ownership,
            path.level,
            <Chip word={standingWord(path.standing)} />,
            path.why ?? '–',
          ])}
        />
      </details>
    </>
  );
}

function People({ run }: { readonly run: RunView }) {
  if (run.acts.length === 0) return <p class="empty">Nobody gave a command.</p>;
  return (
    <Table
      caption="Acts of people, newest first, each by its row."
      head={['Act', 'Who', 'With', 'On', 'Said', 'When', 'Row']}
      rows={run.acts.map((act) => [
        <>
          <strong>{act.act}</strong>
          {act.revoked ? <span class="soft small"> taken back</span> : null}
        </>,
        <>
          {act.who}
          {act.self ? <span class="soft small"> (author)</span> : null}
        </>,
        act.permission ?? '–',
        act.head === null ? '–' : <code title={act.head}>{act.head.slice(0, 10)}</code>,
        act.said === null ? '–' : <span class="text">{act.said}</span>,
        <When ms={act.atMs} now={run.nowMs} />,
        <a href={`/runs/${run.id}/ledger?from=${act.seq}#row-${act.seq}`}>{act.seq}</a>,
      ])}
    />
  );
}

function Cost({ run }: { readonly run: RunView }) {
  const { cost } = run;
  if (cost.sessions === 0) return <p class="empty">No session was needed.</p>;
  const line = (name: string, model: string | null, of: Omit<typeof cost, 'reviewers'>) => [
    <strong>{name}</strong>,
    model ?? '–',
    number(of.sessions),
    number(of.tokensIn),
    number(of.tokensOut),
    money(of.costMicro),
    duration(of.ms),
  ];
  return (
    <Table
      caption="Sessions as runners reported them. Cost is in the money unit of the policy, 0 where no price is known."
      head={[
        'Reviewer',
        'Model',
        { label: 'Sessions', num: true },
        { label: 'Tokens in', num: true },
        { label: 'Tokens out', num: true },
        { label: 'Cost', num: true },
        { label: 'Time', num: true },
      ]}
      rows={[
        ...cost.reviewers.map((one) => line(one.name, one.model, one)),
        ...(cost.reviewers.length > 1 ? [line('All', null, cost)] : []),
      ]}
    />
  );
}

function Heads({ run }: { readonly run: RunView }) {
  if (run.heads.length === 0) return <p class="empty">No head was read yet.</p>;
  return (
    <Table
      caption="Heads of the run, newest first."
      head={[
        'Commit',
        'Verdict',
        'Base',
        { label: 'Commits', num: true },
        { label: 'Files', num: true },
        'Pushed',
        'History',
      ]}
      rows={run.heads.map((head) => [
        <a href={`${run.repositoryAddress}/commit/${head.sha}`} rel="noreferrer">
          <code>{head.sha.slice(0, 10)}</code>
        </a>,
        <Chip word={conclusionWord(head.conclusion)} />,
        head.base,
        String(head.commits),
        String(head.files),
        <When ms={head.atMs} now={run.nowMs} />,
        head.rewritten === null ? '–' : head.rewritten ? 'rewritten' : 'continued',
      ])}
    />
  );
}
