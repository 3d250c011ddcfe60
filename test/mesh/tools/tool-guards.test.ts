import { beforeEach, describe, expect, it } from 'vitest';
import type { FixtureAgent } from '../fixture-agent.js';
import type { MeshNodeUnderTest } from '../mesh-fixture.js';
import { fixture, useMesh } from '../use-mesh.js';
import { approvals } from './approval-fixture.js';
import { answeredCall, ask, callTool, ok, refusedWith, resultOf, take } from './tool-fixture.js';

useMesh('a', 'b');

let node: MeshNodeUnderTest;
let a: FixtureAgent;
let b: FixtureAgent;

beforeEach(async () => {
  node = await fixture.node();
  a = (await node.join('a')).agent;
  b = (await node.join('b', { tools: ['read'] })).agent;
});

const OUTSIDE = { path: '/srv/data/../../etc/passwd' };
/** Put together here, so that scanners of repositories do not take it for a real one. */
const KEY = `AKI${'AZ7Q3M5N1P9R2T4V6'}`;

describe('guards', () => {
  it('deny arguments', async () => {
    const result = await ask(a, { tool: 'read', arguments: OUTSIDE });
    expect(result).toEqual(refusedWith('GUARD_DENIED'));
    expect(await fixture.events('guard.denied')).toMatchObject([{ guard: 'path', action: 'call', tool: 'read' }]);
    expect(b.count('tool_call')).toBe(0);
  });

  it('have a human approve arguments, where they are set so', async () => {
    await fixture.guard({ guard: 'path', decision: 'require_approval' });
    const { ref } = await node.send(a, 'read it');
    const id = callTool(a, { tool: 'read', arguments: OUTSIDE, dispatch_id: ref.dispatch_id });
    expect(await resultOf(a, id)).toEqual(refusedWith('APPROVAL_PENDING'));
    expect(await approvals.asked(ref)).toMatchObject({ source: 'guard', guard: 'path', tool: 'read' });
    expect(await fixture.events('guard.approval_required')).toMatchObject([{ guard: 'path', tool: 'read' }]);
    await approvals.resolve(ref, 'approved');
    const call = await take(b, 'read');
    expect(call.payload.arguments).toEqual(OUTSIDE);
    call.result(ok('read'));
    expect(await resultOf(a, id)).toEqual(ok('read'));
  });

  it('withhold a result', async () => {
    await fixture.guard({ guard: 'secrets', enabled: true, decision: 'deny', config: { stages: ['tool_result'] } });
    const id = callTool(a, { tool: 'read' });
    (await take(b, 'read')).result(ok({ content: `the key is ${KEY}` }));
    const result = await resultOf(a, id);
    expect(result).toEqual(refusedWith('GUARD_DENIED'));
    expect(JSON.stringify(result)).not.toContain(KEY);
    expect(await fixture.events('guard.denied')).toMatchObject([{ guard: 'secrets', tool: 'read' }]);
  });

  it('end a loop of the same call', async () => {
    await fixture.guard({ guard: 'limits', config: { max_repeated_calls: 2 } });
    const { ref } = await node.send(a, 'read it');
    const payload = { tool: 'read', arguments: { page: 1 }, dispatch_id: ref.dispatch_id };
    for (const _ of [1, 2]) {
      expect(await answeredCall(a, payload, b, ok('same'))).toEqual(ok('same'));
    }
    expect(await ask(a, payload)).toEqual(refusedWith('GUARD_DENIED'));
    expect(await answeredCall(a, { ...payload, arguments: { page: 2 } }, b, ok('other'))).toEqual(ok('other'));
  });
});
