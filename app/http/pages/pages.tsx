/**
 * The pages (OPS-8): server-rendered, readable without script, each for a visitor and by the rights that
 * GitHub tells. Everything foreign is a text node of JSX, which escapes it; addresses are put together
 * from parts of ours.
 */
import { type Context, Hono, type MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { secureHeaders } from 'hono/secure-headers';
import { Fault, Refusal } from '../../errors.ts';
import type { PageDeps } from '../../flow/deps.ts';
import { readLedger, verifyLedger } from '../../flow/read-ledger.ts';
import { readQueue } from '../../flow/read-queue.ts';
import { readRun } from '../../flow/read-run.ts';
import { readRuns } from '../../flow/read-runs.ts';
import type { Visitor } from '../../flow/read-visit.ts';
import { CALLBACK_PATH } from '../../flow/sign-in.ts';
import { answerError } from '../answer-error.ts';
import { isOwnForm, type Jar, localPath } from './cookie.ts';
import { answerPage } from './layout.tsx';
import { LedgerPage } from './ledger.tsx';
import { Message, NotFoundPage, NotSetUpPage, SignInPage } from './message.tsx';
import { QueuePage } from './queue.tsx';
import { RunPage } from './run.tsx';
import { RunsPage } from './runs.tsx';
import { foreignForm, mountSignIn } from './sign-in.tsx';
import { ICON, ICON_PATH, STYLE, STYLE_PATH } from './style.ts';
import type { Visits } from './visits.ts';

/** Paths of pages: the headers below are theirs alone. */
const PATHS = ['/', '/runs/*', '/queue', '/signin', '/signin/*', '/signout', '/assets/*'];

/** The pages as a Hono app. Without an OAuth client they say what is missing. */
export function pages(deps: PageDeps, jar: Jar, visits: Visits): Hono {
  const app = new Hono();
  for (const path of PATHS) app.use(path, headers(deps), noStore, formLimit);
  app.onError((error, c) => failed(deps, visits, error, c));
  mountAssets(app);
  if (deps.signIn === null) {
    const missing = (c: Context) =>
      answerPage(
        c,
        503,
        <NotSetUpPage frame={visits.frame(null)} callback={`${deps.settings.publicUrl}${CALLBACK_PATH}`} />,
      );
    for (const path of ['/', '/queue', '/signin', '/runs/:id/ledger']) app.get(path, missing);
    return app;
  }
  mountSignIn(app, deps, jar, visits);
  mountViews(app, deps, visits);
  return app;
}

const FORM_BYTES = 4096;
const formLimit = bodyLimit({
  maxSize: FORM_BYTES,
  onError: () => {
    throw new Refusal('too_large', 'the form is larger than any of ours');
  },
});

/** Nothing from elsewhere, no script, in no frame, no address told to others. */
function headers(deps: PageDeps): MiddlewareHandler {
  return secureHeaders({
    contentSecurityPolicy: {
      defaultSrc: ["'none'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'"],
      formAction: ["'self'"],
      baseUri: ["'none'"],
      frameAncestors: ["'none'"],
    },
    xFrameOptions: 'DENY',
    referrerPolicy: 'no-referrer',
    crossOriginOpenerPolicy: 'same-origin',
    crossOriginResourcePolicy: 'same-origin',
    strictTransportSecurity: deps.settings.publicUrl.startsWith('https:') ? 'max-age=31536000' : false,
  });
}

const noStore: MiddlewareHandler = async (c, next) => {
  await next();
  if (c.res.headers.get('cache-control') === null) c.header('cache-control', 'no-store');
};

function mountAssets(app: Hono): void {
  const kept = 'public, max-age=31536000, immutable';
  app.get(STYLE_PATH, (c) =>
    c.body(STYLE, 200, { 'content-type': 'text/css; charset=utf-8', 'cache-control': kept }),
  );
  app.get(ICON_PATH, (c) =>
    c.body(ICON, 200, { 'content-type': 'image/svg+xml', 'cache-control': 'public, max-age=86400' }),
  );
}

function mountViews(app: Hono, deps: PageDeps, visits: Visits): void {
  /** A page for whoever is signed in; everybody else is asked to, whatever is behind the address. */
  const view =
    (show: (c: Context, visitor: Visitor) => Promise<Response>) =>
    async (c: Context): Promise<Response> => {
      const visitor = await visits.of(c);
      if (visitor !== null) return show(c, visitor);
      const next = c.req.method === 'GET' ? localPath(new URL(c.req.url).pathname) : '/';
      return answerPage(c, 401, <SignInPage frame={visits.frame(null)} next={next} />);
    };

  app.get(
    '/',
    view(async (c, visitor) => {
      const before = c.req.query('before') ?? null;
      const list = await readRuns(deps, visitor, before);
      const nowMs = visitor.now.getTime();
      return answerPage(
        c,
        200,
        <RunsPage frame={visits.frame(visitor)} list={list} first={before === null} nowMs={nowMs} />,
      );
    }),
  );
  app.get(
    '/runs/:id',
    view(async (c, visitor) => {
      const run = await readRun(deps, visitor, c.req.param('id') ?? '');
      return answerPage(c, 200, <RunPage frame={visits.frame(visitor)} run={run} />);
    }),
  );
  app.get(
    '/runs/:id/ledger',
    view(async (c, visitor) => {
      const from = /^\d{1,12}$/.exec(c.req.query('from') ?? '')?.[0];
      const at = from === undefined ? null : Number(from);
      const ledger = await readLedger(deps, visitor, c.req.param('id') ?? '', at);
      return answerPage(c, 200, <LedgerPage frame={visits.frame(visitor)} ledger={ledger} verdict={null} />);
    }),
  );
  app.post(
    '/runs/:id/ledger/verify',
    view(async (c, visitor) => {
      const form = await c.req.parseBody();
      if (!isOwnForm(c, visitor.family, form['token'])) throw foreignForm();
      const id = c.req.param('id') ?? '';
      const verdict = await verifyLedger(deps, visitor, id);
      const ledger = await readLedger(deps, visitor, id, null);
      return answerPage(
        c,
        200,
        <LedgerPage frame={visits.frame(visitor)} ledger={ledger} verdict={verdict} />,
      );
    }),
  );
  // what a browser does when somebody reloads the address of an answer
  app.get('/runs/:id/ledger/verify', (c) => c.redirect(localPath(`/runs/${c.req.param('id')}/ledger`), 303));
  app.get(
    '/queue',
    view(async (c, visitor) => {
      const queue = await readQueue(deps, visitor);
      return answerPage(c, 200, <QueuePage frame={visits.frame(visitor)} queue={queue} />);
    }),
  );
}

/** Errors as pages; of a fault only that it is one. */
async function failed(deps: PageDeps, visits: Visits, error: Error, c: Context): Promise<Response> {
  const frame = visits.frame(await visits.of(c).catch(() => null));
  if (error instanceof Refusal && error.code === 'not_found')
    return answerPage(c, 404, <NotFoundPage frame={frame} />);
  const { status, body, retryAfterS } = answerError(error);
  if (retryAfterS !== null) c.header('retry-after', String(retryAfterS));
  if (status >= 500) {
    const code = error instanceof Fault ? error.code : 'bug';
    deps.log.error({ path: c.req.path, code, error: error.name }, 'pages');
    const down = status === 503;
    return answerPage(
      c,
      down ? 503 : 500,
      <Message title={down ? 'Not now' : 'Something went wrong'} frame={frame}>
        <p>
          {down
            ? 'GitHub or the database does not answer. Load the page again in a moment.'
            : 'This is our fault. The server’s log says more.'}
        </p>
      </Message>,
    );
  }
  const shown = status === 429 || status === 413 || status === 401 || status === 403 ? status : 400;
  return answerPage(
    c,
    shown,
    <Message title={status === 429 ? 'Too many requests' : 'That did not work'} frame={frame}>
      <p>{body.error.message}.</p>
      {body.error.accepted === undefined ? null : <p>What works: {body.error.accepted}.</p>}
      <p>
        <a href="/">To the runs</a>
      </p>
    </Message>,
  );
}
