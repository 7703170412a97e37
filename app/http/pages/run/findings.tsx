/** Findings of a run: what, where, in which state, and the rows that say so. */

import type { FindingView } from '../../../flow/read-run/findings.ts';
import type { RunView } from '../../../flow/read-run.ts';
import { Chip } from '../layout.tsx';
import { moment, severityTone, type Word } from '../words.ts';

/** The list; closed ones fold. */
export function Findings({ run }: { readonly run: RunView }) {
  const open = run.findings.filter((one) => one.state === 'open' || one.state === 'answered');
  const over = run.findings.filter((one) => one.state !== 'open' && one.state !== 'answered');
  if (run.findings.length === 0) return <p class="empty">Nothing was found.</p>;
  return (
    <>
      {open.length === 0 ? <p class="empty">No finding is open.</p> : <List findings={open} run={run} />}
      {over.length === 0 ? null : (
        <details>
          <summary>{over.length} that ended</summary>
          <List findings={over} run={run} />
        </details>
      )}
    </>
  );
}

function List({ findings, run }: { readonly findings: readonly FindingView[]; readonly run: RunView }) {
  return (
    <ul class="list">
      {findings.map((finding) => (
        <li class="card" id={`F${finding.number}`}>
          <div class="head">
            <Chip word={{ text: finding.severity, tone: severityTone(finding.severity) }} />
            <h3>
              F{finding.number} {finding.title ?? 'its text was erased'}
            </h3>
            <Chip word={stateWord(finding)} />
          </div>
          <p class="meta">
            <a href={addressOf(finding, run)} rel="noreferrer">
              <code>
                {finding.path}:{lines(finding)}
              </code>
            </a>
            <span>{finding.lens}</span>
            <span>by {finding.reviewer}</span>
            {finding.side === 'base' ? <span>on the base side</span> : null}
          </p>
          {finding.body === null ? null : <p class="text">{finding.body}</p>}
          {finding.suggestion === null ? null : (
            <>
              <p class="small soft">Suggested instead:</p>
              <pre>{finding.suggestion}</pre>
            </>
          )}
          <p class="meta small">
            {finding.rows.map((row) => (
              <a href={`/runs/${run.id}/ledger?from=${row.seq}#row-${row.seq}`} title={moment(row.atMs)}>
                row {row.seq} {row.kind.replace('finding.', '')}
              </a>
            ))}
          </p>
        </li>
      ))}
    </ul>
  );
}

function stateWord(finding: FindingView): Word {
  if (finding.blocks) return { text: `${finding.state}, blocks`, tone: 'bad' };
  const open = finding.state === 'open' || finding.state === 'answered';
  return { text: finding.state, tone: open ? 'wait' : finding.state === 'fixed' ? 'ok' : 'off' };
}

function lines({ startLine, endLine }: FindingView): string {
  return startLine === endLine ? String(startLine) : `${startLine}–${endLine}`;
}

/** On GitHub, at the commit that has the line. */
function addressOf(finding: FindingView, run: RunView): string {
  const at = finding.side === 'head' ? run.head : run.baseRef;
  const path = finding.path.split('/').map(encodeURIComponent).join('/');
  const end = finding.endLine === finding.startLine ? '' : `-L${finding.endLine}`;
  return `${run.repositoryAddress}/blob/${encodeURIComponent(at)}/${path}#L${finding.startLine}${end}`;
}
