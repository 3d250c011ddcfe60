import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { CLIENT_COMMANDS } from '../../cli/client/client-commands.js';
import type { Terminal } from '../../cli/client/terminal.js';
import { z } from '../../sdk/index.js';
import { sdkOn } from '../sdk/platform/fixture.js';
import { sharedPlatform } from '../setup/platform/shared-platform.js';
import { gate, until } from '../setup/until.js';

const { platform } = await sharedPlatform();
const { agentOf, caller } = sdkOn(platform.devJson);
const CLI = new URL('../../dist/cli/fleet.js', import.meta.url).pathname;

const { base_url, client_id, client_secret, ca_file } = platform.devJson();
const ACCESS = { FLEET_URL: base_url, FLEET_CLIENT_ID: client_id, FLEET_CLIENT_SECRET: client_secret };

const FORM = { kind: 'form' as const, prompt: '' };
const SURE = { kind: 'confirmation' as const, title: 'Sure?', prompt: '' };

interface CliResult {
  code: number;
  stdout: string;
  stderr: string;
}

function fleet(args: string[], env: Record<string, string> = ACCESS, input = ''): Promise<CliResult> {
  return new Promise((resolve) => {
    const options = { env: { PATH: process.env.PATH, ...env } };
    const child = execFile(process.execPath, [CLI, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
    child.stdin?.end(input);
  });
}

async function json(...args: string[]): Promise<Record<string, unknown>> {
  const { stdout, stderr } = await fleet([...args, '--json']);
  expect(stderr).toBe('');
  return JSON.parse(stdout) as Record<string, unknown>;
}

async function echo(type: string): Promise<void> {
  await agentOf(type)
    .onMessage(async (task) => {
      if (task.text === 'fail') throw new Error('as you wish');
      return `You said: ${task.text}`;
    })
    .connect();
}

test('a message is sent, its answer is printed, and the exit code says how it ended', async () => {
  await echo('echo');
  expect(await fleet(['send', 'echo', 'hello'])).toEqual({ code: 0, stdout: 'You said: hello\n', stderr: '' });
  expect((await fleet(['send', 'echo', '-'], ACCESS, 'from a pipe')).stdout).toBe('You said: from a pipe\n');
  const failed = await fleet(['send', 'echo', 'fail']);
  expect(failed).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('HANDLER_ERROR') });
  const record = await json('send', 'echo', 'again');
  expect(record).toMatchObject({ state: 'completed', assistant_output: 'You said: again', agent_type: 'echo' });
  const { stdout } = await fleet(['get', String(record.message_id)]);
  expect(stdout).toContain('completed');
  expect(stdout).toContain('You said: again');
  expect((await json('get', String(record.message_id))).message).toMatchObject({ message_id: record.message_id });
  expect((await json('get', String(record.session_id))).session).toMatchObject({ session_id: record.session_id });
  const list = await fleet(['get', '--state', 'failed', '--type', 'echo']);
  expect(list.stdout).toMatch(/^MESSAGE +STATE +AGENT +SENT +TEXT\nmsg_\S+ +failed +echo-1 /);
  const listed = await fleet(['agents', '--type', 'echo']);
  expect(listed.stdout).toMatch(/^INSTANCE +TYPE +STATUS .*\necho-1 +echo +\w+ +connected /);
  expect((await json('agents', '--type', 'echo')).agents).toMatchObject([{ instance_id: 'echo-1' }]);
});

test('without anybody to ask, a question ends the command with its own code, and is answered by another', async () => {
  await agentOf('asker')
    .onMessage(async (task) => {
      const answer = await task.ask({ ...FORM, title: 'Where to?', schema: z.object({ city: z.string() }) });
      return answer.accepted ? `to ${answer.data.city}` : 'nowhere';
    })
    .connect();
  const asked = await fleet(['send', 'asker', 'go']);
  expect(asked).toMatchObject({ code: 3, stderr: expect.stringContaining('Where to?') });
  const [id = ''] = /msg_[0-9a-f-]+/.exec(asked.stderr) ?? [];
  expect((await fleet(['pending', '--type', 'asker'])).stdout).toContain(id);
  expect((await fleet(['why', id])).stdout).toContain('The agent asks a person: Where to?');
  const required = expect.stringContaining('An answer is required');
  expect(await fleet(['resolve', id])).toMatchObject({ code: 1, stderr: required });
  expect((await fleet(['resolve', id, '--data', '[1]'])).stderr).toContain('must be a JSON object');
  const resolved = await fleet(['resolve', id, '--data', '{"city":"Berlin"}']);
  expect(resolved).toMatchObject({ code: 0, stdout: `${id} is working.\n` });
  const client = caller();
  expect((await client.messages.waitFor(id, { until: 'terminal' })).assistantOutput).toBe('to Berlin');
});

/** Runs a command in this process, at a terminal where somebody types these lines. */
async function typing(name: string, args: [string, string?], lines: string[]) {
  const [argument, second = ''] = args;
  const [written, noted]: [string[], string[]] = [[], []];
  const terminal: Terminal = {
    write: (text) => void written.push(text),
    note: (text) => void noted.push(text),
    paint: (_colour, text) => text,
    ask: async () => lines.shift() ?? null,
  };
  const command = CLIENT_COMMANDS[name];
  if (!command || !('runClient' in command)) throw new Error('there is no such command');
  const shown = await command.runClient({ client: caller(), terminal, json: false }, { argument, second, options: {} });
  return { ...shown, written: written.join(''), noted: noted.join('') };
}

