/**
 * A proxy before Postgres that reads the wire: it knows each statement before the server has it and
 * each answer before the client has it, so that a test can end the client, cut the wire or let the
 * statement fail at exactly that point. Extended messages are kept until their Sync: one unit, one answer.
 * A strike at one statement of a unit is one at the whole of it, as the server never does half of what it skips.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** One statement on its way to the server. */
export interface Statement {
  readonly sql: string;
  /** `commit` ends a transaction, `inside` is within one, `alone` commits by itself. */
  readonly place: 'commit' | 'inside' | 'alone';
}

/**
 * What happens to a statement: `before`: the server never gets it; `after`: the server answers, the
 * client never hears it. In both the connection is silent from then on, and `act` is called, which may
 * kill the client or cut the wire. `fail`: the server raises an error of this SQLSTATE instead.
 */
export type Strike =
  | { readonly when: 'before' | 'after'; readonly act: (cut: () => void) => void }
  | { readonly when: 'fail'; readonly code: string };

/** A running proxy. */
export interface PostgresProxy {
  /** The connection string through the proxy. */
  readonly url: string;
  /** Asked for every statement once connected; undefined lets it pass. */
  watch: (statement: Statement) => Strike | undefined;
  /** Cuts every connection and takes none for so many milliseconds, as a server that fails over does. */
  away(ms: number): void;
  close(): Promise<void>;
}

interface Unit {
  readonly strike: Strike | undefined;
}

const [QUERY, PARSE, BIND, SYNC, FLUSH, READY] = ['Q', 'P', 'B', 'S', 'H', 'Z'].map((c) => c.charCodeAt(0));
const EXTENDED = new Set(['P', 'B', 'D', 'E', 'C'].map((c) => c.charCodeAt(0)));

/** Starts a proxy on a free port before the server of a connection string. `fail` needs `raise_fault` (see `faultFunction`). */
export async function startPostgresProxy(url: string): Promise<PostgresProxy> {
  const target = new URL(url);
  const [port, host] = [Number(target.port), target.hostname];
  const sockets = new Set<Socket>();
  let backAt = 0;
  const proxy = {
    url: '',
    watch: (_: Statement): Strike | undefined => undefined,
    away: (ms: number) => {
      backAt = Date.now() + ms;
      for (const socket of sockets) socket.destroy();
    },
    close: () =>
      new Promise<void>((done) => {
        proxy.away(0);
        listener.close(() => done());
      }),
  };
  const listener = createServer((client) => {
    if (Date.now() < backAt) {
      client.destroy();
      return;
    }
    const server = connect(port, host);
    sockets.add(client).add(server);
    new Connection(client, server, (statement) => proxy.watch(statement));
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
  });
  await new Promise<void>((done) => listener.listen(0, '127.0.0.1', done));
  target.hostname = '127.0.0.1';
  target.port = String((listener.address() as AddressInfo).port);
  proxy.url = target.href;
  return proxy;
}

/** What `fail` calls: raises an error of a SQLSTATE, as the server would by itself. */
export const faultFunction = `create function public.raise_fault(code text) returns void language plpgsql as
  $$ begin raise exception 'a fault of the test' using errcode = code; end $$`;

class Connection {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #watch: (statement: Statement) => Strike | undefined;
  /** Texts of prepared statements by name. */
  readonly #prepared = new Map<string, string>();
  /** What is still to be answered, the start-up first. */
  readonly #units: Unit[] = [{ strike: undefined }];
  #started = false;
  #silent = false;
  #inTransaction = false;
  #batch: Buffer[] = [];
  /** What the unit that is being kept asks for, in order. */
  #sql: string[] = [];

  constructor(client: Socket, server: Socket, watch: (statement: Statement) => Strike | undefined) {
    this.#client = client;
    this.#server = server;
    this.#watch = watch;
    client.on(
      'data',
      messages(
        () => this.#started,
        (message) => this.#ask(message),
      ),
    );
    server.on(
      'data',
      messages(
        () => true,
        (message) => this.#answer(message),
      ),
    );
  }

  #ask(message: Buffer): void {
    if (this.#silent) return;
    const type = this.#started ? message[0] : undefined;
    this.#started = true;
    if (type === QUERY) this.#unit([text(message, 5)], [message]);
    else if (type === SYNC) this.#unit(this.#sql.splice(0), [...this.#batch.splice(0), message]);
    else if (type === FLUSH)
      throw new Error('the proxy keeps extended messages until Sync: Flush is not known');
    else if (type !== undefined && EXTENDED.has(type)) {
      if (type === PARSE) {
        const name = text(message, 5);
        this.#prepared.set(name, text(message, 5 + Buffer.byteLength(name) + 1));
      } else if (type === BIND) {
        const portal = text(message, 5);
        this.#sql.push(this.#prepared.get(text(message, 5 + Buffer.byteLength(portal) + 1)) ?? '');
      }
      this.#batch.push(message);
    } else this.#server.write(message);
  }

  #unit(statements: readonly string[], unit: readonly Buffer[]): void {
    let strike: Strike | undefined;
    let sql = '';
    for (sql of statements) {
      strike = this.#watch({ sql, place: this.#placeOf(sql) });
      if (strike !== undefined) break;
    }
    if (strike?.when === 'before') {
      this.#silent = true;
      strike.act(() => this.#cut());
      return;
    }
    this.#units.push({ strike });
    if (strike?.when === 'after') this.#silent = true;
    if (strike?.when === 'fail')
      this.#server.write(
        query(`select public.raise_fault('${strike.code}') -- ${sql.slice(0, 80).replaceAll('\n', ' ')}`),
      );
    else this.#server.write(Buffer.concat(unit));
  }

  #placeOf(sql: string): Statement['place'] {
    const first = /^\s*(\w+)/.exec(sql)?.[1]?.toLowerCase();
    if (first === 'begin' || first === 'start') this.#inTransaction = true;
    const place = first === 'commit' ? 'commit' : this.#inTransaction ? 'inside' : 'alone';
    if (first === 'commit' || first === 'rollback') this.#inTransaction = false;
    return place;
  }

  #answer(message: Buffer): void {
    const unit = this.#units[0];
    const swallowed = unit?.strike?.when === 'after';
    if (message[0] === READY) this.#units.shift();
    if (!swallowed) {
      this.#client.write(message);
      return;
    }
    if (message[0] === READY && unit?.strike?.when === 'after') unit.strike.act(() => this.#cut());
  }

  #cut(): void {
    this.#client.destroy();
    this.#server.destroy();
  }
}

/** A simple query as a message. A simple query in place of an extended one is answered without its Parse and Bind. */
function query(sql: string): Buffer {
  const body = Buffer.from(`${sql}\0`, 'utf8');
  const head = Buffer.alloc(5);
  head.write('Q');
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

/** The NUL-ended text at an offset. */
function text(message: Buffer, at: number): string {
  return message.toString('utf8', at, message.indexOf(0, at));
}

/** Cuts a stream into messages; the first one of a client has no type byte. */
function messages(typed: () => boolean, take: (message: Buffer) => void): (data: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (data) => {
    rest = rest.length === 0 ? data : Buffer.concat([rest, data]);
    for (;;) {
      const at = typed() ? 1 : 0;
      if (rest.length < at + 4) return;
      const end = at + rest.readUInt32BE(at);
      if (rest.length < end) return;
      const message = rest.subarray(0, end);
      rest = rest.subarray(end);
      take(message);
    }
  };
}
