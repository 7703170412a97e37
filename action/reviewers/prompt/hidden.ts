/** What a prompt may show (REV-8): a model is outside of the runner, so secrets are taken out before it is asked. */
import { redactor } from '../../../app/domain/redact.ts';
import type { ReviewTask } from '../reviewer.ts';

/**
 * The task with every text that a prompt quotes redacted, line by line: line numbers stay, and a quote of
 * what is shown is found again in the file, which is redacted alike (REV-4). Paths are shown as they are.
 */
export function hidden(task: ReviewTask, secrets: readonly string[]): ReviewTask {
  const { ticket, review, neighbours } = task;
  // a key that stands whole in the file is known in the diff too, where every line has a sign before it
  const { redact } = redactor(secrets).learn(`${review.base ?? ''}\n${review.text}`);
  return {
    ...task,
    ticket: {
      ...ticket,
      block: { ...ticket.block, title: redact(ticket.block.title), brief: redact(ticket.block.brief) },
      ...(ticket.clauses === undefined ? {} : { clauses: ticket.clauses.map(redact) }),
      earlier: ticket.earlier.map((one) => ({
        ...one,
        title: redact(one.title),
        body: redact(one.body),
        answer: one.answer === null ? null : redact(one.answer),
      })),
    },
    review: {
      ...review,
      text: redact(review.text),
      base: review.base === null ? null : redact(review.base),
      diff: redact(review.diff),
    },
    neighbours: neighbours.map(({ path, hunks }) => ({ path, hunks: redact(hunks) })),
  };
}
