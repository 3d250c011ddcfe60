import type { FastifyInstance } from 'fastify';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { listSessions } from '../../sessions/session-records.js';
import type { ApiDeps } from '../deps.js';
import { mount, pageFields } from '../mount.js';

/** Sessions, scope `read`. */
export function sessionRoutes(app: FastifyInstance, deps: Pick<ApiDeps, 'db' | 'secrets' | 'sessions'>): void {
  const { sessions } = deps;

  mount(app, OPERATIONS.initSession).answer(async (body, { caller }) => {
    const { session, instance_id, agent_type } = await sessions.init(caller, body);
    return { ok: true, session_id: session.session_id, instance_id, agent_type, session };
  });

  mount(app, OPERATIONS.getSessions).answer(async (body, { caller }) => {
    const { rows, next_cursor, ...counted } = await listSessions(deps, caller, body);
    return { ...pageFields(body, counted), sessions: rows, ...(next_cursor && { next_cursor }) };
  });

  mount(app, OPERATIONS.getSession).answer(async ({ session_id }, { caller }) => ({
    ok: true,
    session: await sessions.get(caller, session_id),
  }));

  mount(app, OPERATIONS.closeSession).answer(async ({ session_id, reason }, { caller }) => {
    await sessions.close(caller, session_id, reason);
    return { ok: true, session_id, status: 'completed' };
  });

  mount(app, OPERATIONS.interruptSessions).answer(async ({ ids, session_id }, { caller }) => {
    const wanted = ids ?? (session_id === undefined ? [] : [session_id]);
    return { ok: true, ...(await sessions.interrupt(caller, [...new Set(wanted)])) };
  });

  mount(app, OPERATIONS.inviteAgent).answer(async (body, { caller }) => ({
    ok: true,
    session_id: body.session_id,
    agent: await sessions.invite(caller, body),
  }));
}
