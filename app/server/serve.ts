/** A server as a process: from the environment until a signal. */
import { loadConfig } from '../config.ts';
import { startServer } from '../server.ts';

/**
 * Serves until SIGTERM or SIGINT, then drains and exits: 0 when all was given back, 1 when not or on a
 * second signal. Rejects when it cannot start.
 */
export async function serve(): Promise<void> {
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
