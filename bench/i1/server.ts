/** The two servers of I1 and I3 in a process of their own: our edge over Postgres, and Probot's server with a handler that does nothing. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { Probot, Server } from 'probot';
import { storeDelivery } from '../../app/flow/store-delivery.ts';
import { WEBHOOK_PATH, webhook } from '../../app/http/webhook.ts';
import { connect } from '../../db/client.ts';

const { I1_DATABASE = '', I1_SECRET = '', I1_KEY = '' } = process.env;
const log = pino({ level: 'silent' });

const database = await connect(I1_DATABASE, { max: 8 });
const ours = createServer(
  webhook({
    secrets: [I1_SECRET],
    store: storeDelivery(database),
    log: { info() {}, warn() {}, error() {} },
  }),
);
await new Promise<void>((done) => ours.listen(0, '127.0.0.1', done));

const peer = new Server({
  host: '127.0.0.1',
  port: 0,
  webhookPath: WEBHOOK_PATH,
  log,
  Probot: Probot.defaults({ appId: 1, privateKey: I1_KEY, secret: I1_SECRET, log }),
});
await peer.load((app) => {
  app.on('pull_request', () => {});
});
const probot = await peer.start();

const urlOf = (address: unknown) => `http://127.0.0.1:${(address as AddressInfo).port}${WEBHOOK_PATH}`;
process.send?.({ ours: urlOf(ours.address()), peer: urlOf(probot.address()) });
process.on('disconnect', () => process.exit(0));
