import type { AgentRef } from '../../agents/agent-row.js';
import { errorMessage } from '../../runtime/errors.js';
import type { MessageCore, Nodes } from '../core.js';
import { queueTarget } from '../queue-target.js';
import type { DispatchRunner } from '../runner/runner.js';
import type { DispatchRef } from './dispatches.js';
import { createQueues } from './queues.js';
import type { Taker } from './taker.js';

/** A notice to another node. */
export type NodeNotice = { kind: 'fill'; agent: AgentRef } | { kind: 'canceled'; dispatch: DispatchRef };

interface NodesOptions {
  core: Pick<MessageCore, 'db' | 'bus' | 'log' | 'limits' | 'workflowStarter'>;
  /** This process as a node; null without the mesh role. */
  own: { runner: Pick<DispatchRunner, 'meshId' | 'cancel'>; taker: Pick<Taker, 'fill' | 'look'> } | null;
  /** Sends a notice to another node; it may be lost. Null if this process reaches no others. */
  tell: ((meshId: string, notice: NodeNotice) => void) | null;
}

/** The node of a connected agent, or any node for a hosted one, and whether it is hosted. No row if nothing can be sent to the agent. */
const NODE_OF = `
  SELECT sending_node(NULL, a.mesh_id, a.saturated_on) AS mesh_id, a.deployment_mode = 'hosted' AS is_hosted
    FROM agents a WHERE a.tenant_id = $1 AND a.instance_id = $2 AND a.has_room IS NOT NULL`;

/** The mesh nodes as this process reaches them: itself directly, others by notices over Redis. */
export function createNodes({ core, own, tell }: NodesOptions): Nodes {
  const queues = createQueues(core);
  const inBackground = (work: Promise<void>, about: object): void =>
    void work.catch((error: unknown) =>
      core.log.warn({ err: errorMessage(error), ...about }, 'the node of an agent could not be told'),
    );
  const fillAt = (agent: AgentRef, meshId: string): void => {
    if (meshId === own?.runner.meshId) own.taker.fill(agent);
    else tell?.(meshId, { kind: 'fill', agent: { tenant_id: agent.tenant_id, instance_id: agent.instance_id } });
  };
  const fillSomewhere = async (agent: AgentRef): Promise<void> => {
    const { tenant_id, instance_id } = agent;
    const [found] = await core.db.tenant(tenant_id, (tx) =>
      tx.query<{ mesh_id: string | null; is_hosted: boolean }>(NODE_OF, [tenant_id, instance_id]),
    );
    if (found?.is_hosted && own) own.taker.fill(agent);
    else if (found?.mesh_id) fillAt(agent, found.mesh_id);
  };
  const lookFrom = async (queue: Parameters<Nodes['look']>[0]): Promise<void> => {
    for (const { instance_id, mesh_id } of await queues.agentsToFill(queue)) {
      const agent = { tenant_id: queue.tenant_id, instance_id };
      if (mesh_id === null) await fillSomewhere(agent);
      else fillAt(agent, mesh_id);
    }
  };
  return {
    fill: (agent, meshId) => {
      if (meshId) fillAt(agent, meshId);
      else if (own && !tell) own.taker.fill(agent);
      else inBackground(fillSomewhere(agent), { instance_id: agent.instance_id });
    },
    look: (queue) => {
      const { instance_id } = queueTarget(queue.queue);
      // A queue of one agent needs no search. Without notices to other nodes, the agent is this node's, or its own node finds the message in its next look.
      if (own && !tell && instance_id !== '') own.taker.fill({ tenant_id: queue.tenant_id, instance_id });
      else if (own) own.taker.look(queue);
      else if (tell) inBackground(lookFrom(queue), queue);
    },
    cancel: ({ mesh_id, tenant_id, message_id, dispatch_id }) => {
      const dispatch = { tenant_id, message_id, dispatch_id };
      if (mesh_id === own?.runner.meshId)
        inBackground(own.runner.cancel(dispatch, 'The message was canceled.'), dispatch);
      else if (mesh_id !== null) tell?.(mesh_id, { kind: 'canceled', dispatch });
    },
  };
}

/** For a process that is no node and reaches none: the nodes find messages in their next look. */
export const NO_NODES: Nodes = { fill: () => undefined, look: () => undefined, cancel: () => undefined };
