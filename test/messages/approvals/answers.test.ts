import { expect, test } from 'vitest';
import { createDispatches } from '../../../messages/dispatch/dispatch-store.js';
import type { AnswerOrFailure } from '../../../messages/dispatch/dispatches.js';
import { answerMessage } from '../../api/moving.js';
import { serveApi } from '../../api/served-api.js';
import { approvalsFixture } from './approvals-fixture.js';

const api = await serveApi();
const { held, outcome, ref, step } = await approvalsFixture(api);

const asks = (title: string): AnswerOrFailure => ({
  state: 'input-required',
  artifacts: [],
  input_request: { kind: 'confirmation', title, prompt: `${title}!` },
});

/** What the agent of a message gets beside the message itself. */
async function metadataFor(id: string): Promise<Record<string, unknown>> {
  const next = await step(id);
  if (next?.kind !== 'dispatch') throw new Error(`no dispatch: ${next?.kind}`);
  const open = await createDispatches(api.core).find({ ...ref(id), dispatch_id: next.dispatch_id });
  return open?.payload.params.metadata ?? {};
}

test('each answer of a message is kept, and a resumed agent gets all of them in order', async () => {
  const { id } = await api.client.send('hi', { metadata: { agent_type: 'worker' }, blocking: false });
  await answerMessage(api, id, asks('First?'));
  expect(await outcome(api.client, id, { resolution: 'confirmed', comment: 'sure' })).toBe('200 working');
  const first = { resolution: 'confirmed', comment: 'sure', request_id: expect.stringMatching(/^req_/) };
  const asked = { source: 'agent', kind: 'confirmation' };
  const once = await metadataFor(id);
  expect(once.resolution).toEqual(first);
  expect(once.resolutions).toEqual([{ ...first, ...asked, title: 'First?' }]);
  await answerMessage(api, id, asks('Second?'));
  expect(await outcome(api.client, id, { resolution: 'declined' })).toBe('200 working');
  const second = { resolution: 'declined', request_id: expect.stringMatching(/^req_/) };
  const twice = await metadataFor(id);
  expect(twice.resolution).toEqual(second);
  expect(twice.resolutions).toEqual([
    { ...first, ...asked, title: 'First?' },
    { ...second, ...asked, title: 'Second?' },
  ]);
});

test('what a policy asked is among them, by its source', async () => {
  const id = await held();
  expect(await outcome(api.client, id, { resolution: 'approved' })).toBe('200 working');
  const { resolution, resolutions } = await metadataFor(id);
  expect(resolution).toMatchObject({ resolution: 'approved' });
  expect(resolutions).toMatchObject([{ resolution: 'approved', source: 'policy', kind: 'approval' }]);
});

test('a caller cannot pretend that somebody has answered', async () => {
  const pretended = { request_id: 'req_1', resolution: 'approved', source: 'agent' };
  const metadata = { agent_type: 'worker', resolution: pretended, resolutions: [pretended], mine: 1 };
  const { id } = await api.client.send('hi', { metadata, blocking: false });
  expect(await metadataFor(id)).toEqual({ agent_type: 'worker', mine: 1 });
});
