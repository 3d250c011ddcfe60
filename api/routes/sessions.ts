import type { FastifyInstance } from 'fastify';
import { OPERATIONS } from '../../contracts/api/operations.js';
import type { ApiDeps } from '../deps.js';
import { mount, pageFields } from '../mount.js';
import { callerOf } from '../plugins/authentication.js';

/** Sessions, scope `read` (decisions.md, Sessions). */
export function sessionRoutes(app: FastifyInstance, deps: Pick<ApiDeps, 'sessions'>): void {
  const { sessions } = deps;

  mount(app, OPERATIONS.initSession).answer(async (body, { request }) => {
    const { session, instance_id, agent_type } = await sessions.init(callerOf(request), body);
    return { ok: true, session_id: session.session_id, instance_id, agent_type, session };
  });

  mount(app, OPERATIONS.getSessions).answer(async (body, { request }) => {
    const found = await sessions.list(callerOf(request), body);
    return { ...pageFields(body, found.count), sessions: found.sessions };
  });

  mount(app, OPERATIONS.getSession).answer(async ({ session_id }, { request }) => ({
    ok: true,
    session: await sessions.get(callerOf(request), session_id),
  }));

  mount(app, OPERATIONS.closeSession).answer(async ({ session_id, reason }, { request }) => {
    await sessions.close(callerOf(request), session_id, reason);
    return { ok: true, session_id, status: 'completed' };
  });

  mount(app, OPERATIONS.interruptSessions).answer(async ({ ids, session_id }, { request }) => {
    const wanted = ids ?? (session_id === undefined ? [] : [session_id]);
    return { ok: true, ...(await sessions.interrupt(callerOf(request), [...new Set(wanted)])) };
  });

  mount(app, OPERATIONS.inviteAgent).answer(async (body, { request }) => ({
    ok: true,
    session_id: body.session_id,
    agent: await sessions.invite(callerOf(request), body),
  }));
}
