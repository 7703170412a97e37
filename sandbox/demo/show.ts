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
  if (run.summary) lines.push('', ...plain(run.summary).map((line) => (line === '' ? '' : `  ${line}`)));
  for (const one of run.annotations)
    lines.push(
      '',
      `  ${one.path}:${one.start_line}  ${one.annotation_level}  ${(one.title ?? '').replace(INVISIBLE, '')}`,
      `    ${one.message.replace(INVISIBLE, '').split('\n').join('\n    ')}`,
    );
  return lines.join('\n');
}

/** What keeps text from being a link or a mention; a terminal makes neither. */
const INVISIBLE = /\u200b/g;

const ENTITIES: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"' };

/** Markdown as a reader sees it: folded parts closed, links by their text, nothing escaped. */
function plain(markdown: string): string[] {
  return markdown
    .replace(/<details><summary>(.*?)<\/summary>[\s\S]*?<\/details>/g, '▸ $1')
    .replace(/(?<!\\)\[([^\]]*)\]\(([^)\s]*)\)/g, (_, text: string, to: string) =>
      to.includes('/runs/') ? `${text}: ${to}` : text,
    )
    .replace(/(?<!\\)(\*\*|`)/g, '')
    .replace(/\\([!-/:-@[-`{-~])/g, '$1')
    .replace(/&(lt|gt|amp|quot);/g, (_, name: string) => ENTITIES[name] ?? '')
    .replace(INVISIBLE, '')
    .trimEnd()
    .split('\n');
}
