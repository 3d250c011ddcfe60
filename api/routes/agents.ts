import type { FastifyInstance } from 'fastify';
import type { AgentRegisterRequest, DeploymentMode } from '../../contracts/agents.js';
import { type Caller, speaksFor } from '../../contracts/auth.js';
import { OPERATIONS } from '../../contracts/operations.js';
import { type Scope, scopeIncludes } from '../../contracts/primitives.js';
import { connectionStats, getConnection } from '../../db/agent-connections.js';
import { heartbeat } from '../../db/agent-health.js';
import { allowType, disallowType, requireMayJoin } from '../../db/agent-types.js';
import { getAgent, listAgents, lockAgent, lockRegistered, registerAgent } from '../../db/agents.js';
import { deregisterAgent } from '../../db/deregister.js';
import { checkPublicUrl, fetchAgentCard } from '../../runtime/agent-card.js';
import { PlatformError } from '../../runtime/errors.js';
import type { ApiDeps } from '../deps.js';
import { mount, pageFields } from '../mount.js';
import { callerOf } from '../plugins/authentication.js';

type Deps = Pick<ApiDeps, 'db' | 'agentJoined' | 'outbound' | 'sessions' | 'baseUrl' | 'meshUrl'>;

const DISPATCH_AUTH = { type: 'bearer_jwt' } as const;
const DEREGISTERED_BY_CALLER = 'deregistered by the caller';

/** An agent acts for its own type; beyond that the scope counts (decisions.md, Agents). */
function checkActsFor(caller: Caller, agentType: string, scope: Scope): void {
  if (speaksFor(caller, agentType) || scopeIncludes(caller.scopes, scope)) return;
  throw new PlatformError('forbidden', `This needs the scope ${scope}, or a token for the agent type.`);
}

/** A URL means hosted where no mode is given. */
function modeOf(body: AgentRegisterRequest): DeploymentMode {
  const url = body.public_url ?? body.url;
  const mode = body.deployment_mode ?? (url === undefined ? 'connected' : 'hosted');
  if (mode === 'hosted' && url === undefined) {
    throw new PlatformError('BAD_REQUEST', 'public_url: a hosted agent needs one.');
  }
  return mode;
}

/** The card of a registration: the given one, else a hosted agent's own. */
async function cardOf(deps: Deps, body: AgentRegisterRequest, mode: DeploymentMode) {
  const url = body.public_url ?? body.url;
  if (url !== undefined) checkPublicUrl(deps.outbound, url);
  if (body.agent_card) return { agent_card: body.agent_card, reached: false };
  if (mode === 'connected' || url === undefined) return { agent_card: {}, reached: false };
  return { agent_card: await fetchAgentCard(deps.outbound, url), reached: true };
}

function connectUrl(meshUrl: string, instanceId: string): string {
  return `${meshUrl.replace(/^http/, 'ws')}/agents/connect?instance_id=${encodeURIComponent(instanceId)}`;
}

async function register(deps: Deps, caller: Caller, body: AgentRegisterRequest) {
  checkActsFor(caller, body.agent_type, 'full');
  const { tenant_id } = caller;
  const deployment_mode = modeOf(body);
  // Asked again when it is written; here, so that nothing is fetched for who may not join.
  await deps.db.tenant(tenant_id, (tx) => requireMayJoin(tx, tenant_id, body.agent_type));
  const card = await cardOf(deps, body, deployment_mode);
  const may_change_type = scopeIncludes(caller.scopes, 'full');
  const agent = await deps.db.tenant(tenant_id, async (tx) => {
    await requireMayJoin(tx, tenant_id, body.agent_type);
    const registration = { tenant_id, body, deployment_mode, ...card, may_change_type };
    return registerAgent(tx, registration, deps.sessions.releaseAgent);
  });
  if (deployment_mode === 'hosted') await deps.agentJoined(tenant_id, agent);
  return {
    ok: true as const,
    tenant_id,
    instance_id: agent.instance_id,
    deployment_mode,
    connect_url: deployment_mode === 'connected' ? connectUrl(deps.meshUrl(), agent.instance_id) : null,
    jwks_url: `${deps.baseUrl()}${OPERATIONS.jwks.path}`,
    dispatch_auth: body.dispatch_auth ?? DISPATCH_AUTH,
    agent,
  };
}

