import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, test } from 'vitest';
import { pythonWithPackage } from '../../setup/python-package.js';
import { runScenario, SCENARIOS, type WireAgent } from './runner.js';

let child: ChildProcess;
let onEnded: (code: string | null) => void = () => undefined;

beforeAll(async () => {
  const python = await pythonWithPackage();
  child = spawn(python, ['-u', join(import.meta.dirname, 'agent.py')], { stdio: ['pipe', 'pipe', 'inherit'] });
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
    onEnded((JSON.parse(line) as { ended: string | null }).ended);
  });
}, 240_000);

afterAll(async () => {
  if (!child) return;
  const exited = once(child, 'exit');
  child.stdin?.end();
  await exited;
});

/** One agent after the other in the Python process. */
function inPython(): WireAgent {
  const over = new Promise<string | null>((resolve) => {
    onEnded = resolve;
  });
  const command = (value: object) => child.stdin?.write(`${JSON.stringify(value)}\n`);
  return {
    start: (url, ca) => command({ start: { url, ca } }),
    close: (graceSeconds) => command({ close: graceSeconds }),
    ended: () => over,
  };
}

test.each(SCENARIOS)('the Python SDK: $name', async (scenario) => {
  await runScenario(scenario, inPython());
});
