/** The stage of the demo: a local GitHub, a scripted model and the server, all on free ports of this machine. */
import type { RunningServer } from '../../app/server.ts';
import { startServer } from '../../app/server.ts';
import { type SandboxGitHub, startGitHub } from '../github.ts';
import type { App, User } from '../model.ts';
import { openDemoFolder, removeDemoFolder } from './folder.ts';
import { type ScriptedModel, type ScriptRule, startScriptedModel } from './model.ts';

/** Everything that runs; `close` ends it in order. */
export interface Stage {
  readonly gh: SandboxGitHub;
  readonly app: App;
  readonly model: ScriptedModel;
  readonly server: RunningServer;
  readonly owner: User;
  readonly author: User;
  close(): Promise<void>;
}

/** What the scripted model objects to. */
const rules: ScriptRule[] = [
  {
    line: /^\s*return sum - coupon\.cents;/,
    severity: 'high',
    lens: 'correctness',
    title: 'The total can fall below zero',
    body: 'A coupon worth more than the cart makes the total negative, and the shop pays the customer. Floor it at zero.',
  },
];

/** What git inherits of this process, as the server's configuration would give it. */
const inherit = (names: readonly string[]) =>
  Object.fromEntries(
    names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );

/** Starts all of it; data lies in a folder of its own below `folder`, so that two demos never meet, and goes with `close`. */
export async function setStage(folder: string): Promise<Stage> {
  const data = openDemoFolder(folder);
  const gh = await startGitHub();
  const model = await startScriptedModel(rules);
  const owner = gh.createUser('tea-shop');
  const author = gh.createUser('maya');
  const app = gh.createApp({ slug: 'countersign' });
  const server = await startServer({
    databaseUrl: null,
    dataDir: data,
    keys: null,
    inherit,
    logLevel: 'error',
    host: '127.0.0.1',
    port: 0,
    publicUrl: null,
    appId: String(app.id),
    privateKey: app.privateKey,
    webhookSecrets: [app.webhookSecret],
    apiUrl: gh.apiUrl,
    serverUrl: gh.url,
    oidcIssuer: gh.oidc.issuer,
    oidcAudience: null,
    signIn: { clientId: app.clientId, clientSecret: app.clientSecret },
  });
  gh.deliverTo(app, `${server.url}/api/github/webhooks`);
  app.callbackUrls.push(`${server.url}/signin/callback`);
  return {
    gh,
    app,
    model,
    server,
    owner,
    author,
    async close() {
      await server.close();
      await model.close();
      await gh.close();
      removeDemoFolder(data);
    },
  };
}