test('at a terminal what the agent asks is asked at once, again where the answer does not fit, and the answer goes on', async () => {
  await agentOf('guide')
    .onMessage(async function* (task) {
      const answer = await task.ask({ ...FORM, title: 'How many?', schema: z.object({ count: z.number().max(9) }) });
      yield answer.accepted ? `${answer.data.count} ` : 'none ';
      const { accepted } = await task.ask(SURE);
      yield accepted ? 'sure' : 'not sure';
    })
    .connect();
  const sent = await typing('send', ['guide', 'go'], ['99', '7', 'yes']);
  expect(sent).toMatchObject({ exitCode: 0, json: { state: 'completed' } });
  expect(sent.written).toContain('7 sure');
  expect(sent.noted).toContain('How many?');
  expect(sent.noted).toContain('Sure?');
});

test('whoever ends the input leaves the question open, and resolve asks it', async () => {
  await agentOf('sure')
    .onMessage(async (task) => String((await task.ask(SURE)).accepted))
    .connect();
  const { exitCode, json: record, note } = await typing('send', ['sure', 'go'], []);
  expect({ exitCode, note }).toEqual({ exitCode: 3, note: expect.stringContaining('fleet resolve msg_') });
  const { message_id, input_request } = record as { message_id: string; input_request: { request_id: string } };
  const { text } = await typing('resolve', [input_request.request_id], ['no']);
  expect(text).toBe(`${message_id} is working.`);
  expect((await caller().messages.waitFor(message_id, { until: 'terminal' })).assistantOutput).toBe('false');
});

test('a message that waits says for whom, and is canceled', async () => {
  const held = gate();
  await agentOf('single', { maxConcurrentTasks: 1 })
    .onMessage(async () => held.promise.then(() => 'done'))
    .connect();
  const client = caller();
  const first = await client.send('one', { agentType: 'single', blocking: false });
  const { id } = await client.send('two', { agentType: 'single', blocking: false });
  await until(async () => (await client.messages.getById({ messageId: id })).message.waitsFor?.kind === 'room');
  const why = (await fleet(['why', id])).stdout;
  expect(why).toContain('an agent of the type single to have room');
  expect(why).toMatch(/single-1 is \w+: it has 1 of 1 messages/);
  expect(await json('why', id)).toMatchObject({ state: 'submitted', waits_for: { kind: 'room' } });
  expect((await fleet(['why', first.id])).stdout).toContain('It is with the agent single-1');
  expect(await fleet(['cancel', id])).toEqual({ code: 0, stdout: `${id} is canceled.\n`, stderr: '' });
  expect((await fleet(['why', id])).stdout).toMatch(/^It was canceled at /);
  held.open();
});

test('tail follows the events of a message, as lines of JSON', async () => {
  await echo('followed');
  const { session_id } = await platform.client
    .post('/sessions/init', { agent_type: 'followed' })
    .then(({ body }) => body as { session_id: string });
  const child = spawn(process.execPath, [CLI, 'tail', '--session', session_id, '--json'], {
    env: { PATH: process.env.PATH, ...ACCESS },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString();
  });
  await until(async () => {
    await caller().send('hi', { contextId: session_id });
    return printed.includes('message.completed');
  });
  child.kill();
  const [line = ''] = printed.split('\n');
  expect(JSON.parse(line)).toMatchObject({ session_id, event_type: expect.any(String), event: expect.any(Object) });
});

test('without an address the platform of the data directory is used, with its credential', async () => {
  const dataDir = mkdtempSync(join(inject('runDir'), 'fleet-people-'));
  writeFileSync(join(dataDir, 'dev.json'), JSON.stringify({ base_url, client_id, client_secret, ca_file }));
  expect(await fleet(['agents', '--json'], { FLEET_DATA_DIR: dataDir })).toMatchObject({ code: 0, stderr: '' });
});

test.each<[string, string[], Record<string, string>, number, string]>([
  ['no platform', ['agents'], { FLEET_DATA_DIR: '/nowhere' }, 1, 'No platform'],
  ['no credential', ['agents', '--url', base_url], {}, 1, 'No credential'],
  ['an address that does not answer', ['agents', '--url', 'http://127.0.0.1:9'], ACCESS, 1, 'no answer from'],
  ['a message that is not there', ['why', 'msg_x'], ACCESS, 1, 'no message'],
  ['an id of nothing', ['get', 'x'], ACCESS, 1, 'is no id'],
  ['a state that does not exist', ['get', '--state', 'lost'], ACCESS, 1, 'state'],
  ['no text', ['send', 'echo'], ACCESS, 2, 'Usage: send AGENT TEXT'],
  ['too much', ['why', 'a', 'b'], ACCESS, 2, 'Usage: why MESSAGE_ID'],
  ['an unknown command', ['whence'], ACCESS, 2, 'no command "whence"'],
])('%s: a clear message, nothing on standard output', async (_what, args, env, code, message) => {
  expect(await fleet(args, env)).toEqual({ code, stdout: '', stderr: expect.stringContaining(message) });
});
