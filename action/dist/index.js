process.stdout.write(`Countersign runner: starting
`);var{start:t}=await import("./chunks/start-JGMU4W2O.js");process.exitCode=await t(process);
