/**
 * How requests reach GitHub: 30 s at most (OPS-10), ids unrounded (case 70), redirects told instead
 * of followed. A followed redirect of a POST becomes a GET, and one that is followed silently keeps
 * an old name alive until somebody else takes it (case 75).
 */
import { LIMITS } from '../../domain/limits.ts';
import { parseLossless } from '../lossless.ts';
import { Moved } from './errors.ts';

const REDIRECTS = new Set([301, 302, 307, 308]);

/** `fetch` for Octokit. Throws `Moved` for a redirect. `stop` ends what is under way when the process drains. */
export function transport(stop: AbortSignal): typeof fetch {
  return async (input, init) => {
    const limit = AbortSignal.any([
      stop,
      AbortSignal.timeout(LIMITS.restMs.default),
      ...(init?.signal ? [init.signal] : []),
    ]);
    const answer = await fetch(input, { ...init, redirect: 'manual', signal: limit });
    if (REDIRECTS.has(answer.status)) {
      await answer.body?.cancel();
      throw new Moved('the address has moved');
    }
    if (!/\bjson\b/.test(answer.headers.get('content-type') ?? '')) return answer;
    const text = await answer.text();
    if (!/[0-9]{16}/.test(text)) return rebuild(answer, text);
    return rebuild(answer, JSON.stringify(parseLossless(text)));
  };
}

/** The same answer with another body; `url` is what Octokit reports and pages by. */
function rebuild(answer: Response, text: string): Response {
  const empty = answer.status === 204 || answer.status === 205 || answer.status === 304;
  const made = new Response(empty ? null : text, { status: answer.status, headers: answer.headers });
  Object.defineProperty(made, 'url', { value: answer.url });
  return made;
}
