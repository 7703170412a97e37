/**
 * The Action's first file (ACT-1): says that it is alive and loads the rest. Everything heavy sits in
 * chunks behind the import, because this file's start-up is paid by every job (performance.md C1).
 */
process.stdout.write('Countersign runner: starting\n');

const { start } = await import('./start.ts');
process.exitCode = await start(process);
