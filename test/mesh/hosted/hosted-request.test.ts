import { describe, expect, it } from 'vitest';
import { callUrl, canStream, dispatchBody, hostedHeaders, taskBody, versionOf } from '../../../mesh/hosted/request.js';
import type { OpenDispatch } from '../../../messages/dispatch/dispatches.js';
import { refusalOf } from './strict-requests.js';

function openDispatch(changes: Partial<OpenDispatch> = {}): OpenDispatch {
  return {
    tenant_id: 'ten_1',
    message_id: 'msg_1',
    dispatch_id: 'dsp_1',
    session_id: 'ses_1',
    instance_id: 'travel-1',
    agent_type: 'travel',
    skill_id: null,
    deployment_mode: 'hosted',
    public_url: 'http://127.0.0.1:1/',
    agent_card: {},
    dispatch_auth: null,
    epoch: 0,
    attempt: 1,
    mesh_id: 'mesh_test',
    sent_at: null,
    deadline_at: null,
    produced: { artifacts: [], usage: null },
    is_first: true,
    remote_task_id: null,
    remote_context_id: null,
    payload: {
      jsonrpc: '2.0',
      id: '1',
      method: 'message/send',
      params: {
        message: {
          kind: 'message',
          messageId: 'msg_1',
          role: 'user',
          parts: [{ kind: 'text', text: 'book it' }],
          taskId: 'msg_1',
          contextId: 'ses_1',
        },
      },
      dispatch_id: 'dsp_1',
      deadline_ms: 1_000,
      attempt: 1,
      idempotency_key: 'dsp_1',
      session_context: {
        session_id: 'ses_1',
        tenant_id: 'ten_1',
        message_id: 'msg_1',
        client_message_id: 'm-1',
        propagation_headers: { traceparent: '00-0-0-01', baggage: 'a=b' },
      },
    },
    ...changes,
  };
}

const URI = 'urn:agent-fleet:dispatch:1';
const DISPATCHES = { capabilities: { extensions: [{ uri: URI }] } };
const STREAMING = { capabilities: { streaming: true } };
const JWT = { name: 'authorization', value: 'Bearer jwt' };
/** What the platform adds to A2A. */
const ADDED = {
  dispatch_id: 'dsp_1',
  deadline_ms: 1_000,
  attempt: 1,
  idempotency_key: 'dsp_1',
  session_context: { session_id: 'ses_1', tenant_id: 'ten_1', message_id: 'msg_1', client_message_id: 'm-1' },
};

type Body = { method: string; params: { message: Record<string, unknown>; configuration?: object; metadata?: object } };
const bodyOf = (changes: Partial<OpenDispatch> = {}): Body => dispatchBody(openDispatch(changes)) as unknown as Body;

