/** A wire to Postgres that can be cut right after a statement passed, before its answer comes back. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A running wire. */
export interface Wire {
  readonly url: string;
  /** From now on, the first connection that sends this text loses its wire once the server has it, and hears no answer. */
  cutAfter(text: string): void;
  /** How many connections were cut so far. */
  readonly cuts: number;
  close(): Promise<void>;
}

/** Puts a wire before the server of a connection string. */
export async function startWire(url: string): Promise<Wire> {
  const target = new URL(url);
  const [port, host] = [Number(target.port), target.hostname];
  const sockets = new Set<Socket>();
  let armed: Buffer | undefined;
  let cuts = 0;
  const listener = createServer((client) => {
    const server = connect(port, host);
    sockets.add(client).add(server);
    let deaf = false;
    client.on('data', (data) => {
      if (armed !== undefined && data.includes(armed)) {
        armed = undefined;
        deaf = true;
        cuts += 1;
        // the server gets it, works on it, and answers into nothing
        server.write(data, () => setTimeout(() => client.destroy(), 50));
        return;
      }
      server.write(data);
    });
    server.on('data', (data) => {
      if (!deaf) client.write(data);
    });
    client.on('close', () => setTimeout(() => server.destroy(), 50));
    server.on('close', () => client.destroy());
    for (const socket of [client, server]) socket.on('error', () => {});
  });
  await new Promise<void>((done) => listener.listen(0, '127.0.0.1', done));
  target.hostname = '127.0.0.1';
  target.port = String((listener.address() as AddressInfo).port);
  return {
    url: target.href,
    cutAfter: (text) => {
      armed = Buffer.from(text, 'utf8');
    },
    get cuts() {
      return cuts;
    },
    close: () =>
      new Promise((done) => {
        for (const socket of sockets) socket.destroy();
        listener.close(() => done());
      }),
  };
}
