import { expect, test } from 'vitest';
import { createDispatches } from '../../../messages/dispatch/dispatch-store.js';
import type { AnswerOrFailure } from '../../../messages/dispatch/dispatches.js';
import { answerMessage } from '../../api/moving.js';
import { serveApi } from '../../api/served-api.js';
import { approvalsFixture } from './approvals-fixture.js';

const api = await serveApi();
const { held, outcome, ref, sent, step } = await approvalsFixture(api);

const asks = (title: string): AnswerOrFailure => ({
  state: 'input-required',
  artifacts: [],
  input_request: { kind: 'confirmation', title, prompt: `${title}!` },
});

/** What the agent of a message gets beside the message itself. */
async function metadataFor(id: string): Promise<Record<string, unknown>> {
  const { dispatch_id = '' } = (await step(id)) ?? {};
  const open = await createDispatches(api.core).find({ ...ref(id), dispatch_id });
  return open?.payload.params.metadata ?? {};
}

test('each answer of a message is kept, and a resumed agent gets all of them in order', async () => {
  const id = await sent();
  const given = [
    { title: 'First?', resolution: 'confirmed', comment: 'sure' },
    { title: 'Second?', resolution: 'declined' },
  ];
  const resolutions: object[] = [];
  for (const { title, ...answer } of given) {
    await answerMessage(api, id, asks(title));
    expect(await outcome(api.client, id, answer)).toBe('200 working');
    const resolution = { ...answer, request_id: expect.stringMatching(/^req_/) };
    resolutions.push({ ...resolution, source: 'agent', kind: 'confirmation', title });
    expect(await metadataFor(id)).toMatchObject({ resolution, resolutions });
  }
});

test('what a policy asked is among them, by its source', async () => {
  const id = await held();
  expect(await outcome(api.client, id, { resolution: 'approved' })).toBe('200 working');
  expect(await metadataFor(id)).toMatchObject({
    resolution: { resolution: 'approved' },
    resolutions: [{ resolution: 'approved', source: 'policy', kind: 'approval' }],
  });
});

test('a caller cannot pretend that somebody has answered', async () => {
  const pretended = { request_id: 'req_1', resolution: 'approved', source: 'agent' };
  const id = await sent('hi', { resolution: pretended, resolutions: [pretended], mine: 1 });
  expect(await metadataFor(id)).toEqual({ agent_type: 'worker', mine: 1 });
});
