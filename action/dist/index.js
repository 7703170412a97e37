process.stdout.write(`Countersign runner: starting
`);var{start:t}=await import("./chunks/start-IPPXE64G.js");process.exitCode=await t(process);
