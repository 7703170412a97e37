/** The fold of receipt rows (VER-2): one step a row; what contradicts what stands is an anomaly. */
import type { RowData } from '../ledger/row-kinds.ts';
import { type ReceiptFact, receiptKey } from '../receipt.ts';
import type { FactOf } from './fact.ts';
import type { RunState } from './state.ts';

type Kind =
  | 'receipt.reserved'
  | 'receipt.waiting'
  | 'receipt.bound'
  | 'receipt.started'
  | 'receipt.ended'
  | 'receipt.refused'
  | 'receipt.reused';

/** The steps of `fold.ts` for receipts. */
export const receiptSteps: { readonly [K in Kind]: (state: RunState, row: FactOf<K>) => void } = {
  'receipt.reserved': (state, { seq, data }) => {
    const key = receiptKey(data.block, data.receipt);
    if (state.receipts.has(key))
      return void anomaly(state, seq, `${data.receipt} of ${data.block} is reserved twice`);
    state.receipts.set(key, {
      block: data.block,
      id: data.receipt,
      commands: data.commands,
      from: data.from,
      definition: data.definition,
      head: data.head,
      state: 'reserved',
      why: null,
      job: null,
      lease: null,
      conclusion: null,
      ms: 0,
      reused: null,
      told: null,
      seq,
    });
  },
  'receipt.waiting': (state, { seq, data }) => step(state, seq, data, { ...NOTHING, why: data.why }),
  'receipt.bound': (state, { seq, data }) =>
    step(state, seq, data, { ...NOTHING, state: 'running', job: jobOf(data.job) }),
  'receipt.started': (state, { seq, data }) =>
    step(state, seq, data, { ...NOTHING, state: 'running', lease: data.lease }),
  'receipt.ended': (state, { seq, data }) =>
    step(state, seq, data, {
      state: data.state,
      why: data.why,
      job: jobOf(data.job),
      lease: data.lease ?? null,
      conclusion: data.conclusion,
      ms: data.ms,
      told: data.told ?? null,
    }),
  // LSE-4: of two ends that one runner told of neither can be trusted; what came too late changes nothing
  'receipt.refused': (state, { seq, data }) => {
    const known = state.receipts.get(receiptKey(data.block, data.receipt));
    if (data.reason !== 'conflict' || known?.lease !== data.lease || known.state !== 'passed') return;
    const { job, lease, conclusion, ms } = known;
    step(state, seq, data, { state: 'failed', why: 'two_results', job, lease, conclusion, ms });
  },
  'receipt.reused': (state, { seq, data }) => {
    const from = state.receipts.get(receiptKey(data.from.block, data.from.receipt));
    if (from === undefined || from.state !== 'passed' || from.seq !== data.from.seq)
      return void anomaly(state, seq, `${data.receipt} of ${data.block} rests on what did not pass`);
    const { job, lease, conclusion, ms } = from;
    const reused = receiptKey(from.block, from.id);
    step(state, seq, data, { state: 'passed', why: null, job, lease, conclusion, ms, reused });
  },
};

const NOTHING = { state: 'waiting', why: null, job: null, lease: null, conclusion: null, ms: 0 } as const;

type Next = Pick<ReceiptFact, 'state' | 'why' | 'job' | 'lease' | 'conclusion' | 'ms'> &
  Partial<Pick<ReceiptFact, 'told' | 'reused'>>;

function step(
  state: RunState,
  seq: number,
  data: { readonly block: string; readonly receipt: string },
  next: Next,
): void {
  const key = receiptKey(data.block, data.receipt);
  const known = state.receipts.get(key);
  if (known === undefined)
    return void anomaly(state, seq, `${data.receipt} of ${data.block} was never reserved`);
  state.receipts.set(key, { ...known, told: null, reused: null, ...next, seq });
}

function jobOf(job: RowData<'receipt.ended'>['job']): ReceiptFact['job'] {
  return job === null ? null : { workflowRun: job.workflow_run, attempt: job.attempt, job: job.job };
}

function anomaly(state: RunState, seq: number, detail: string): void {
  state.anomalies.push({ seq, detail });
}
