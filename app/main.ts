/** Starts the server from the environment and stops it on SIGTERM or SIGINT; exit 0 after a drain, 1 when it cannot start or run on. */
import { loadConfig } from './config.ts';
import { Fault } from './errors.ts';
import { startServer } from './server.ts';

async function main(): Promise<void> {
  const server = await startServer(loadConfig());
  let signals = 0;
  const stop = () => {
    signals += 1;
    // a second signal is a person who does not want to wait
    if (signals > 1) process.exit(1);
    server.close().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

main().catch((error: unknown) => {
  // a Fault's message is ours and says what to do; of anything else the stack helps
  console.error(error instanceof Fault ? `${error.code}: ${error.message}` : error);
  process.exit(1);
});
