/** The list of runs that a visitor may see. */
import type { ListedRun, RunList } from '../../flow/read-runs.ts';
import { Chip, type Frame, Layout, When } from './layout.tsx';
import { conclusionWord } from './words.ts';

/** The page; `first`: it begins with the newest run. */
export function RunsPage(props: {
  readonly frame: Frame;
  readonly list: RunList;
  readonly first: boolean;
  readonly nowMs: number;
}) {
  const { list, nowMs } = props;
  return (
    <Layout title="Runs" frame={props.frame} at="runs">
      <h1>Runs</h1>
      {list.unanswered ? (
        <div class="note wait">
          <p>
            GitHub did not answer for some repositories: their runs are left out. Load the page again in a
            minute.
          </p>
        </div>
      ) : null}
      {list.runs.length === 0 ? (
        <p class="empty">
          {props.first
            ? 'There is no run in a repository that you were given access to. A repository added since you signed in shows after you sign in again.'
            : 'No older runs here.'}
        </p>
      ) : (
        <div class="card runs">
          <ul>
            {list.runs.map((run) => (
              <Line run={run} nowMs={nowMs} />
            ))}
          </ul>
        </div>
      )}
      <div class="pager">
        {props.first ? null : <a href="/">Newest</a>}
        {list.older === null ? null : <a href={`/?before=${list.older}`}>Older</a>}
      </div>
    </Layout>
  );
}

function Line({ run, nowMs }: { readonly run: ListedRun; readonly nowMs: number }) {
  const over = run.status !== 'open';
  return (
    <li>
      <span>
        <Chip word={conclusionWord(run.conclusion)} />
      </span>
      <span>
        <a class="title" href={`/runs/${run.id}`}>
          {run.title === '' ? (run.pull === null ? 'Merge group' : 'No title') : run.title}
        </a>
        <span class="meta">
          <span>
            {run.repository}
            {run.pull === null ? ' merge group' : ` #${run.pull}`}
          </span>
          {run.authorLogin === null ? null : <span>{run.authorLogin}</span>}
          <span>
            into <code>{run.baseRef}</code>
          </span>
          {run.mode === 'advisory' ? <span>advisory</span> : null}
          {run.draft ? <span>draft</span> : null}
          {run.epoch > 1 ? <span>epoch {run.epoch}</span> : null}
          {over ? <span>{run.status}</span> : null}
        </span>
      </span>
      <span class="soft small">
        <When ms={run.openedAtMs} now={nowMs} />
      </span>
    </li>
  );
}
