process.stdout.write(`Countersign runner: starting
`);var{start:t}=await import("./chunks/start-37GUXJ5F.js");process.exitCode=await t(process);
