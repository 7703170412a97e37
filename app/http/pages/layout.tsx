/** What every page has around its content, and the small parts that pages share. */
import type { Context } from 'hono';
import type { Child, PropsWithChildren } from 'hono/jsx';
import { ICON_PATH, STYLE_PATH } from './style.ts';
import { ago, moment, type Tone, type Word } from './words.ts';

/** What the frame of a page shows of the request. */
export interface Frame {
  readonly version: string;
  /** Who is signed in, with the token of their forms; null: nobody. */
  readonly visitor: { readonly login: string; readonly formToken: string } | null;
}

/** A whole page as HTML. */
export function answerPage(
  c: Context,
  status: 200 | 400 | 401 | 403 | 404 | 413 | 429 | 500 | 502 | 503,
  page: Child,
): Response | Promise<Response> {
  return c.html(`<!doctype html>\n${String(page)}`, status);
}

/** The frame. */
export function Layout(
  props: PropsWithChildren<{
    readonly title: string;
    readonly frame: Frame;
    readonly at?: 'runs' | 'queue';
  }>,
) {
  const { title, frame, at } = props;
  const current = (name: string) => (at === name ? { 'aria-current': 'page' as const } : {});
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        <title>{title} · Countersign</title>
        <link rel="stylesheet" href={STYLE_PATH} />
        <link rel="icon" href={ICON_PATH} type="image/svg+xml" />
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <header class="top">
          <div>
            <a class="brand" href="/">
              <Sign tone="ok" size={20} /> Countersign
            </a>
            {frame.visitor === null ? (
              <nav />
            ) : (
              <nav aria-label="Pages">
                <a href="/" {...current('runs')}>
                  Runs
                </a>
                <a href="/queue" {...current('queue')}>
                  Queue
                </a>
              </nav>
            )}
            {frame.visitor === null ? null : (
              <form class="who" method="post" action="/signout">
                <span>{frame.visitor.login}</span>
                <input type="hidden" name="token" value={frame.visitor.formToken} />
                <button class="quiet" type="submit">
                  Sign out
                </button>
              </form>
            )}
          </div>
        </header>
        <main id="main">{props.children}</main>
        <footer class="foot">Countersign {frame.version}. Times are those of the server’s database.</footer>
      </body>
    </html>
  );
}

const SHAPES: Readonly<Record<Tone, string>> = {
  ok: 'M4.5 8.3l2.4 2.4 4.6-5',
  bad: 'M5.3 5.3l5.4 5.4M10.7 5.3l-5.4 5.4',
  wait: 'M8 4.4v4.4M8 11.4v.2',
  busy: 'M8 4.4V8l2.4 1.6',
  off: 'M5 8h6',
};

/** The shape of a tone in a circle; decoration beside its word. */
export function Sign({ tone, size = 14 }: { readonly tone: Tone; readonly size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <circle cx="8" cy="8" r="7" fill="none" stroke="currentColor" stroke-width="1.5" />
      <path
        d={SHAPES[tone]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.7"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}

/** A state as a chip. */
export function Chip({ word }: { readonly word: Word }) {
  return (
    <span class={`chip ${word.tone}`}>
      <Sign tone={word.tone} size={12} />
      {word.text}
    </span>
  );
}

/** A moment, roughly; in full for whoever asks. */
export function When({ ms, now }: { readonly ms: number; readonly now: number }) {
  return (
    <time datetime={new Date(ms).toISOString()} title={moment(ms)} class="nowrap">
      {ago(ms, now)}
    </time>
  );
}

/** Our own words, in which back-ticks mark code. */
export function Prose({ text }: { readonly text: string }) {
  return <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code>{part}</code> : part))}</>;
}

/** A table that scrolls by itself; each row is cells in the order of `head`. */
export function Table(props: {
  readonly caption: string;
  readonly head: readonly (string | { readonly label: string; readonly num: true })[];
  readonly rows: readonly (readonly Child[])[];
  /** Anchors of the rows. */
  readonly ids?: readonly string[];
}) {
  const head = props.head.map((one) => (typeof one === 'string' ? { label: one, num: false } : one));
  return (
    <section class="scroll" tabindex={0} aria-label={props.caption}>
      <table class="stack">
        <caption>{props.caption}</caption>
        <thead>
          <tr>
            {head.map((one) => (
              <th scope="col" class={one.num ? 'num' : undefined}>
                {one.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((cells, row) => (
            <tr id={props.ids?.[row]}>
              {cells.map((cell, index) => (
                <td class={head[index]?.num === true ? 'num' : undefined} data-label={head[index]?.label}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
