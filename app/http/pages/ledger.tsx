/** The rows of a run's ledger, with the button that verifies all of them. */
import type { LedgerVerdict, LedgerView, RowView } from '../../flow/read-ledger.ts';
import { Chip, type Frame, Layout } from './layout.tsx';
import { count, moment } from './words.ts';

/** The page; `verdict` after a press of the button. */
export function LedgerPage(props: {
  readonly frame: Frame;
  readonly ledger: LedgerView;
  readonly verdict: LedgerVerdict | null;
}) {
  const { ledger, frame, verdict } = props;
  const here = `/runs/${ledger.id}/ledger`;
  return (
    <Layout
      title={`Ledger of ${ledger.repository}${ledger.pull === null ? '' : ` #${ledger.pull}`}`}
      frame={frame}
    >
      <p class="crumb">
        {ledger.repository}
        {ledger.pull === null ? ' · merge group' : ` #${ledger.pull}`} ·{' '}
        <a href={`/runs/${ledger.id}`}>{ledger.title === '' ? 'run' : ledger.title}</a>
      </p>
      <h1>Ledger</h1>
      <p class="lead soft">
        {count(ledger.seq, 'row')}, newest first, as they are stored. Each row is signed and linked to the one
        before it; texts are kept apart and named here by their SHA-256.
      </p>
      {verdict === null ? null : <Verdict verdict={verdict} />}
      <form method="post" action={`${here}/verify`} class="pager">
        <input type="hidden" name="token" value={frame.visitor?.formToken ?? ''} />
        <button class="primary" type="submit">
          Verify every row
        </button>
        <span class="soft small">From the first row, and against the heads that GitHub keeps.</span>
      </form>
      {ledger.rows.length === 0 ? <p class="empty">There is no row.</p> : null}
      <ol class="list rows" reversed start={ledger.rows[0]?.seq ?? 1}>
        {ledger.rows.map((row) => (
          <Row row={row} />
        ))}
      </ol>
      <nav class="pager" aria-label="Rows">
        {ledger.newer === null ? null : <a href={`${here}?from=${ledger.newer}`}>Newer rows</a>}
        {ledger.older === null ? null : <a href={`${here}?from=${ledger.older}`}>Older rows</a>}
      </nav>
    </Layout>
  );
}

function Verdict({ verdict }: { readonly verdict: LedgerVerdict }) {
  return (
    <div class={`note ${verdict.intact ? 'ok' : 'bad'}`} role="status" id="verdict">
      <h2>{verdict.intact ? 'The ledger is intact' : 'The ledger does not verify'}</h2>
      {verdict.intact ? (
        <p>
          {count(verdict.seq, 'row')} verified; head <code>{verdict.hash}</code>.
        </p>
      ) : (
        <p>{verdict.fault}</p>
      )}
      <p class="small">
        {verdict.published === null
          ? 'GitHub did not answer, so nothing from outside the database was held against it.'
          : verdict.published === 0
            ? 'GitHub keeps no signed head of this run yet, so nothing from outside the database was held against it.'
            : `Held against ${count(verdict.published, 'signed head')} that GitHub keeps.`}
      </p>
    </div>
  );
}

function Row({ row }: { readonly row: RowView }) {
  return (
    <li class="card" id={`row-${row.seq}`} value={row.seq}>
      <div class="head">
        <span class="soft mono">{row.seq}</span>
        <h3>{row.kind}</h3>
        {row.atMs === null ? (
          <Chip word={{ text: 'not readable', tone: 'bad' }} />
        ) : (
          <time class="soft small" datetime={new Date(row.atMs).toISOString()}>
            {moment(row.atMs)}
          </time>
        )}
        {row.actor === null ? null : <span class="soft small">{row.actor}</span>}
        {row.block === null ? null : <span class="soft small">block {row.block}</span>}
      </div>
      <details>
        <summary>Data and hashes</summary>
        <pre>{row.data}</pre>
        <p class="small soft">
          hash <code>{row.hash}</code>
          <br />
          after <code>{row.prev}</code>
        </p>
      </details>
    </li>
  );
}
