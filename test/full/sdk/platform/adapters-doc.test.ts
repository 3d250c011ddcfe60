import { execFile, spawn } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { httpServer } from '../../../runtime/loopback-server.js';
import { answerAsOpenai, SAID } from '../../../sdk/platform/openai-server.js';
import { fleetClient } from '../../../setup/fleet-client.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import { until } from '../../../setup/until.js';
import { emptyProjectWithPackage } from './packed-project.js';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..', '..', '..');
const DOC = readFileSync(join(root, 'docs', 'adapters.md'), 'utf8');
const FRAMEWORKS = ['@ai-sdk', '@langchain', '@mastra', '@openai', 'ai'];
/** The programs of a section, as they stand there. */
function programsOf(section: string, document = DOC): string[] {
  const text = document.split(/^## /m).find((part) => part.startsWith(section)) ?? '';
  return [...text.matchAll(/```js\n([\s\S]*?)```/g)].map(([, program = '']) => program);
}

const { platform } = await startPlatform();
const client = fleetClient(platform);
const project = await emptyProjectWithPackage('adapters-doc');
for (const name of FRAMEWORKS)
  symlinkSync(join(root, 'sdk', 'adapters', 'node_modules', name), join(project, 'node_modules', name));
for (const program of programsOf('Before the first agent')) {
  const [, file = ''] = /^\/\/ (\S+\.js):/.exec(program) ?? [];
  writeFileSync(join(project, file), program);
}
const model = await httpServer(answerAsOpenai);
const environment = {
  PATH: process.env.PATH,
  FLEET_DATA_DIR: platform.dataDir,
  OPENAI_BASE_URL: `${model.url}/v1`,
  OPENAI_API_KEY: 'key',
  OPENAI_AGENTS_DISABLE_TRACING: '1',
};

/** Starts the program that is the agent of a type, and waits until it can be called. */
async function startAgent(programs: string[], type: string): Promise<void> {
  const program = programs.find((one) => one.includes(`new Agent({ type: '${type}'`)) ?? '';
  const file = `${type}.js`;
  writeFileSync(join(project, file), program);
  const child = spawn(process.execPath, [file], { cwd: project, env: environment, stdio: ['ignore', 2, 2] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await until(
    async () => child.exitCode !== null || (await client.post('/agents/get', { agent_type: type })).count === 1,
  );
  expect(child.exitCode).toBe(null);
}

/** What a program of the documentation prints. */
async function printed(file: string, ...args: string[]): Promise<string> {
  return (await run(process.execPath, [file, ...args], { cwd: project, env: environment })).stdout;
}

test.each([
  ['Vercel AI SDK', 'assistant', SAID],
  ['LangGraph', 'writer', 'Once upon a time there was a fleet.'],
  ['Mastra', 'helper', SAID],
])(
  'the agent of the section %s streams the text of its model',
  async (section, type, said) => {
    await startAgent(programsOf(section), type);
    expect(await printed('send.js', type, 'Say hello')).toContain(`${said}\n[completed]`);
  },
  120_000,
);

test.each([
  ['LangGraph', 'refunds', 'Approve: refund o-1', 'The refund is on its way.'],
  ['OpenAI Agents SDK', 'shop', 'refund', SAID],
])(
  'the agent of the section %s asks a person, and goes on with the answer',
  async (section, type, question, answer) => {
    await startAgent(programsOf(section), type);
    const asked = await printed('send.js', type, 'refund o-1');
    expect(asked).toContain('[input-required]');
    expect(asked).toContain(question);
    expect(await printed('answer.js')).toContain(`[completed] ${answer}`);
  },
  120_000,
);

test('the agent of docs/agents.md streams and asks, and the caller beside it is answered', async () => {
  const programs = programsOf('Connected agents', readFileSync(join(root, 'docs', 'agents.md'), 'utf8')).map(
    // A section of the adapters has a shop already.
    (program) => program.replace('./dist/sdk/index.js', 'agent-fleet-sdk').replaceAll("'shop'", "'tea-shop'"),
  );
  await startAgent(programs, 'tea-shop');
  writeFileSync(join(project, 'call.js'), programs.find((one) => one.includes('new FleetClient')) ?? '');
  expect(await printed('call.js')).toBe(
    'Once upon a time there was a fleet.\ninput-required Refund order A-17?\nOrder A-17 is refunded.\n',
  );
}, 120_000);
