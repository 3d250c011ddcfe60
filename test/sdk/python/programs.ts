import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import type { FleetClient } from '../../../sdk/index.js';
import type { SharedPlatform } from '../../setup/platform/platform.js';
import { until } from '../../setup/until.js';

/** A program in Python. */
export interface Program {
  child: ChildProcess;
  /** What it has printed so far. */
  output: string;
  /** It has ended, and all that it printed is in `output`: the exit code, and the signal. */
  ended: Promise<unknown[]>;
}

/** The address of a platform, and a credential of it, as the environment of a program. */
export function credentialOf({ platform }: SharedPlatform, role: 'agent' | 'caller'): Record<string, string> {
  const dev = platform.devJson();
  const isAgent = role === 'agent';
  return {
    FLEET_BASE_URL: dev.base_url,
    FLEET_CLIENT_ID: isAgent ? dev.agent_client_id : dev.client_id,
    FLEET_CLIENT_SECRET: isAgent ? dev.agent_client_secret : dev.client_secret,
    FLEET_CA_FILE: dev.ca_file,
  };
}

/** Starts a program with nothing of this process's environment but the PATH. */
export function startProgram(
  python: string,
  args: string[],
  env: Record<string, string>,
  { cwd }: { cwd?: string } = {},
): Program {
  const child = spawn(python, ['-u', ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd && { cwd }),
  });
  const program = { child, output: '', ended: once(child, 'close') };
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (program.output += String(text)));
  return program;
}

/** What a program prints that ends well. One that fails is quoted: its last line first, then all. */
export async function outputOf(program: Program): Promise<string> {
  const [code, signal] = await program.ended;
  if (code === 0) return program.output;
  throw new Error(`ended with ${code ?? signal}: ${program.output.trimEnd().split('\n').at(-1)}\n${program.output}`);
}

/** Waits until the agent of a program has joined. It is the only one of its type, and killed when the test is over. */
export async function startPythonAgent(agent: Program, type: string, client: FleetClient): Promise<Program> {
  const agents = async () => (await client.post('/agents/get', { agent_type: type, status: 'available' })).count;
  onTestFinished(async () => {
    agent.child.kill('SIGKILL');
    await agent.ended;
    // Else the next test takes this agent for its own, and what it sends is lost with this one's socket.
    await until(async () => (await agents()) === 0, { what: 'the loss of the agent' });
  });
  await until(async () => (await agents()) === 1, { what: 'the agent' }).catch((error) => {
    throw new Error(`${(error as Error).message}\n${agent.output}`);
  });
  return agent;
}
