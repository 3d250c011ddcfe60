/**
 * The librarian: a hosted agent in a process of its own, a plain A2A server that the mesh posts messages to. It counts, sums
 * up, finds keywords and makes tables of JSON, without a model.
 *
 *     node dist/examples/librarian.js
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { FleetClient } from '../sdk/index.js';
import { createA2aServer } from './librarian/a2a-server.js';
import { answer } from './librarian/answer.js';
import { stayMember } from './librarian/membership.js';
import { platformTokenCheck } from './librarian/platform-token.js';
import { untilToldToStop } from './lifetime.js';
import { lineLog } from './line-log.js';
import { findPlatform } from './platform-access.js';

const AGENT_TYPE = 'librarian';
const HOST = '127.0.0.1';

function card(url: string): object {
  return {
    protocolVersion: '0.3.0',
    name: 'Librarian',
    description: 'Counts words, sums texts up, finds keywords and makes tables of JSON.',
    version: '1.0.0',
    url,
    preferredTransport: 'JSONRPC',
    capabilities: { streaming: true, pushNotifications: false },
    defaultInputModes: ['text/plain', 'application/json'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills: [
      { id: 'analyze', name: 'Analyze a text', description: 'Summary, keywords and counts', tags: ['text'] },
      { id: 'tabulate', name: 'JSON to table', description: 'A Markdown table of JSON', tags: ['json'] },
    ],
  };
}

async function main(stopped: AbortSignal): Promise<void> {
  const access = await findPlatform(process.env, stopped);
  const instanceId = process.env.EXAMPLE_HOSTED_INSTANCE_ID || 'librarian-1';
  let verify: ReturnType<typeof platformTokenCheck> = () => Promise.reject(new Error('not registered yet'));
  const server = createA2aServer({ card, answer, verify: (authorization) => verify(authorization) });
  await once(server.listen(Number(process.env.EXAMPLE_HOSTED_PORT || 0), HOST), 'listening');
  const client = new FleetClient({ ...access, agentType: AGENT_TYPE });
  const member = {
    agentType: AGENT_TYPE,
    instanceId,
    publicUrl: `http://${HOST}:${(server.address() as AddressInfo).port}/`,
    maxConcurrentSessions: 200,
  };
  try {
    await stayMember(client, member, {
      signal: stopped,
      log: lineLog(AGENT_TYPE),
      onRegistered: (registered) => {
        verify = platformTokenCheck(registered);
      },
    });
  } finally {
    server.close();
    client.close();
  }
}

const stopped = untilToldToStop();
main(stopped).then(
  () => process.exit(0),
  (error: unknown) => {
    if (stopped.aborted) process.exit(0);
    process.stderr.write(`${AGENT_TYPE}: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
