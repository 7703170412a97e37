/** Works review tickets in this process: a real repository, real programs and providers; only the server's part is a book. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Inputs } from '../../../action/inputs.ts';
import { openObjects } from '../../../action/objects/store.ts';
import { type Reviewed, reviewTicket } from '../../../action/review.ts';
import type { SessionRecord } from '../../../action/reviewers/reviewer.ts';
import { redactor } from '../../../app/domain/redact.ts';
import { type CheckedResult, checkResult } from '../../../app/domain/result.ts';
import type { LeasedTicket, ReviewerSpec, TicketResult } from '../../../app/protocol/runner.ts';
import { makeRepository } from '../harness.ts';
import { makeTicket, SALT } from '../server.ts';

export type Worked = {
  reviewed: Reviewed;
  result: TicketResult;
  /** What the server makes of it. */
  checked: CheckedResult;
  records: SessionRecord[];
  purposes: string[];
};
export type ReviewStage = {
  work: (specs: ReviewerSpec[], more?: Partial<LeasedTicket>, signal?: AbortSignal) => Promise<Worked>;
  close: () => Promise<void>;
};

/** The file under review: line 2 is the one with a fault. */
const FILES = { 'a.ts': 'export const a = 1;\nexport const b = eval(input);\nexport const c = 3;\n' };

/** Opens a stage whose jobs have this PATH and these secrets in their environment; `files` are base and head instead of the usual. */
export async function openStage(of: {
  path: string;
  secrets: Record<string, string>;
  files?: readonly [base: Record<string, string>, head: Record<string, string>];
}): Promise<ReviewStage> {
  // a new file: there is no diff to ask git for with every ticket
  const [base, head] = of.files ?? [{}, FILES];
  const repository = makeRepository(base, head);
  const scratch = mkdtempSync(path.join(tmpdir(), 'cs-stage-'));
  const objects = openObjects({
    dir: path.join(scratch, 'objects'),
    token: '',
    serverUrl: 'https://github.example',
    path: process.env['PATH'] ?? '',
  });
  const inputs = {
    path: of.path,
    secrets: Object.values(of.secrets),
    secret: (name: string) => of.secrets[name] ?? null,
  } as unknown as Inputs;
  let round = 0;
  return {
    async work(specs, more = {}, signal = new AbortController().signal) {
      const ticket = makeTicket({ ...repository.at('a.ts'), reviewers: specs, round: round++, ...more });
      const records: SessionRecord[] = [];
      const purposes: string[] = [];
      const admitted = new Map<string, string>();
      const reviewed = await reviewTicket(
        { inputs, objects, scratch: path.join(scratch, `ticket-${ticket.round}`) },
        ticket,
        {
          records: () => records,
          admitted: () => admitted.size > 0,
          async admit({ reviewer, purpose }) {
            purposes.push(purpose);
            const session = `session-${purposes.length}`;
            admitted.set(session, reviewer);
            return { kind: 'admitted', session };
          },
          async ended(record) {
            records.push(record);
          },
          ran: (record) => void records.push({ ...record, id: `ran-${records.length}` }),
        },
        signal,
      );
      const result = (reviewed.kind === 'result' ? reviewed.result : null) as TicketResult;
      const spec = { ...ticket, kind: 'review' as const, pull: '1' };
      const checked =
        result === null ? result : checkResult(spec, ticket.path, result, admitted, redactor(), SALT);
      return { reviewed, result, checked, records, purposes };
    },
    async close() {
      await objects.close();
      rmSync(scratch, { recursive: true, force: true });
      repository.remove();
    },
  };
}
