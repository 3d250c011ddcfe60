import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

const JSON_HEADER = { 'content-type': 'application/json' };
const MAX_SECONDS = 30;

/** The command that posts a body to a URL, as a shell takes it. */
export function curlCommand(url: string, body: string): string {
  return `curl -s '${url}' -H 'content-type: application/json' -d '${body.replaceAll("'", String.raw`'\''`)}'`;
}

/**
 * Posts JSON with `curl`, in a process of its own.
 * @param env where `curl` is looked for
 * @returns what was answered; null where `curl` is not installed
 */
async function postWithCurl(url: string, body: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  // By stdin: everybody on the machine can read the arguments of a process.
  const args = ['-sS', '--max-time', String(MAX_SECONDS), url, '-H', 'content-type: application/json', '-d', '@-'];
  const child = spawn('curl', args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    await once(child, 'spawn');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  child.stdin.end(body);
  const [answer] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (child.exitCode !== 0) throw new Error(`curl ended with ${child.exitCode}`);
  return answer;
}

/** Posts JSON with `curl`, or with `fetch` where it is not installed. @returns the JSON that was answered */
export async function postJson(url: string, body: string, env = process.env): Promise<unknown> {
  const answer = await postWithCurl(url, body, env);
  if (answer !== null) return JSON.parse(answer);
  const signal = AbortSignal.timeout(MAX_SECONDS * 1_000);
  return (await fetch(url, { method: 'POST', headers: JSON_HEADER, body, signal })).json();
}
