import type { MessageSendParams } from '../../contracts/a2a.js';
import type { Db } from '../../db/pool.js';

/** Whom a message is for, beside what its metadata says of instance, type and skill. */
export type Target = { instance_id: string } | { agent_type: string };

/** `metadata.target_agent` of the call, or else of the message. One that is no name is refused with the rest of the metadata. */
export function targetNamed({ metadata, message }: MessageSendParams): string | null {
  const name = metadata?.target_agent ?? message.metadata?.target_agent;
  return typeof name === 'string' && name !== '' ? name : null;
}

/** What a `target_agent` names: the instance of that name where the tenant has one, else a type. */
export async function findTarget(db: Db, tenantId: string, name: string): Promise<Target> {
  const found = await db.tenant(tenantId, (tx) =>
    tx.query('SELECT 1 FROM agents WHERE tenant_id = $1 AND instance_id = $2 AND deregistered_at IS NULL', [
      tenantId,
      name,
    ]),
  );
  return found.length > 0 ? { instance_id: name } : { agent_type: name };
}
