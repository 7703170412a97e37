/** The server of the road in a process of its own, as it is deployed: what the sandbox computes must not hold it up. */
import type { Config } from '../../app/config.ts';
import { startServer } from '../../app/server.ts';

const config = JSON.parse(process.env['ROAD_CONFIG'] ?? '{}') as Omit<Config, 'inherit'>;
const inherit: Config['inherit'] = (names) =>
  Object.fromEntries(
    names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name] ?? '']])),
  );
const server = await startServer({ ...config, inherit });
process.send?.(server.url);
process.on('disconnect', () => {
  void server.close().finally(() => process.exit(0));
});
