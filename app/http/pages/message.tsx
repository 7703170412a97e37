/** Pages that say one thing: sign in, not found, not now, what is missing. */
import type { PropsWithChildren } from 'hono/jsx';
import { type Frame, Layout } from './layout.tsx';

/** A page with a heading and a few sentences. */
export function Message(props: PropsWithChildren<{ readonly title: string; readonly frame: Frame }>) {
  return (
    <Layout title={props.title} frame={props.frame}>
      <h1>{props.title}</h1>
      <div class="lead">{props.children}</div>
    </Layout>
  );
}

/** Asks to sign in, and comes back to `next`. */
export function SignInPage({ frame, next }: { readonly frame: Frame; readonly next: string }) {
  const to = next === '/' ? '/signin' : `/signin?next=${encodeURIComponent(next)}`;
  return (
    <Message title="Sign in" frame={frame}>
      <p>
        Countersign shows runs, findings and ledgers to people who may read the repository on GitHub. It
        learns who you are and keeps no token of yours.
      </p>
      <p>
        <a class="button primary" href={to}>
          Sign in with GitHub
        </a>
      </p>
    </Message>
  );
}

/** Says what the operator has to set before anybody can sign in. */
export function NotSetUpPage({ frame, callback }: { readonly frame: Frame; readonly callback: string }) {
  return (
    <Message title="Nobody can sign in yet" frame={frame}>
      <p>
        The server has no OAuth client. In the settings of the GitHub App add the callback URL{' '}
        <code>{callback}</code>, generate a client secret, and start the server with <code>CLIENT_ID</code>{' '}
        and <code>CLIENT_SECRET</code>. Until then the links of check runs lead to the pull request.
      </p>
    </Message>
  );
}

/** The same words for a run that is not there and for one that may not be seen. */
export function NotFoundPage({ frame }: { readonly frame: Frame }) {
  return (
    <Message title="Not found" frame={frame}>
      <p>There is no such page or run, or you may not see it.</p>
      {frame.visitor === null ? null : (
        <p>
          You are signed in as <strong>{frame.visitor.login}</strong>. A run can be seen by whoever may read
          its repository on GitHub.
        </p>
      )}
    </Message>
  );
}
