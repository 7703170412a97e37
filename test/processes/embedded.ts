/** A process that starts the embedded server of its argument, says where it is, and stays until its input ends. */
import { startEmbedded } from '../../db/embedded.ts';

const server = await startEmbedded({ folder: String(process.argv[2]), durable: false });
console.log(
  JSON.stringify({ url: server.url(), pid: server.pid, reused: server.reused, folder: server.folder }),
);
process.stdin.resume();
process.stdin.on('end', () => {
  void server.stop();
});
