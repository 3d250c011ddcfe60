import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeAtomic } from '../embedded/atomic-file.js';
import type { Infrastructure } from './infrastructure.js';
import type { Platform } from './platform.js';
import type { StoredCredential } from './seed.js';

const devFilePath = (dataDir: string) => join(dataDir, 'dev.json');

/** Removes `dev.json`: without it the platform counts as not ready. */
export async function removeDevFile(dataDir: string): Promise<void> {
  await rm(devFilePath(dataDir), { force: true });
}

/** Writes `dev.json` (mode 0600), which tells other programs that the platform is ready. @returns its path */
export async function writeDevFile(
  dataDir: string,
  platform: Platform,
  infrastructure: Infrastructure,
  credentials: { first: StoredCredential; agents: StoredCredential },
): Promise<string> {
  const { first, agents } = credentials;
  const content = {
    base_url: platform.baseUrl,
    mesh_url: platform.meshUrl,
    temporal_ui_url: infrastructure.temporalUiUrl,
    temporal_address: infrastructure.temporal.address,
    database_url: infrastructure.databaseUrl,
    ca_file: infrastructure.tls?.caFile ?? null,
    client_id: first.client_id,
    client_secret: first.client_secret,
    agent_client_id: agents.client_id,
    agent_client_secret: agents.client_secret,
    tenant_id: first.tenant_id,
  };
  await writeAtomic(devFilePath(dataDir), `${JSON.stringify(content, null, 2)}\n`, 0o600);
  return devFilePath(dataDir);
}

/** A shell command that sends a message to an agent. The credential goes from the file to curl's standard input, not onto the screen. */
function curlLine(devFile: string, baseUrl: string): string {
  const json = `-H 'Content-Type: application/json'`;
  const login = `node -p 'const {client_id,client_secret}=require("${devFile}");JSON.stringify({client_id,client_secret})'`;
  const token = `${login} | curl -s ${baseUrl}/auth/get_token ${json} -d @- | node -p 'JSON.parse(require("fs").readFileSync(0)).token'`;
  const part = `{"kind":"text","text":"What is 6 * 7?"}`;
  const message = `{"kind":"message","messageId":"'"$(date +%s%N)"'","role":"user","parts":[${part}]}`;
  const body = `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"metadata":{"agent_type":"concierge"},"message":${message}}}`;
  return `curl -s ${baseUrl}/send -H "Authorization: Bearer $(${token})" ${json} -d '${body}'`;
}

/** The text that `npm start` prints when the platform is ready. @param signInLink behind `#`, which browsers send to no server */
export function welcome(
  platform: Platform,
  infrastructure: Infrastructure,
  devFile: string,
  logFile: string | null,
  signInLink: string,
): string {
  const rows: [string, string | null][] = [
    ['Console', platform.baseUrl && `${platform.baseUrl}/console/sign-in#${signInLink}`],
    ['API', platform.baseUrl],
    ['API docs', platform.baseUrl && `${platform.baseUrl}/docs`],
    ['Mesh', platform.meshUrl],
    ['Temporal UI', infrastructure.temporalUiUrl],
    ['Credential', devFile],
    ['Log', logFile],
  ];
  const lines = rows.filter(([, value]) => value !== null).map(([name, value]) => `  ${name.padEnd(12)} ${value}`);
  return [
    '',
    'The agent fleet platform is ready.',
    ...lines,
    '',
    'Talk to an agent:',
    '',
    curlLine(devFile, platform.baseUrl ?? ''),
    '',
  ].join('\n');
}
