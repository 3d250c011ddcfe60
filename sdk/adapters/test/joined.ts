import { onTestFinished } from 'vitest';
import { MeshServer } from '../../../test/sdk/mesh-server.js';
import { Agent, type MessageHandler } from '../../index.js';

/** An agent with this handler, connected to a mesh whose frames the test writes and reads. */
export async function joined(handler: MessageHandler): Promise<MeshServer> {
  const mesh = await MeshServer.start();
  const { baseUrl: url, ca } = mesh;
  const agent = new Agent({ url, ca, token: 'token', type: 'shop', instanceId: 'shop-1', drainOnSignals: false });
  onTestFinished(() => agent.close(0).catch(() => undefined));
  await agent.onMessage(handler).connect();
  return mesh;
}

/** What a dispatch carries when humans have answered these questions, the oldest first. */
export function answered(
  ...answers: { title: string; resolution: string; kind?: string; [member: string]: unknown }[]
) {
  const resolutions = answers.map((answer, index) => ({
    request_id: `req_${index}`,
    source: 'agent',
    kind: 'confirmation',
    ...answer,
  }));
  return { metadata: { resolutions, resolution: resolutions.at(-1) } };
}

/** The payload of the frame that ends a dispatch with a result. */
export async function resultOf(mesh: MeshServer, dispatch: string) {
  return (await mesh.frame('dispatch_result', dispatch)).payload;
}
