import { freePort } from '../../../../embedded/free-port.js';
import { type FleetClient, type SendOptions, textOf } from '../../../../sdk/index.js';
import { fleetClient } from '../../../setup/fleet-client.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import { TcpProxy } from '../../../setup/platform/tcp-proxy.js';
import { until } from '../../../setup/until.js';

/** A platform of the file, whose agents connect by a proxy that can cut them off. */
export async function platformBehindProxy() {
  const meshPort = await freePort();
  const proxy = await TcpProxy.to(() => meshPort);
  const shared = await startPlatform({
    FLEET_MESH_PORT: String(meshPort),
    FLEET_MESH_URL: `https://127.0.0.1:${proxy.port}`,
  });
  return { shared, proxy, client: fleetClient(shared.platform) };
}

/** Resolves when an agent is at work on the message. */
export const untilAtWork = (client: FleetClient, { id: messageId }: { id: string }) =>
  until(async () => (await client.messages.getById({ messageId })).message.state === 'working', { what: 'the work' });

/** The pieces in which an answer is streamed. @param onPiece is told how many there are so far */
export async function piecesOf(
  client: FleetClient,
  text: string,
  options: SendOptions,
  onPiece: (count: number) => void = () => undefined,
): Promise<string[]> {
  const found: string[] = [];
  for await (const event of client.stream(text, options)) {
    if (event.kind !== 'artifact-update') continue;
    found.push(textOf(event.artifact.parts));
    onPiece(found.length);
  }
  return found;
}
