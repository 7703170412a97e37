/** Signing in and out: GET /signin, GitHub's return to it, POST /signout. */
import type { Hono } from 'hono';
import { Refusal } from '../../errors.ts';
import type { PageDeps } from '../../flow/deps.ts';
import { beginSignIn, CALLBACK_PATH, signIn } from '../../flow/sign-in.ts';
import { signOut } from '../../flow/sign-out.ts';
import { isOwnForm, type Jar, localPath } from './cookie.ts';
import { answerPage } from './layout.tsx';
import { Message } from './message.tsx';
import type { Visits } from './visits.ts';

/** Adds the routes. */
export function mountSignIn(app: Hono, deps: PageDeps, jar: Jar, visits: Visits): void {
  app.get('/signin', (c) => {
    const flow = beginSignIn(deps);
    jar.setFlow(c, {
      state: flow.state,
      verifier: flow.verifier,
      next: localPath(c.req.query('next') ?? '/'),
    });
    return c.redirect(flow.url, 302);
  });

  app.get(CALLBACK_PATH, async (c) => {
    const flow = jar.flow(c);
    jar.clearFlow(c);
    const { code, state, error } = c.req.query();
    // the state is bound to the browser that began: nobody is signed in by somebody else's link
    if (flow === null || state !== flow.state) throw stale();
    if (error === 'access_denied') {
      return answerPage(
        c,
        403,
        <Message title="Not signed in" frame={visits.frame(null)}>
          <p>You did not allow it on GitHub. Nothing was kept.</p>
          <p>
            <a href="/">Go on without</a>
          </p>
        </Message>,
      );
    }
    if (error !== undefined) {
      deps.log.error({ error: /^[a-z_]{1,60}$/.test(error) ? error : 'other' }, 'sign-in');
      throw new Refusal(
        'bad_request',
        'GitHub refused the sign-in: the operator finds the reason in the log',
      );
    }
    if (code === undefined || !/^[\w-]{1,200}$/.test(code)) throw stale();
    const secret = await signIn(deps, { code, verifier: flow.verifier });
    jar.setVisit(c, secret);
    return c.redirect(flow.next, 303);
  });

  app.post('/signout', async (c) => {
    const visit = await visits.of(c);
    if (visit !== null) {
      const form = await c.req.parseBody();
      if (!isOwnForm(c, visit.family, form['token'])) throw foreignForm();
      await signOut(deps, visit);
    }
    jar.clearVisit(c);
    return c.redirect('/', 303);
  });
}

/** A form that no page of ours sent to this visitor. */
export function foreignForm(): Refusal {
  return new Refusal(
    'forbidden',
    'the form is not from a page of yours, or it is too old',
    'load the page again',
  );
}

function stale(): Refusal {
  return new Refusal(
    'unauthorized',
    'this sign-in is over, was used already, or began in another browser',
    'begin again',
  );
}
