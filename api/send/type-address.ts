import type { MessageSendParams } from '../../contracts/a2a/a2a.js';
import type { Db } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import type { CallContext } from './rpc.js';
import { RpcError } from './rpc-error.js';

/**
 * A message that came to the address of an agent type (`/a2a/{agent_type}`), as it would be sent to `/send`.
 * @throws RpcError `INVALID_PARAMS` when its metadata names another type
 */
export function toType(params: MessageSendParams, agentType: string): MessageSendParams {
  const given = { ...params.message.metadata, ...params.metadata };
  for (const member of ['agent_type', 'target_agent'])
    if (given[member] !== undefined && given[member] !== agentType)
      throw new RpcError('INVALID_PARAMS', `metadata.${member}: this address is that of the agent type ${agentType}`);
  return { ...params, metadata: { ...params.metadata, agent_type: agentType } };
}

/**
 * The address of an agent type has the tasks of that type only: those that its agents have, or that ask for one of them.
 * @throws PlatformError TASK_NOT_FOUND for another task. `/send` has all tasks of the caller, and asks nothing
 */
export async function requireTaskOfType(db: Db, taskId: string, { caller, agentType }: CallContext): Promise<void> {
  if (agentType === null) return;
  const found = await db.tenant(caller.tenant_id, (tx) =>
    tx.query(
      'SELECT 1 FROM messages WHERE tenant_id = $1 AND message_id = $2 AND coalesce(agent_type, want_agent_type) = $3',
      [caller.tenant_id, taskId, agentType],
    ),
  );
  if (found.length === 0) throw new PlatformError('TASK_NOT_FOUND', 'Task not found: there is none of that id.');
}
