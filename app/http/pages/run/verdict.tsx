/** The verdict of a run, and what holds it: the first things a reader looks for. */
import type { HoldView, RunView } from '../../../flow/read-run.ts';
import { Prose, Sign, When } from '../layout.tsx';
import { classTone, conclusionWord, count } from '../words.ts';

/** The verdict. */
export function Verdict({ run }: { readonly run: RunView }) {
  const { verdict } = run;
  const word = conclusionWord(verdict.conclusion);
  return (
    <section class={`card verdict ${word.tone}`} id="verdict" aria-label="Verdict">
      <Sign tone={word.tone} size={34} />
      <div>
        <h2>{word.text}</h2>
        <p>{alone(verdict.said)}</p>
        {verdict.files === 0 ? null : <Progress run={run} />}
        <p class="soft small">
          On <code title={run.head}>{run.head.slice(0, 10)}</code>
          {verdict.decidedAtMs === null ? (
            ', not recorded yet'
          ) : (
            <>
              , decided <When ms={verdict.decidedAtMs} now={run.nowMs} />
            </>
          )}
          {verdict.conclusion === 'in_progress' ? (
            <>
              {' · '}
              <a href={`/runs/${run.id}`}>load again</a>
            </>
          ) : null}
          {run.mode === 'advisory' ? ' · advisory: reported, and never required' : ''}
        </p>
      </div>
    </section>
  );
}

/** The line of a list stands below its own heading here. */
function alone(said: string): string {
  const rest = said.replace(/^(?:Passed|Draft): /, '');
  return rest.charAt(0).toUpperCase() + rest.slice(1);
}

function Progress({ run }: { readonly run: RunView }) {
  const { files, counted, unreviewed } = run.verdict;
  const said = [
    `${counted} of ${count(files, 'file')} reviewed`,
    ...(unreviewed > 0 ? [`${unreviewed} recorded and not reviewed`] : []),
  ].join(', ');
  const [done, noted] = [(counted / files) * 100, (unreviewed / files) * 100];
  return (
    <>
      <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={said}>
        <rect class="all" width="100" height="8" />
        <rect class="done" width={done} height="8" />
        <rect class="noted" x={done} width={noted} height="8" />
      </svg>
      <p class="small soft">{said}.</p>
    </>
  );
}

/** The reasons, in the order in which they decide. */
export function Holds({ run }: { readonly run: RunView }) {
  if (run.holds.length === 0) return null;
  return (
    <>
      <h2 id="holds">What holds it</h2>
      <ul class="list">
        {run.holds.map((hold) => (
          <Hold hold={hold} nowMs={run.nowMs} />
        ))}
      </ul>
    </>
  );
}

function Hold({ hold, nowMs }: { readonly hold: HoldView; readonly nowMs: number }) {
  const more = hold.count - hold.concerns.length;
  return (
    <li class={`card hold ${classTone(hold.class)}`}>
      <div class="head">
        <h3>{hold.what.charAt(0).toUpperCase() + hold.what.slice(1)}</h3>
        <code class="soft">{hold.code}</code>
      </div>
      {hold.detail === null ? null : <p class="text">{hold.detail}</p>}
      {hold.concerns.length === 0 ? null : (
        <div class="concerns">
          {hold.concerns.map((one) => (
            <code>{/^F\d+$/.test(one) ? <a href={`#${one}`}>{one}</a> : one}</code>
          ))}
          {more > 0 ? <span class="soft small">and {more} more</span> : null}
        </div>
      )}
      <dl>
        <dt>Clears</dt>
        <dd>
          <Prose text={hold.clears} />
        </dd>
        <dt>Who</dt>
        <dd>{hold.who}</dd>
        {hold.untilMs === null ? null : (
          <>
            <dt>{hold.past ? 'Was given until' : 'Given until'}</dt>
            <dd>
              <When ms={hold.untilMs} now={nowMs} />
            </dd>
          </>
        )}
      </dl>
    </li>
  );
}
