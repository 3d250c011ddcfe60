/**
 * `npm run demo`: the typical flow, step by step. Uses the running platform, or starts one and stops it at the end. The demo
 * never stops a platform that it did not start: it shows the restart on a second one.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  answerWithCurl,
  approveOnPage,
  askForApproval,
  askQuestion,
  showDelivery,
  showPending,
} from './demo/decisions.js';
import { DemoPlatform } from './demo/demo-platform.js';
import { Printer } from './demo/printer.js';
import {
  agentsReady,
  askLibrarian,
  type Connection,
  connect,
  holdNotices,
  openSession,
  sendMessage,
  showEvents,
  showToken,
  showWhereToLook,
  streamMessage,
  subscribe,
} from './demo/steps.js';
import { type ApprovalDelivery, WebhookReceiver } from './demo/webhook-receiver.js';
import { type DevFile, dataDir, readDevFile } from './platform-access.js';

/** Settings that a second platform must not share with the first: it uses its own servers and ports. */
const NOT_SHARED = [
  'DATABASE_URL',
  'TEMPORAL_ADDRESS',
  'REDIS_URL',
  'FLEET_BASE_URL',
  'FLEET_MESH_URL',
  'FLEET_SECRET_KEY',
];
const FREE_PORTS = { FLEET_MESH_PORT: '0', FLEET_METRICS_PORT: '0', FLEET_EXAMPLES: 'on' };

const FAILED = 1;

const printer = new Printer();
const cleanUps: (() => Promise<void>)[] = [];

async function runningPlatform(directory: string): Promise<DevFile | null> {
  const dev = await readDevFile(directory);
  if (!dev) return null;
  const health = await fetch(`${dev.base_url}/health`).catch(() => null); // a killed platform leaves its dev.json
  return health?.ok ? dev : null;
}

/** Connects to a platform and waits for its agents. The connection is destroyed at the end of the demo. */
async function connectWhenReady(dev: DevFile): Promise<Connection> {
  const connection = await connect(dev);
  cleanUps.unshift(async () => connection.client.destroy());
  await agentsReady(connection);
  return connection;
}

function createPlatform(directory: string, environment: NodeJS.ProcessEnv): DemoPlatform {
  const platform = new DemoPlatform(directory, environment, (line) => printer.line(`| ${line}`));
  cleanUps.unshift(async () => {
    await platform.close();
    if (process.exitCode === FAILED) process.stderr.write(`${platform.lastLines.join('\n')}\n`);
  });
  return platform;
}

/** A free port: after a restart the links of before must still lead to the platform. */
async function freePort(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return String(port);
}

/** The system that answers approvals; closed at the end of the demo. */
async function openReceiver(): Promise<WebhookReceiver> {
  const receiver = new WebhookReceiver();
  await receiver.listen();
  cleanUps.unshift(async () => receiver.close());
  return receiver;
}

/** What waits for humans, of which another system was told by webhook. */
interface AskedByWebhook {
  /** The question of an agent. */
  question: ApprovalDelivery;
  /** A tool call that needs approval. */
  approval: ApprovalDelivery;
  ruleId: string;
  policyId: string;
}

/** Another system is told by webhook of an agent's question, and of a tool call that needs approval. @param sessionId of the agent */
async function askByWebhook(connection: Connection, sessionId: string): Promise<AskedByWebhook> {
  const receiver = await openReceiver();
  const { ruleId } = await subscribe(connection, printer, receiver);
  const question = await showDelivery(printer, receiver, await askQuestion(connection, printer, sessionId));
  const policyId = await holdNotices(connection, printer);
  const approval = await showDelivery(printer, receiver, await askForApproval(connection, printer, sessionId));
  return { question, approval, ruleId, policyId };
}

/** Both are answered: the question by the other system, the tool call by somebody with the link. */
async function decide(connection: Connection, { question, approval }: AskedByWebhook): Promise<void> {
  await answerWithCurl(connection, printer, question);
  await approveOnPage(connection, printer, approval);
}

async function runCommonSteps(connection: Connection): Promise<AskedByWebhook & { sessionId: string }> {
  await showToken(connection, printer);
  const sessionId = await openSession(connection, printer);
  await sendMessage(connection, printer, sessionId);
  await streamMessage(connection, printer, sessionId);
  await askLibrarian(connection, printer);
  return { sessionId, ...(await askByWebhook(connection, sessionId)) };
}

