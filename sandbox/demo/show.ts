/** How the demo shows check runs: as GitHub would, in plain text. */
import type { CheckRun } from '../model.ts';

const marks: Record<string, string> = {
  success: '✓',
  failure: '✗',
  action_required: '!',
  cancelled: '–',
};

/** A check run as text: its mark, name, title, summary and annotations. */
export function showCheckRun(run: CheckRun): string {
  const state = run.status === 'completed' ? (run.conclusion ?? '') : run.status;
  const lines = [`${marks[state] ?? '·'} ${run.name}: ${state}`];
  if (run.title) lines.push(`  ${run.title}`);
  if (run.summary) lines.push('', ...run.summary.split('\n').map((line) => `  ${line}`));
  for (const one of run.annotations)
    lines.push(
      '',
      `  ${one.path}:${one.start_line}  ${one.annotation_level}  ${one.title ?? ''}`,
      `    ${one.message.split('\n').join('\n    ')}`,
    );
  return lines.join('\n');
}
