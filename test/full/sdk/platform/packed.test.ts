import { execFile, spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { expect, onTestFinished, test } from 'vitest';
import { textOf } from '../../../../contracts/a2a/text.js';
import { sdkOn } from '../../../sdk/platform/fixture.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import { until } from '../../../setup/until.js';
import { emptyProjectWithPackage } from './packed-project.js';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..', '..', '..');
/** No types of Node: a project need not have them. */
const LIB = ['es2023', 'esnext.disposable', 'dom'];

test('packed and installed into an empty project, the first lines of its README are an agent', async () => {
  const { platform } = await startPlatform();
  const project = await emptyProjectWithPackage('empty-project');
  const installed = readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'));
  expect(installed.sort()).toEqual(['agent-fleet-sdk', 'jose', 'ws', 'zod']);
  const packageDir = join(project, 'node_modules', 'agent-fleet-sdk');
  expect(readdirSync(join(packageDir, 'dist')).sort()).toEqual(['browser', 'contracts', 'sdk']);
  expect(readdirSync(packageDir)).toContain('LICENSE');
  expect(readdirSync(join(packageDir, 'dist', 'sdk'))).not.toContain('cli');

  const readme = readFileSync(join(packageDir, 'README.md'), 'utf8');
  const [, lines = ''] = /```js\n([\s\S]*?)```/.exec(readme) ?? [];
  expect(lines.trim().split('\n').filter(Boolean).length).toBeLessThanOrEqual(5);
  writeFileSync(join(project, 'agent.js'), lines);
  const environment = { PATH: process.env.PATH, FLEET_DATA_DIR: platform.dataDir };
  const child = spawn(process.execPath, ['agent.js'], { cwd: project, env: environment, stdio: ['ignore', 2, 2] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const client = sdkOn(() => platform.devJson()).caller();
  const isThere = async () => (await client.post('/agents/get', { agent_type: 'shouter' })).count === 1;
  await until(isThere, { what: 'the agent' }); // a type that was never registered fails at once
  const { artifacts = [] } = await client.send('listen', { agentType: 'shouter' });
  expect(artifacts.map(({ parts }) => textOf(parts)).join('')).toBe('LISTEN');

  const bundle = readFileSync(join(packageDir, 'dist', 'browser', 'index.js'), 'utf8');
  expect(bundle).not.toMatch(/\bfrom\s*["']|\brequire\(|process\.env/); // needs no other file, and nothing of Node
  for (const file of ['browser/index.js.map', 'sdk/index.js.map']) {
    const map = JSON.parse(readFileSync(join(packageDir, 'dist', file), 'utf8')) as { sourcesContent?: string[] };
    expect(map.sourcesContent?.length).toBeGreaterThan(0);
  }

  const types = `import { Agent, FleetClient, z, type AgentTask, type Task } from 'agent-fleet-sdk';
    import { FleetClient as PageClient } from 'agent-fleet-sdk/browser';
    const agent = new Agent({ type: 't', url: 'http://x', token: async () => 'token' });
    agent.skill({ id: 'sum', input: z.object({ a: z.number() }) }, (_task, { a }) => String(a.toFixed(1)));
    agent.onMessage(async function* (task: AgentTask) { yield task.text; });
    agent.skill('web', () => new ReadableStream<string>());
    // @ts-expect-error an option of routing in metadata
    void new FleetClient().send('hi', { metadata: { agentType: 't' } });
    const page = new PageClient({ url: 'http://x', token: 't' });
    export const ids: Promise<string[]> = page.sessions.get({ pageSize: 2 }).then(({ sessions }) => sessions.map((s) => s.sessionId));
    agent.tool('price', z.object({ item: z.string() }), ({ item }) => item.length);
    // @ts-expect-error a handler's answer is no number
    agent.skill('wrong', () => 7);
    export const answer: Promise<Task> = new FleetClient().send('hi', { signal: new AbortController().signal });`;
  writeFileSync(join(project, 'types.ts'), types);
  const compilerOptions = { noEmit: true, strict: true, module: 'nodenext', target: 'es2023', lib: LIB, types: [] };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['types.ts'] }));
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const checked = await run(process.execPath, [compiler], { cwd: project }).catch((error: { stdout: string }) => error);
  expect(checked.stdout).toBe('');
}, 240_000);

test('the package is for CommonJS, for ES modules and for bundlers', async () => {
  const project = await emptyProjectWithPackage('formats');
  const program = `run(new Agent({ type: 't' }).onMessage((task) => task.text.toUpperCase()), 'hi').then(({ text }) => console.log(text));`;
  const imported = `import { Agent } from 'agent-fleet-sdk'; import { run } from 'agent-fleet-sdk/testing'; ${program}`;
  const required = `const { Agent } = require('agent-fleet-sdk'); const { run } = require('agent-fleet-sdk/testing'); ${program}`;
  writeFileSync(join(project, 'esm.mjs'), imported);
  writeFileSync(join(project, 'common.cjs'), required);
  await build({
    absWorkingDir: project,
    entryPoints: ['esm.mjs'],
    outfile: join(project, 'bundle.cjs'),
    bundle: true,
    platform: 'node',
    format: 'cjs',
    logLevel: 'silent',
  });
  for (const file of ['esm.mjs', 'common.cjs', 'bundle.cjs']) {
    const { stdout } = await run(process.execPath, [file], { cwd: project });
    expect([file, stdout]).toEqual([file, 'HI\n']);
  }
}, 240_000);
