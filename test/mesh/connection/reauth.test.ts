import { beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_CLOCKS } from '../../../runtime/clocks.js';
import { until } from '../../setup/until.js';
import type { FixtureAgent } from '../fixture-agent.js';
import type { MeshNodeUnderTest } from '../mesh-fixture.js';
import { database, fixture, useMesh } from '../use-mesh.js';

useMesh('a');

let node: MeshNodeUnderTest;
beforeEach(async () => {
  node = await fixture.node();
});

/** Sends a token and gives the mesh's answer. */
async function reauth(agent: FixtureAgent, token: unknown) {
  const id = agent.send('reauth', { token });
  return agent.next((frame) => frame.in_reply_to === id);
}

const refused = (code = 'REAUTH_REFUSED') => ({
  type: 'error',
  payload: { code, retryable: code !== 'REAUTH_REFUSED' },
});

describe('a connected agent that sends a new token', () => {
  it('keeps its socket and its work beyond the end of the old one', async () => {
    const { agent, welcome } = await node.join('a');
    expect(welcome.reauth).toBe(true);
    const { ref, end, dispatch } = await node.send(agent);
    dispatch.chunk(0, 'before ');
    const old = await reauth(agent, await fixture.token(3));
    const answer = await reauth(agent, await fixture.token(3_600));
    expect([old.type, answer.type]).toEqual(['reauth_ok', 'reauth_ok']);
    const oldEnd = Date.parse(String(old.payload.token_expires_at));
    expect(Date.parse(String(answer.payload.token_expires_at))).toBeGreaterThan(oldEnd + 3_000_000);
    await until(() => Date.now() > oldEnd + 500);
    dispatch.chunk(1, 'after');
    dispatch.result('', { chunk_count: 2 });
    expect(await end).toMatchObject({ kind: 'closed' });
    expect((await fixture.message(ref)).assistant_output).toBe('before after');
    expect(agent.isOpen).toBe(true);
  });

  it('is closed when its credential is revoked afterwards', async () => {
    const { agent } = await node.join('a', {}, { token: await fixture.token(60) });
    await reauth(agent, await fixture.token());
    await database.query('UPDATE credentials SET revoked_at = now() WHERE credential_id = $1', [fixture.credentialId]);
    expect((await agent.closed).code).toBe(4401);
    expect(DEFAULT_CLOCKS.reconcileMs).toBeLessThan(5_000); // the time that is promised for it
  });

  it('is told when it sends too many', async () => {
    const { agent } = await node.join('a');
    const token = await fixture.token();
    for (let count = 0; count < 5; count += 1) expect((await reauth(agent, token)).type).toBe('reauth_ok');
    expect(await reauth(agent, token)).toMatchObject(refused('RATE_LIMITED'));
    expect(agent.isOpen).toBe(true);
  });

  it('breaks the protocol without one', async () => {
    const { agent } = await node.join('a');
    agent.send('reauth', { token: 7 });
    expect((await agent.closed).code).toBe(1002);
  });
});

/** Tokens that are not this agent's. */
const WRONG: Record<string, () => Promise<string>> = {
  'is none': async () => 'no token',
  'has expired': () => fixture.token(-1),
  'is of another tenant': async () => {
    const { tenantId: tenant_id, credentialId: credential_id } = await fixture.newTenant();
    return fixture.token(60, { tenant_id, credential_id });
  },
  'is of another credential': async () => {
    const { tenantId, credentialId: credential_id } = await fixture.newTenant();
    await database.query('UPDATE credentials SET tenant_id = $1 WHERE tenant_id = $2', [fixture.tenantId, tenantId]);
    return fixture.token(60, { credential_id });
  },
  'is for agents of another type': () => fixture.token(60, { agent_type: 'other' }),
  'may not connect agents': () => fixture.token(60, { scopes: ['read'] }),
};

describe('a token that', () => {
  it('is not the agent’s own is refused, and the old one stays in force until its end', async () => {
    for (const [what, wrong] of Object.entries(WRONG)) {
      const { agent } = await node.join('a');
      expect([what, await reauth(agent, await wrong())]).toMatchObject([what, refused()]);
      expect(agent.isOpen).toBe(true);
    }
    const { agent } = await node.join('a');
    const { end, dispatch } = await node.send(agent);
    expect((await reauth(agent, await fixture.token(3))).type).toBe('reauth_ok');
    expect(await reauth(agent, 'no token')).toMatchObject(refused());
    dispatch.result('still here');
    expect(await end).toMatchObject({ kind: 'closed', final: 'completed' });
    expect((await agent.closed).code).toBe(4401);
  });

  it('comes after the instance was registered with another type is refused', async () => {
    const { agent } = await node.join('a');
    await fixture.setAgent('a', "agent_type = 'changed'");
    expect(await reauth(agent, await fixture.token())).toMatchObject(refused());
  });
});
