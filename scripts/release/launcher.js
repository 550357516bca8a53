#!/usr/bin/env node
// Starts the program of this machine, which npm put into a package beside this one.
"use strict";
const { spawn } = require("child_process");

const name = `@pawl-dev/pawl-${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${name}/pawl`);
} catch {
  console.error(`pawl: the package ${name} is not installed: there is none for this machine, or npm left it out (--omit=optional)`);
  process.exit(1);
}
const args = process.argv.slice(2);
if (process.execve) {
  process.execve(binary, [binary, ...args], process.env);
}
const child = spawn(binary, args, { stdio: "inherit" });
process.on("SIGINT", () => {}); // a terminal sends it to both
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (err) => {
  console.error(`pawl: cannot start ${binary}: ${err.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => (signal ? process.kill(process.pid, signal) : process.exit(code)));
