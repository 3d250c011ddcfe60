import { beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_CLOCKS } from '../../../runtime/clocks.js';
import { until } from '../../setup/until.js';
import type { FixtureAgent } from '../fixture-agent.js';
import { MeshFixture, type MeshNodeUnderTest } from '../mesh-fixture.js';
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
    const { agent, welcome } = await node.join('a', {}, { token: await fixture.token(2) });
    expect(welcome.reauth).toBe(true);
    const { ref, end, dispatch } = await node.send(agent);
    dispatch.chunk(0, 'before ');
    const answer = await reauth(agent, await fixture.token(3_600));
    expect(answer.type).toBe('reauth_ok');
    const oldEnd = Date.parse(welcome.token_expires_at ?? '');
    expect(Date.parse(String(answer.payload.token_expires_at))).toBeGreaterThan(oldEnd + 3_000_000);
    await until(() => Date.now() > oldEnd + 500);
    dispatch.chunk(1, 'after');
    dispatch.result('', { chunk_count: 2 });
    expect(await end).toMatchObject({ kind: 'closed' });
    expect((await fixture.message(ref)).assistant_output).toBe('before after');
    expect(agent.isOpen).toBe(true);
  });

  it('is closed at the end of the new one', async () => {
    const { agent } = await node.join('a');
    expect((await reauth(agent, await fixture.token(1))).type).toBe('reauth_ok');
    expect((await agent.closed).code).toBe(4401);
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
    const other = await new MeshFixture(database).reset();
    return fixture.tokens.issueAccessToken(
      { ...claims(), tenant_id: other.tenantId, credential_id: other.credentialId },
      60,
    );
  },
  'is of another credential': async () => {
    const { tenantId, credentialId } = await fixture.newTenant();
    await database.query('UPDATE credentials SET tenant_id = $1 WHERE tenant_id = $2', [fixture.tenantId, tenantId]);
    return fixture.tokens.issueAccessToken({ ...claims(), credential_id: credentialId }, 60);
  },
  'is for agents of another type': () => fixture.tokens.issueAccessToken({ ...claims(), agent_type: 'other' }, 60),
  'may not connect agents': () => fixture.token(60, ['read']),
};
const claims = () => {
  const { iat, exp, ...rest } = fixture.caller;
  return rest;
};

describe('a token that', () => {
  it.each(Object.keys(WRONG))('%s is refused, and the old one stays in force', async (what) => {
    const { agent } = await node.join('a');
    const answer = await reauth(agent, await WRONG[what]?.());
    expect(answer).toMatchObject(refused());
    expect(agent.isOpen).toBe(true);
    const { end, dispatch } = await node.send(agent);
    dispatch.result('still here');
    expect(await end).toMatchObject({ kind: 'closed', final: 'completed' });
  });

  it('is refused does not change when the old one ends', async () => {
    const { agent } = await node.join('a', {}, { token: await fixture.token(2) });
    for (const wrong of Object.values(WRONG).slice(0, 5))
      expect(await reauth(agent, await wrong())).toMatchObject(refused());
    expect((await agent.closed).code).toBe(4401);
  });

  it('comes after the instance was registered with another type is refused', async () => {
    const { agent } = await node.join('a');
    await database.query("UPDATE agents SET agent_type = 'changed' WHERE tenant_id = $1", [fixture.tenantId]);
    expect(await reauth(agent, await fixture.token())).toMatchObject(refused());
  });
});
