/** Tickets on a line of time as a picture, and the same as a table. */
import type { TicketsView, TicketView } from '../../../flow/read-run/tickets.ts';
import { Chip, Table, When } from '../layout.tsx';
import { count, duration, middle, moment, type Tone, ticketWord } from '../words.ts';
import { layTimeline, TIME, type TimeLine } from './timeline.ts';

/** The figure and the table. */
export function Tickets({ tickets, nowMs }: { readonly tickets: TicketsView; readonly nowMs: number }) {
  const all = tickets.tickets;
  const line = layTimeline(all, nowMs);
  if (line === null) return <p class="empty">No ticket was cut yet.</p>;
  return (
    <>
      <figure>
        <section class="scroll" tabindex={0} aria-label="Line of time">
          <svg
            class="chart"
            viewBox={`0 0 ${line.width} ${line.height}`}
            role="img"
            aria-labelledby="time-title time-text"
          >
            <title id="time-title">Tickets on a line of time</title>
            <desc id="time-text">
              {`${count(all.length, 'ticket')} from ${moment(line.fromMs)} to ${moment(line.toMs)}, ${duration(line.toMs - line.fromMs)} in all. The table below has each.`}
            </desc>
            {line.ticks.map((tick) => (
              <g>
                <line class="grid" x1={tick.x} x2={tick.x} y1={TIME.top - 6} y2={line.height - 4} />
                <text
                  class="faint"
                  x={tick.x}
                  y="16"
                  text-anchor={tick.x > TIME.right - 30 ? 'end' : 'middle'}
                >
                  {tick.label}
                </text>
              </g>
            ))}
            {line.lines.map((one) => (
              <Line line={one} />
            ))}
          </svg>
        </section>
        <ul class="legend">
          <li class="off">dotted: waits</li>
          {(['ok', 'busy', 'bad'] as const).map((tone) => (
            <li class={tone}>
              <svg width="18" height="10" aria-hidden="true" focusable="false">
                <rect width="18" height="10" rx="3" fill="currentColor" />
              </svg>
              {{ ok: 'reviewed', busy: 'with a runner', bad: 'ended without a review' }[tone]}
            </li>
          ))}
        </ul>
      </figure>
      {line.more > 0 || tickets.count > all.length ? (
        <p class="soft small">{`${count(tickets.count, 'ticket')} in all; the newest are shown.`}</p>
      ) : null}
      <details>
        <summary>{count(all.length, 'ticket')} as a table</summary>
        <Table
          caption="Tickets, oldest first."
          head={[
            'Path',
            'Block',
            'State',
            'Reviewers',
            { label: 'Grants', num: true },
            { label: 'Worked', num: true },
            'Queued',
          ]}
          rows={all.map((ticket) => [
            <code>{ticket.path}</code>,
            ticket.blockId,
            <State ticket={ticket} nowMs={nowMs} />,
            ticket.reviewers.join(', '),
            String(ticket.grant),
            worked(ticket, nowMs),
            <When ms={ticket.queuedAtMs} now={nowMs} />,
          ])}
        />
      </details>
    </>
  );
}

function State({ ticket, nowMs }: { readonly ticket: TicketView; readonly nowMs: number }) {
  return (
    <>
      <Chip word={ticketWord(ticket)} />
      {ticket.state === 'pending' && ticket.notBeforeMs !== null && ticket.notBeforeMs > nowMs ? (
        <span class="soft small">
          {' '}
          again <When ms={ticket.notBeforeMs} now={nowMs} />
        </span>
      ) : null}
      {ticket.reason === null ? null : <span class="soft small"> {ticket.reason}</span>}
    </>
  );
}

function worked(ticket: TicketView, nowMs: number): string {
  if (ticket.work.length === 0) return '–';
  return duration(ticket.work.reduce((sum, one) => sum + (one.toMs ?? nowMs) - one.fromMs, 0));
}

function Line({ line }: { readonly line: TimeLine }) {
  const { ticket, y } = line;
  return (
    <g>
      <text x="10" y={y + 4.5}>
        {middle(ticket.path, 36)}
        <title>{ticket.path}</title>
      </text>
      {line.waits.map((wait) => (
        <line class="queue" x1={wait.from} x2={wait.to} y1={y} y2={y} />
      ))}
      {line.work.map((one) => (
        <g class={toneOf(one.end)}>
          <rect class="mark" x={one.from} y={y - 7} width={Math.max(4, one.to - one.from)} height="14" rx="3">
            <title>{`${ticket.path}: ${one.end ?? 'with a runner'}, ${duration(one.ms)}`}</title>
          </rect>
        </g>
      ))}
    </g>
  );
}

function toneOf(end: string | null): Tone {
  if (end === null) return 'busy';
  return end === 'reviewed' ? 'ok' : 'bad';
}
