/**
 * A pooler in front of Postgres, as a person may have one: in session mode it passes everything on,
 * in transaction mode each transaction gets whatever server connection is free, last used first.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A running pooler. */
export interface Pooler {
  readonly url: string;
  close(): Promise<void>;
}

/** Calls `take` with every whole message; `tagged` false for the first one of a client, which has no type byte. */
function messages(take: (message: Buffer) => void, tagged: () => boolean): (data: Buffer) => void {
  let rest = Buffer.alloc(0);
  return (data) => {
    rest = Buffer.concat([rest, data]);
    for (;;) {
      const at = tagged() ? 1 : 0;
      if (rest.length < at + 4) return;
      const end = at + rest.readUInt32BE(at);
      if (rest.length < end) return;
      const message = rest.subarray(0, end);
      rest = rest.subarray(end);
      take(message);
    }
  };
}

/** Starts a pooler on a free port in front of the server of `url`. */
export async function startPooler(url: string, mode: 'session' | 'transaction'): Promise<Pooler> {
  const target = new URL(url);
  const [port, host] = [Number(target.port), target.hostname];
  const idle: Server[] = [];
  const waiting: (() => void)[] = [];
  const sockets = new Set<Socket>();

  interface Server {
    readonly socket: Socket;
    owner: Client | undefined;
  }
  interface Client {
    readonly socket: Socket;
    server: Server | undefined;
    pooled: boolean;
    started: boolean;
    /** Answers still to come, each ending with ReadyForQuery. */
    due: number;
    readonly queue: Buffer[];
  }

  const flush = (client: Client): void => {
    if (client.queue.length === 0) return;
    if (client.server === undefined) {
      const server = idle.pop();
      if (server === undefined) {
        waiting.push(() => flush(client));
        return;
      }
      server.owner = client;
      client.server = server;
    }
    for (const message of client.queue.splice(0)) {
      if (message[0] === 0x51 || message[0] === 0x53) client.due += 1; // Query, Sync
      client.server.socket.write(message);
    }
  };

  const listener = createServer((socket) => {
    const client: Client = { socket, server: undefined, pooled: false, started: false, due: 0, queue: [] };
    const server: Server = { socket: connect(port, host), owner: client };
    client.server = server;
    sockets.add(socket).add(server.socket);
    server.socket.on(
      'data',
      messages(
        (message) => {
          const owner = server.owner;
          // BackendKeyData: a pooler makes up its own
          if (message[0] === 0x4b) message.writeUInt32BE(424_242, 5);
          owner?.socket.write(message);
          if (message[0] !== 0x5a || owner === undefined) return; // ReadyForQuery
          if (owner.pooled) owner.due -= 1;
          owner.pooled = true;
          if (mode === 'session' || message[5] !== 0x49 || owner.due > 0) return;
          owner.server = undefined;
          server.owner = undefined;
          idle.push(server);
          waiting.shift()?.();
        },
        () => true,
      ),
    );
    socket.on(
      'data',
      messages(
        (message) => {
          client.started = true;
          if (message[0] === 0x58) return; // Terminate: the server connection stays
          client.queue.push(Buffer.from(message));
          flush(client);
        },
        () => client.started,
      ),
    );
    for (const one of [socket, server.socket]) one.on('error', () => {});
    socket.on('close', () => {
      if (client.server !== undefined) client.server.socket.destroy();
    });
  });
  await new Promise<void>((done) => listener.listen(0, '127.0.0.1', done));
  target.port = String((listener.address() as AddressInfo).port);
  target.hostname = '127.0.0.1';
  return {
    url: target.href,
    close: () =>
      new Promise((done) => {
        for (const socket of sockets) socket.destroy();
        listener.close(() => done());
      }),
  };
}