const V1 = { supportedInterfaces: [{ url: 'http://a', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] };

describe('the version of a hosted agent', () => {
  it.each([
    [{}, '0.3'],
    [{ protocolVersion: '0.3.0' }, '0.3'],
    [{ protocolVersion: '0.2.6' }, '0.3'],
    [{ protocolVersion: '1.0' }, '1.0'],
    [{ protocolVersion: '1.0.0' }, '1.0'],
    [V1, '1.0'],
    [{ protocolVersion: '0.3.0', ...V1 }, '0.3'],
    [{ supportedInterfaces: [...V1.supportedInterfaces, { protocolVersion: '0.3' }] }, '0.3'],
    [{ supportedInterfaces: [...V1.supportedInterfaces, { protocolBinding: 'GRPC', protocolVersion: '0.3' }] }, '1.0'],
    [{ supportedInterfaces: [{ protocolBinding: 'GRPC', protocolVersion: '1.0' }] }, '0.3'],
    [{ supportedInterfaces: [null, 5, {}] }, '0.3'],
    [{ supportedInterfaces: 'x', protocolVersion: 3 }, '0.3'],
  ])('%j speaks %s', (card, version) => {
    expect(versionOf(card as Record<string, unknown>)).toBe(version);
  });
});

describe('the request to a hosted agent', () => {
  it('is a blocking message/send in the session as context, with the dispatch in its metadata', () => {
    expect(bodyOf()).toMatchObject({
      jsonrpc: '2.0',
      method: 'message/send',
      params: {
        message: { kind: 'message', role: 'user', contextId: 'ses_1', parts: [{ kind: 'text', text: 'book it' }] },
        configuration: { blocking: true },
        metadata: { [URI]: ADDED },
      },
    });
    expect(Object.keys(bodyOf())).toEqual(['jsonrpc', 'id', 'method', 'params']);
    expect(bodyOf().params.message).not.toHaveProperty('taskId');
  });

  it('has the dispatch beside its params for an agent whose card names the extension', () => {
    const body = bodyOf({ agent_card: DISPATCHES });
    expect(body).toMatchObject({ jsonrpc: '2.0', method: 'message/send', ...ADDED });
    expect(body.params).not.toHaveProperty('metadata');
    expect(refusalOf(body)).toMatchObject({ code: -32600 });
  });

  it.each([
    {},
    { capabilities: null },
    { capabilities: { extensions: 'x' } },
    { capabilities: { extensions: [null, 5, { uri: 'urn:agent-fleet:dispatch:2' }] } },
  ])('is strict JSON-RPC for an agent with the card %j', (agent_card) => {
    expect(bodyOf({ agent_card: agent_card as OpenDispatch['agent_card'] })).not.toHaveProperty('dispatch_id');
  });

  it("has the platform's own word in the metadata, whatever the caller says", () => {
    const open = openDispatch();
    open.payload.params.metadata = { city: 'Rome', [URI]: { attempt: 9 } };
    expect(dispatchBody(open)).toMatchObject({ params: { metadata: { city: 'Rome', [URI]: { attempt: 1 } } } });
  });

  it.each([
    ['0.3', {}],
    ['0.3, with streams', STREAMING],
    ['1.0', V1],
    ['1.0, with streams', { ...V1, ...STREAMING }],
  ])('is taken by a strict server of %s', (_, agent_card) => {
    const open = openDispatch({ agent_card });
    const parts = [
      { kind: 'text' as const, text: 'x', metadata: { mediaType: 'text/markdown' } },
      { kind: 'data' as const, data: { n: 1 } },
      { kind: 'file' as const, file: { bytes: 'aGk=', name: 'a', mimeType: 'text/plain' } },
    ];
    const configuration = { acceptedOutputModes: ['text/plain'] };
    const resolution = { request_id: 'req_1', resolution: 'submitted', data: { city: 'Rome' } };
    open.payload.params = { message: { ...open.payload.params.message, parts }, configuration, metadata: { a: 1 } };
    const answered = openDispatch({ agent_card, remote_task_id: 't9', remote_context_id: 'c9' });
    answered.payload.params.metadata = { resolution };
    const bodies = [
      dispatchBody(open),
      dispatchBody(answered),
      taskBody(open, 'get', 't1'),
      taskBody(open, 'cancel', 't1'),
    ];
    expect(bodies.map(refusalOf)).toEqual(bodies.map(() => undefined));
  });

  it('streams where the card says so', () => {
    expect(canStream({ capabilities: { streaming: 'yes' } })).toBe(false);
    const body = bodyOf({ agent_card: { capabilities: { streaming: true } } });
    expect(body.method).toBe('message/stream');
    expect(body.params).not.toHaveProperty('configuration');
  });

  it('is spelled as 1.0 for an agent of that version', () => {
    const parts = [
      { kind: 'text' as const, text: 'x' },
      { kind: 'data' as const, data: { n: 1 } },
      { kind: 'file' as const, file: { uri: 'https://example.com/a', name: 'a', mimeType: 'text/plain' } },
      { kind: 'file' as const, file: { bytes: 'aGk=' } },
    ];
    const open = openDispatch({ agent_card: V1 });
    open.payload.params.message.parts = parts;
    expect(dispatchBody(open)).toMatchObject({
      method: 'SendMessage',
      params: {
        message: {
          messageId: 'msg_1',
          role: 'ROLE_USER',
          contextId: 'ses_1',
          parts: [
            { text: 'x' },
            { data: { n: 1 } },
            { url: 'https://example.com/a', filename: 'a', mediaType: 'text/plain' },
            { raw: 'aGk=' },
          ],
        },
        configuration: { returnImmediately: false },
      },
    });
    expect((dispatchBody(open) as unknown as Body).params.message).not.toHaveProperty('kind');
    expect(bodyOf({ agent_card: { ...V1, capabilities: { streaming: true } } }).method).toBe('SendStreamingMessage');
    expect(hostedHeaders(open, JWT)).toMatchObject({ 'a2a-version': '1.0', authorization: 'Bearer jwt' });
    expect(taskBody(open, 'get', 't1')).toMatchObject({ method: 'GetTask', params: { id: 't1' } });
    expect(taskBody(openDispatch(), 'cancel', 't1')).toMatchObject({ method: 'tasks/cancel', params: { id: 't1' } });
  });

  it.each([
    [{ resolution: 'submitted', data: { text: 'Rome' } }, [{ kind: 'text', text: 'Rome' }]],
    [{ resolution: 'submitted', data: { city: 'Rome' } }, [{ kind: 'data', data: { city: 'Rome' } }]],
    [{ resolution: 'confirmed' }, [{ kind: 'text', text: 'confirmed' }]],
    [
      { resolution: 'rejected', comment: 'too dear' },
      [
        { kind: 'text', text: 'rejected' },
        { kind: 'text', text: 'too dear' },
      ],
    ],
    [
      { resolution: 'declined', data: { why: 'late' } },
      [
        { kind: 'text', text: 'declined' },
        { kind: 'data', data: { why: 'late' } },
      ],
    ],
  ])('goes on with the task that asked: %j', (resolution, parts) => {
    const open = openDispatch({ remote_task_id: 't9', remote_context_id: 'c9' });
    open.payload.params.metadata = { resolution: { request_id: 'req_1', ...resolution } };
    const { params } = dispatchBody(open) as unknown as Body;
    expect(params.message).toMatchObject({ taskId: 't9', contextId: 'c9', messageId: 'msg_1:req_1', parts });
    expect(params.metadata).toMatchObject({ resolution });
  });

  it('repeats the whole message with the answer for an agent that has no task of it', () => {
    const open = openDispatch();
    open.payload.params.metadata = { resolution: { request_id: 'req_1', resolution: 'confirmed' } };
    expect((dispatchBody(open) as unknown as Body).params.message.parts).toEqual([{ kind: 'text', text: 'book it' }]);
  });

  it('leaves out baggage that no header can carry', () => {
    const open = openDispatch();
    open.payload.session_context.propagation_headers.baggage = 'a=ü\n';
    expect(hostedHeaders(open, JWT)).not.toHaveProperty('baggage');
    expect(hostedHeaders(openDispatch(), JWT).baggage).toBe('a=b');
  });
});

const at = (...urls: string[]) => ({ supportedInterfaces: urls.map((url) => ({ url, protocolBinding: 'JSONRPC' })) });

it.each<[string, string, object, string]>([
  ['no address', 'http://a.example/', {}, 'http://a.example/'],
  ['another path', 'http://a.example', at('http://a.example/a2a/jsonrpc'), 'http://a.example/a2a/jsonrpc'],
  ['its own path', 'http://a.example/rpc', at('http://a.example/v1', 'http://a.example/rpc/'), 'http://a.example/rpc'],
  ['its own path behind a proxy', 'https://a.example/rpc', at('http://10.0.0.1:8080/rpc'), 'https://a.example/rpc'],
  ['another origin', 'https://a.example/', at('http://169.254.169.254/rpc'), 'https://a.example/'],
  ['a 0.3 address', 'http://a.example/', { url: 'http://a.example/rpc' }, 'http://a.example/rpc'],
  ['gRPC', 'http://a.example/', { url: 'http://a.example/grpc', preferredTransport: 'GRPC' }, 'http://a.example/'],
  ['nonsense', 'http://a.example/', { supportedInterfaces: [null, { url: 7 }, { url: 'x' }] }, 'http://a.example/'],
])('a card that names %s: %s', (_what, public_url, agent_card, called) => {
  expect(callUrl({ public_url, agent_card: agent_card as Record<string, unknown> })).toBe(called);
});
