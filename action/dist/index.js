process.stdout.write(`Countersign runner: starting
`);var{start:t}=await import("./chunks/start-IBBVRD74.js");process.exitCode=await t(process);
