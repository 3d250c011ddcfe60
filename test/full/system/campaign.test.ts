import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, onTestFailed, onTestFinished, test } from 'vitest';

const CAMPAIGN = fileURLToPath(new URL('../../../bench/campaign.mjs', import.meta.url));
/** It starts dist/start.js three times, waits until everything is at rest, and explains what is not after two minutes without progress. */
const TIMEOUT_MS = 420_000;
/** Lines of its output that a failure names, and characters of each. */
const LINES_SHOWN = 16;
const LINE_CHARS = 400;

/** In one line, which the closing lines of a run of tests show: the violations by kind, else the error that ended the campaign. */
function lastWords(output: string): string {
  const lines = output.trim().split('\n');
  const verdict = lines.findIndex((line) => line.startsWith('| violations |'));
  const shown = lines.slice(verdict >= 0 ? verdict : -LINES_SHOWN, verdict >= 0 ? verdict + LINES_SHOWN : undefined);
  return shown.map((line) => line.trim().slice(0, LINE_CHARS)).join(' ¦ ');
}

test(
  'mixed load of four tenants on three nodes, of which the first is killed, beside erasures and a rotation, leaves nothing lost, doubled or undone',
  async () => {
    const campaign = spawn(process.execPath, [CAMPAIGN, '--minutes', '0.2'], { stdio: ['ignore', 'pipe', 'pipe'] });
    onTestFinished(() => void campaign.kill()); // it stops what it has started
    let output = '';
    onTestFailed(() => void process.stderr.write(output)); // a run that does not end tells what it waits for
    for (const stream of [campaign.stdout, campaign.stderr]) stream.on('data', (chunk) => (output += chunk));
    const [code] = await once(campaign, 'close');
    expect(code, lastWords(output)).toBe(0);
    expect(output).toMatch(/^\| violations \| 0 \|$/m);
    // Otherwise it would prove nothing.
    expect(output).toMatch(/^\| nodes killed; .* \| [1-9]/m);
    expect(output).toMatch(/^\| completed \| [1-9]\d/m);
    expect(output).toMatch(/^\| messages erased; rotations of the secret key \| [1-9]\d*; 1 \|/m);
  },
  TIMEOUT_MS,
);
