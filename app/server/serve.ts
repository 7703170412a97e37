/** A server as a process: from the environment until a signal. */
import { loadConfig } from '../config.ts';
import { type RunningServer, startServer } from '../server.ts';

/**
 * Serves until SIGTERM or SIGINT, then drains and exits: 0 when all was given back, 1 when not or on a
 * second signal. A signal during the start is heeded once it has started. Rejects when it cannot start.
 */
export async function serve(): Promise<void> {
  let server: RunningServer | null = null;
  let signals = 0;
  const drain = () => {
    server?.close().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  const stop = () => {
    signals += 1;
    // a second signal is a person who does not want to wait
    if (signals > 1) process.exit(1);
    drain();
  };
  // before anything is begun: a signal without a handler would leave what was begun to the watchdogs
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  server = await startServer(loadConfig());
  if (signals > 0) drain();
}
