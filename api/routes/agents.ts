import type { FastifyInstance } from 'fastify';
import { listTypes } from '../../agents/agent-activity.js';
import { checkOutboundUrl, fetchAgentCard, requireOwnRpcAddress } from '../../agents/agent-card.js';
import { connectionStats, getConnection } from '../../agents/agent-connections.js';
import { setDrained } from '../../agents/agent-drain.js';
import { heartbeat } from '../../agents/agent-health.js';
import type { AgentRow } from '../../agents/agent-row.js';
import { allowType, disallowType, requireMayJoin } from '../../agents/agent-types.js';
import { getAgentFor, listAgents, lockAgent, unknownInstance } from '../../agents/agents.js';
import { shownAuth } from '../../agents/dispatch-auth.js';
import { type Deregistration, deregisterAgents, registerAgent } from '../../agents/registration.js';
import { registrationRequest } from '../../agents/registration-policy.js';
import type { Author } from '../../audit/record-audit.js';
import { setDefaultType } from '../../auth/tenants.js';
import type { AgentRegisterRequest } from '../../contracts/api/agents.js';
import type { Caller } from '../../contracts/api/auth.js';
import type { Operation } from '../../contracts/api/operation.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { connectUrl } from '../../contracts/frames.js';
import { actsAs, isOwnType, mayActFor } from '../../contracts/permissions.js';
import { scopeIncludes } from '../../contracts/primitives.js';
import type { Tx } from '../../db/pool.js';
import { enforce, recordDecision } from '../../policy/enforce.js';
import { tokenFacts } from '../../policy/token-facts.js';
import { PlatformError } from '../../runtime/errors.js';
import type { ApiDeps } from '../deps.js';
import { mount, pageFields } from '../mount.js';

type Deps = Pick<
  ApiDeps,
  'db' | 'policies' | 'fill' | 'agentsDeregistered' | 'outbound' | 'secrets' | 'baseUrl' | 'meshUrl'
>;

/** @throws PlatformError forbidden */
function checkActsFor(caller: Caller, agentType: string, { othersNeed = 'full' }: Operation): void {
  if (mayActFor(caller, agentType, othersNeed)) return;
  throw new PlatformError('forbidden', `This needs the scope ${othersNeed}, or a token for the agent type.`);
}

/** Locks the agent of a request that only the agent itself or an administrator may make. @throws PlatformError NOT_FOUND, forbidden */
async function lockForCaller(tx: Tx, caller: Caller, instanceId: string, operation: Operation): Promise<AgentRow> {
  const row = await lockAgent(tx, caller.tenant_id, instanceId);
  if (!row || !isOwnType(caller, row.agent_type)) throw unknownInstance();
  checkActsFor(caller, row.agent_type, operation);
  return row;
}

async function register(deps: Deps, caller: Caller, author: Author, body: AgentRegisterRequest) {
  checkActsFor(caller, body.agent_type, OPERATIONS.registerAgent);
  const { tenant_id } = caller;
  const url = body.public_url ?? body.url;
  const deployment_mode = body.deployment_mode ?? (url === undefined ? 'connected' : 'hosted');
  const isHosted = deployment_mode === 'hosted';
  if (isHosted && url === undefined) throw new PlatformError('BAD_REQUEST', 'public_url: a hosted agent needs one.');
  const { dispatch_auth } = body;
  if (!isHosted && dispatch_auth !== undefined && dispatch_auth.type !== 'bearer_jwt')
    throw new PlatformError('BAD_REQUEST', 'dispatch_auth: only hosted agents are asked with a credential.');
  // Checked again in the transaction below; here, so that no card is fetched for an agent that may not join.
  await deps.db.tenant(tenant_id, (tx) => requireMayJoin(tx, tenant_id, body.agent_type));
  if (url !== undefined) checkOutboundUrl(deps.outbound, 'public_url', url);
  if (dispatch_auth?.type === 'oauth2_client_credentials')
    checkOutboundUrl(deps.outbound, 'dispatch_auth.token_url', dispatch_auth.token_url);
  const served = isHosted && !body.agent_card && url !== undefined ? await fetchAgentCard(deps.outbound, url) : null;
  if (served && url !== undefined) requireOwnRpcAddress(url, served);
  const card = { agent_card: served ?? body.agent_card ?? {}, reached: served !== null };
  const { skills = [], tools = [], context = {} } = body;
  const registered = { ...body, deployment_mode, public_url: url ?? null, skills, tools, context, ...card };
  const decided = await enforce(deps, tenant_id, registrationRequest(tokenFacts(caller), registered));
  const may_change_type = actsAs(caller) === null && scopeIncludes(caller.scopes, 'full');
  const { agent, warnings } = await deps.db.tenant(tenant_id, async (tx) => {
    await requireMayJoin(tx, tenant_id, body.agent_type);
    await recordDecision(tx, tenant_id, '', decided);
    const registration = {
      author,
      body,
      deployment_mode,
      ...card,
      may_change_type,
      secrets: deps.secrets,
    };
    return registerAgent(tx, registration);
  });
  if (isHosted) deps.fill(agent);
  const { instance_id } = agent;
  return {
    ok: true as const,
    tenant_id,
    instance_id,
    deployment_mode,
    connect_url: isHosted ? null : connectUrl(deps.meshUrl(), instance_id),
    jwks_url: `${deps.baseUrl()}${OPERATIONS.jwks.path}`,
    dispatch_auth: shownAuth(dispatch_auth),
    agent,
    ...(warnings.length > 0 && { warnings }),
  };
}

