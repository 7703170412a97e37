/**
 * The Action's first file (ACT-1): says that it is alive and loads the rest. Everything heavy sits in
 * chunks behind the import, because this file's start-up is paid by every job (performance.md C1).
 */
process.stdout.write('Countersign runner: starting\n');

// no await at the top: the built first file is CommonJS, which starts some ms sooner than a module
void import('./start.ts')
  .then(({ start }) => start(process))
  .then((code) => {
    process.exitCode = code;
  });
