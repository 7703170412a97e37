/** Which other open pull requests touch or reserve the same paths (OWN-3, OWN-7, PUB-7): told, never part of a verdict. */
import { showPath, type WirePath } from '../path.ts';
import { Markdown, md } from './markdown.ts';
import { count } from './title.ts';

/** One other pull request; `paths` are the first of `count`. */
export interface Contention {
  readonly pull: string;
  readonly kind: 'touches' | 'reserves';
  readonly count: number;
  readonly paths: readonly WirePath[];
}

const MOST = { pulls: 10, paths: 3 } as const;

/** The part of the summary; empty where nobody else has these paths. */
export function contentionPart(contention: readonly Contention[]): Markdown {
  if (contention.length === 0) return md``;
  const lines = contention.slice(0, MOST.pulls).map((one) => {
    const paths = one.paths.slice(0, MOST.paths).map((path) => Markdown.code(showPath(path)));
    const more = one.count - paths.length;
    const list = Markdown.join([...paths, ...(more > 0 ? [md`${more} more`] : [])], ', ');
    return md`- Pull request ${number(one.pull)} ${one.kind} ${list}`;
  });
  const rest = contention.length - lines.length;
  const more = rest > 0 ? [md`- … and ${count(rest, 'more line')}`] : [];
  return Markdown.join(
    [
      md`**Also in other pull requests** Whoever merges second merges these paths again.`,
      Markdown.join([...lines, ...more], '\n'),
    ],
    '\n\n',
  );
}

/** GitHub links `#12` to the pull request; only digits are let through. */
function number(pull: string): Markdown {
  return Markdown.md([/^[0-9]{1,20}$/.test(pull) ? `#${pull}` : '?'] as unknown as TemplateStringsArray);
}