/** Registration of agents, their heartbeats, and what is known of them. */
export function agentRoutes(app: FastifyInstance, deps: Deps): void {
  const { db } = deps;

  mount(app, OPERATIONS.registerAgent).answer((body, { caller, author }) => register(deps, caller, author, body));

  mount(app, OPERATIONS.heartbeat).answer(async (body, { caller }) => {
    const beat = 'payload' in body ? body.payload : body;
    const hasRoom = await db.tenant(caller.tenant_id, async (tx) => {
      await lockForCaller(tx, caller, beat.instance_id, OPERATIONS.heartbeat);
      return heartbeat(tx, caller.tenant_id, beat.instance_id, beat);
    });
    if (hasRoom) deps.fill({ tenant_id: caller.tenant_id, instance_id: beat.instance_id });
    return { ok: true };
  });

  mount(app, OPERATIONS.getAgents).answer(async (body, { caller: { tenant_id } }) => {
    const { rows: agents, ...counted } = await listAgents(db, tenant_id, body);
    return { ...pageFields(body, counted), agents };
  });

  mount(app, OPERATIONS.getAgentTypes).answer(async (_body, { caller: { tenant_id } }) => {
    return { ok: true, agent_types: await db.tenant(tenant_id, (tx) => listTypes(tx, tenant_id)) };
  });

  mount(app, OPERATIONS.getAgent).answer(async ({ instance_id }, { caller }) => ({
    ok: true,
    agent: await db.tenant(caller.tenant_id, (tx) => getAgentFor(tx, caller, instance_id)),
  }));

  mount(app, OPERATIONS.deregisterAgent).answer(async ({ instance_id, reason }, { caller, author }) => {
    const before = await db.tenant(caller.tenant_id, async (tx) => {
      const row = await lockForCaller(tx, caller, instance_id, OPERATIONS.deregisterAgent);
      const why: Deregistration = { cause: 'explicit', reason: reason ?? 'deregistered by the caller', author };
      await deregisterAgents(tx, caller.tenant_id, [row], why);
      return row;
    });
    deps.agentsDeregistered([before]);
    return { ok: true, instance_id };
  });

  mount(app, OPERATIONS.drainAgent).answer(({ instance_id }, { caller, author }) =>
    db.tenant(caller.tenant_id, async (tx) => {
      await lockForCaller(tx, caller, instance_id, OPERATIONS.drainAgent);
      return { ok: true, instance_id, status: (await setDrained(tx, author, instance_id, true)).status };
    }),
  );

  mount(app, OPERATIONS.undrainAgent).answer(async ({ instance_id }, { caller, author }) => {
    const agent = await db.tenant(caller.tenant_id, async (tx) => {
      await lockForCaller(tx, caller, instance_id, OPERATIONS.undrainAgent);
      return setDrained(tx, author, instance_id, false);
    });
    deps.fill({ tenant_id: caller.tenant_id, instance_id: agent.instance_id });
    return { ok: true, instance_id, status: agent.status };
  });

  mount(app, OPERATIONS.getConnection).answer(async ({ instance_id }, { caller }) => ({
    ok: true,
    connection: await getConnection(db, caller, instance_id),
  }));

  mount(app, OPERATIONS.getConnectionStats).answer(async ({ agent_type }, { caller: { tenant_id } }) => {
    return { ok: true, stats: await db.tenant(tenant_id, (tx) => connectionStats(tx, tenant_id, agent_type)) };
  });

  mount(app, OPERATIONS.allowType).answer(async ({ agent_type }, { author }) => {
    const done = await db.tenant(author.tenant_id, (tx) => allowType(tx, author, agent_type));
    return { ok: true, agent_type, ...done };
  });

  mount(app, OPERATIONS.disallowType).answer(async ({ agent_type }, { author }) => {
    const { removed_from_policy, deregistered } = await db.tenant(author.tenant_id, (tx) =>
      disallowType(tx, author, agent_type),
    );
    deps.agentsDeregistered(deregistered);
    return { ok: true, agent_type, removed_from_policy, deregistered_count: deregistered.length };
  });

  mount(app, OPERATIONS.setDefaultType).answer(async ({ agent_type }, { author }) => {
    await db.tenant(author.tenant_id, (tx) => setDefaultType(tx, author, agent_type));
    return { ok: true, default_agent_type: agent_type };
  });

  app.get(OPERATIONS.connectAgent.path, async () => {
    throw new PlatformError('UPGRADE_REQUIRED', 'Agents connect by wss to the mesh address.', {
      headers: { Upgrade: 'websocket', Connection: 'Upgrade, close' },
    });
  });
}
