import { expect, test } from 'vitest';
import { createRuleHandler, intentOf } from '../../examples/concierge/rules.js';
import { createTools } from '../../examples/concierge/tools.js';
import { FleetClient, type TaskResolution } from '../../sdk/index.js';
import { task } from './task.js';

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
  const { task: given, streamed } = task(text, resolution);
  return handler(given).then((result) => ({ result, streamed: streamed.join(''), pieces: streamed.length }));
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