/** Removes what the demo has set up on a platform that lives on. */
async function removeRules({ client }: Connection, { ruleId, policyId }: AskedByWebhook): Promise<void> {
  await client.policies.deleteAlert({ ruleId });
  await client.policies.deletePolicy({ policyId });
}

/** Kills the whole platform while the messages wait, starts it again, and shows that they still wait. */
async function restart(platform: DemoPlatform, connection: Connection, asked: AskedByWebhook): Promise<Connection> {
  printer.step('Every process of the platform is killed while the messages wait');
  connection.client.close();
  const killed = await platform.kill();
  printer.line(`kill -9 of ${killed} processes: API, mesh, worker, agents, Temporal and Postgres`);
  const startedAt = Date.now();
  const reconnected = await connectWhenReady(await platform.start());
  printer.line(`ready again after ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
  const waiting = [asked.question, asked.approval].map(({ event }) => event.message_id);
  await showPending(reconnected, printer, waiting);
  return reconnected;
}

/** No platform is running: starts one in the data directory. Its data is kept for `npm start`. */
async function runOnNewPlatform(directory: string): Promise<void> {
  printer.title('The agent fleet, step by step');
  printer.line('No platform is running here, so this demo starts one and stops it at the end.');
  const port = process.env.FLEET_API_PORT === '0' && { FLEET_API_PORT: await freePort() };
  const platform = createPlatform(directory, { ...process.env, FLEET_EXAMPLES: 'on', ...port });
  const first = await connectWhenReady(await platform.start());
  const { sessionId, ...asked } = await runCommonSteps(first);
  const second = await restart(platform, first, asked);
  await decide(second, asked);
  await removeRules(second, asked);
  await showEvents(second, printer, sessionId);
  showWhereToLook(second, printer, asked.approval.event.message_id, false);
  second.client.close();
}

/** A platform is running: runs the flow there, and the restart on a second one in a temporary directory. */
async function runOnRunningPlatform(dev: DevFile): Promise<void> {
  printer.title('The agent fleet, step by step');
  printer.line(`On the platform that is running at ${dev.base_url}.`);
  const connection = await connectWhenReady(dev);
  const { sessionId, ...asked } = await runCommonSteps(connection);
  await decide(connection, asked);
  await removeRules(connection, asked);
  await showEvents(connection, printer, sessionId);
  showWhereToLook(connection, printer, asked.approval.event.message_id, true);
  connection.client.close();

  printer.title('The same questions, with a restart before the answers');
  printer.line('Your platform keeps running: the demo starts a second one and removes it afterwards.');
  const directory = await mkdtemp(join(tmpdir(), 'fleet-demo-'));
  cleanUps.unshift(() => rm(directory, { recursive: true, force: true }));
  const shared = Object.entries(process.env).filter(([name]) => !NOT_SHARED.includes(name));
  const platform = createPlatform(directory, {
    ...Object.fromEntries(shared),
    ...FREE_PORTS,
    FLEET_API_PORT: await freePort(),
  });
  const first = await connectWhenReady(await platform.start());
  const waiting = await askByWebhook(first, await openSession(first, printer));
  const second = await restart(platform, first, waiting);
  await decide(second, waiting);
  second.client.close();
}

let isCleaning = false;
async function finish(exitCode: number): Promise<void> {
  if (isCleaning) return;
  isCleaning = true;
  process.exitCode = exitCode;
  for (const cleanUp of cleanUps) await cleanUp();
  process.exit(exitCode);
}

async function main(): Promise<void> {
  const directory = dataDir(process.env);
  const running = await runningPlatform(directory);
  if (running) await runOnRunningPlatform(running);
  else await runOnNewPlatform(directory);
  printer.title('The demo is complete.');
}

process.once('SIGINT', () => void finish(130));
process.once('SIGTERM', () => void finish(143));
main().then(
  () => finish(0),
  (error: unknown) => {
    if (isCleaning) return;
    process.stderr.write(`\nThe demo failed: ${error instanceof Error ? error.message : String(error)}\n`);
    return finish(FAILED);
  },
);
