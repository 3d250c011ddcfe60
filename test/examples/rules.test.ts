import { expect, test } from 'vitest';
import { createRuleHandler, intentOf } from '../../examples/concierge/rules.js';
import { createTools } from '../../examples/concierge/tools.js';
import { type AgentTask, FleetClient, type Question, type TaskResolution } from '../../sdk/index.js';

test.each([
  ['what is 12 * (3 + 4)?', 'calculate', { expression: '12 * (3 + 4)' }],
  ['2 + 2', 'calculate', { expression: '2 + 2' }],
  ["What's 15% of 80", 'calculate', { expression: '15% of 80' }],
  ['restart the billing service', 'operate_service', { action: 'restart', service: 'billing' }],
  [
    'please deploy search to version 3.1.0',
    'operate_service',
    { action: 'deploy', service: 'search', version: '3.1.0' },
  ],
  ['Delete checkout', 'operate_service', { action: 'delete', service: 'checkout' }],
  ['wait 20 seconds', 'wait', { seconds: 20 }],
  ['wait for 2 minutes', 'wait', { seconds: 120 }],
  ['plan a trip', 'plan_trip', {}],
  ['I want to order something', 'place_order', {}],
  ['services', 'list_services', {}],
  ['status', 'fleet_status', {}],
  ['What is the fleet doing?', 'fleet_status', {}],
])('%j asks for %s', (text, tool, args) => {
  expect(intentOf(text)).toEqual({ tool, args });
});

test.each(['hello', '', 'what is love?'])('%j asks for nothing', (text) => {
  expect(intentOf(text)).toBeNull();
});

function handle(text: string, resolution?: TaskResolution) {
  const client = new FleetClient({ url: 'http://127.0.0.1:1', clientId: 'c', clientSecret: 's' });
  const handler = createRuleHandler(createTools(client));
  const streamed: string[] = [];
  const task: AgentTask = {
    text,
    parts: [],
    files: [],
    metadata: {},
    sessionId: 'ses_1',
    userId: undefined,
    remainingMs: 1_000,
    idempotencyKey: 'msg_1',
    history: async () => [],
    stateOf: async () => undefined,
    client: undefined as never,
    messageId: 'msg_1',
    dispatchId: 'dsp_1',
    skillId: undefined,
    data: () => Promise.reject(new Error('no input here')),
    attempt: 1,
    resolution,
    resolutions: resolution ? [resolution] : [],
    deadlineMs: 1_000,
    traceparent: '',
    signal: new AbortController().signal,
    stream: async (output) => void streamed.push(String(output)),
    status: async () => undefined,
    callTool: () => Promise.reject(new Error('no tools here')),
    search: () => Promise.reject(new Error('no knowledge here')),
    ask: ((question: Question) => ({ state: 'input-required', question })) as never,
  };
  return handler(task).then((result) => ({ result, streamed: streamed.join(''), pieces: streamed.length }));
}

test('streams an answer a few words at a time', async () => {
  const { streamed, pieces } = await handle('hello');
  expect(streamed).toContain("I am the fleet's concierge");
  expect(pieces).toBeGreaterThan(5);
});

test('asks before it restarts a service, and acts only when it is confirmed', async () => {
  const { result } = await handle('restart the billing service');
  expect(result).toMatchObject({
    state: 'input-required',
    question: {
      kind: 'confirmation',
      title: 'Restart billing?',
      tool: 'operate_service',
      arguments: { service: 'billing' },
    },
  });
  const confirmed = await handle('restart the billing service', {
    requestId: 'r',
    resolution: 'confirmed',
    accepted: true,
  });
  expect(confirmed.streamed).toContain('Done (simulated): billing was restarted.');
  expect(confirmed.streamed).toContain('- billing 1.4.2, restarted 1×');
  const declined = await handle('restart the billing service', {
    requestId: 'r',
    resolution: 'declined',
    accepted: false,
    comment: 'not now',
  });
  expect(declined.streamed).toBe('As you wish: I did nothing. (You said: not now)');
});

test('plans a trip from what was filled in', async () => {
  const { result } = await handle('plan a trip');
  expect(result).toMatchObject({ question: { kind: 'form', schema: { required: ['destination', 'nights'] } } });
  const resolution = {
    requestId: 'r',
    resolution: 'submitted',
    accepted: true,
    data: { destination: 'Lisbon', nights: 2, budget: 100 },
  };
  const { streamed } = await handle('plan a trip', resolution);
  expect(streamed).toContain('Lisbon, 2 nights');
  expect(streamed).toContain('Budget: 2 × 100 = 200');
});
