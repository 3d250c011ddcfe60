import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { transform } from 'esbuild';
import { expect, inject, test } from 'vitest';
import { freePort } from '../../../embedded/free-port.js';
import { cleanUp } from '../../setup/clean-up.js';
import { startBarePlatform } from '../../setup/platform/platform.js';
import { until } from '../../setup/until.js';

const root = join(import.meta.dirname, '..', '..', '..');
const SDK = pathToFileURL(join(root, 'dist', 'sdk', 'index.js')).href;
const END_OF_BLOCK = 'end of block';

/** The fenced blocks of the tutorial in order: `sh` is run, a block without a language is what the one before it prints. */
const blocks = [
  ...readFileSync(join(root, 'docs', 'tutorial.md'), 'utf8').matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm),
].map(([, language = '', text = '']) => ({ language, text }));

/** Fixed over the restart, as they are for a reader. */
const ports = { FLEET_API_PORT: String(await freePort()), FLEET_MESH_PORT: String(await freePort()) };
const platform = await startBarePlatform(ports);
const folder = mkdtempSync(join(inject('runDir'), 'tutorial-'));
mkdirSync(join(folder, 'agent-fleet-platform'));
symlinkSync(platform.dataDir, join(folder, 'agent-fleet-platform', '.fleet'));
const shell = spawn('bash', { cwd: folder, env: { PATH: process.env.PATH } });
cleanUp(() => shell.kill());

/** What a block prints in the shell that all blocks share. */
async function printed(commands: string): Promise<string> {
  let output = '';
  const listen = (text: Buffer) => {
    output += text;
  };
  for (const stream of [shell.stdout, shell.stderr]) stream.on('data', listen);
  shell.stdin.write(`${commands}\necho '${END_OF_BLOCK}'\n`);
  await until(() => output.includes(END_OF_BLOCK), { what: `the end of: ${commands}` });
  for (const stream of [shell.stdout, shell.stderr]) stream.off('data', listen);
  return output.replace(`${END_OF_BLOCK}\n`, '');
}

/** The agent of the tutorial, with the SDK of this build in place of the packed one. */
async function startAgent(source: string): Promise<string> {
  const { code } = await transform(source, { loader: 'ts', format: 'esm' });
  writeFileSync(join(folder, 'agent.mjs'), code.replace(/(["'])agent-fleet-sdk\1/, JSON.stringify(SDK)));
  const env = { PATH: process.env.PATH, FLEET_DATA_DIR: platform.dataDir };
  const agent = spawn(process.execPath, ['agent.mjs'], { cwd: folder, env });
  cleanUp(() => agent.kill('SIGKILL'));
  let output = '';
  agent.stdout.on('data', (text: Buffer) => {
    output += text;
  });
  return until(() => output, { what: 'a line from the agent' });
}

/** Whether the output is the documented one, in which `…` stands for anything. */
function expectOutput(actual: string, documented: string): void {
  const pattern = documented.split('…').map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  expect(actual).toMatch(new RegExp(`^${pattern.join('.*')}$`));
}

test('the blocks of the tutorial print what it says', async () => {
  const commands = blocks.flatMap(({ language, text }, index) => {
    if (language !== 'sh') return [];
    const next = blocks[index + 1];
    return [{ text, output: next?.language === '' ? next.text : undefined }];
  });
  const agentSource = blocks.find(({ language }) => language === 'ts')?.text ?? '';
  let compared = 0;
  for (const { text, output } of commands) {
    if (/^(git clone|mkdir)/.test(text)) continue; // the checkout, npm pack and npm install: on-platform.test.ts has them
    if (text.startsWith('npm start')) {
      await platform.restart();
      continue;
    }
    const actual = text.includes('npx tsx agent.ts') ? await startAgent(agentSource) : await printed(text);
    if (output === undefined) continue;
    expectOutput(actual, output);
    compared += 1;
  }
  expect(compared).toBeGreaterThan(7);
}, 120_000);