/** Agents (decisions.md, Agents). */
export function agentRoutes(app: FastifyInstance, deps: Deps): void {
  const { db } = deps;

  mount(app, OPERATIONS.registerAgent).answer((body, { request }) => register(deps, callerOf(request), body));

  mount(app, OPERATIONS.heartbeat).answer(async (body, { request }) => {
    const caller = callerOf(request);
    const beat = 'payload' in body ? body.payload : body;
    const roomy = await db.tenant(caller.tenant_id, async (tx) => {
      const row = await lockRegistered(tx, caller.tenant_id, beat.instance_id);
      checkActsFor(caller, row.agent_type, 'admin');
      return heartbeat(tx, caller.tenant_id, beat.instance_id, beat);
    });
    if (roomy) await deps.agentJoined(caller.tenant_id, roomy);
    return { ok: true };
  });

  mount(app, OPERATIONS.getAgents).answer(async (body, { request }) => {
    const { tenant_id } = callerOf(request);
    const { count, agents } = await db.tenant(tenant_id, (tx) => listAgents(tx, tenant_id, body));
    return { ...pageFields(body, count), agents };
  });

  mount(app, OPERATIONS.getAgent).answer(async ({ instance_id }, { request }) => {
    const { tenant_id } = callerOf(request);
    return { ok: true, agent: await db.tenant(tenant_id, (tx) => getAgent(tx, tenant_id, instance_id)) };
  });

  mount(app, OPERATIONS.deregisterAgent).answer(async ({ instance_id, reason }, { request }) => {
    const caller = callerOf(request);
    await db.tenant(caller.tenant_id, async (tx) => {
      const row = await lockAgent(tx, caller.tenant_id, instance_id);
      if (!row) throw new PlatformError('NOT_FOUND', 'There is no agent of that instance_id.');
      checkActsFor(caller, row.agent_type, 'admin');
      await deregisterAgent(tx, row, reason ?? DEREGISTERED_BY_CALLER, deps.sessions.releaseAgent);
    });
    return { ok: true, instance_id };
  });

  mount(app, OPERATIONS.getConnection).answer(async ({ instance_id }, { request }) => ({
    ok: true,
    connection: await getConnection(db, callerOf(request).tenant_id, instance_id),
  }));

  mount(app, OPERATIONS.getConnectionStats).answer(async ({ agent_type }, { request }) => {
    const { tenant_id } = callerOf(request);
    return { ok: true, stats: await db.tenant(tenant_id, (tx) => connectionStats(tx, tenant_id, agent_type)) };
  });

  mount(app, OPERATIONS.allowType).answer(async ({ agent_type }, { request }) => {
    const { tenant_id, sub: decided_by } = callerOf(request);
    const done = await db.tenant(tenant_id, (tx) => allowType(tx, { tenant_id, agent_type, decided_by }));
    return { ok: true, agent_type, ...done };
  });

  mount(app, OPERATIONS.disallowType).answer(async ({ agent_type }, { request }) => {
    const { tenant_id, sub: decided_by } = callerOf(request);
    const done = await db.tenant(tenant_id, (tx) =>
      disallowType(tx, { tenant_id, agent_type, decided_by }, deps.sessions.releaseAgent),
    );
    return { ok: true, agent_type, ...done };
  });

  app.get(OPERATIONS.connectAgent.path, async () => {
    throw new PlatformError('UPGRADE_REQUIRED', 'Agents connect by wss to the mesh address.', {
      headers: { Upgrade: 'websocket', Connection: 'Upgrade, close' },
    });
  });
}
