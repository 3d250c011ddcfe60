import { rpcAddress } from '../../agents/agent-card.js';
import type { A2aMessage, A2aVersion } from '../../contracts/a2a/a2a.js';
import { messageTo1 } from '../../contracts/a2a/a2a-1-results.js';
import { DISPATCH_URI } from '../../contracts/a2a/extensions.js';
import type { Part } from '../../contracts/a2a/parts.js';
import type { OpenDispatch } from '../../messages/dispatch/dispatches.js';
import type { Resolution } from '../../messages/read/rows.js';
import type { Proof } from './agent-credentials.js';

/** What a request to a hosted agent is built from: a dispatch, or a tool call in the same form. */
export type HostedRequest = Pick<
  OpenDispatch,
  | 'tenant_id'
  | 'instance_id'
  | 'dispatch_id'
  | 'session_id'
  | 'public_url'
  | 'agent_card'
  | 'dispatch_auth'
  | 'remote_task_id'
  | 'remote_context_id'
  | 'payload'
>;

type Card = Record<string, unknown>;

/** The version to use: 1.0 if the card names it for JSON-RPC without 0.3; agents of both versions understand 0.3. */
export function versionOf(card: Card): A2aVersion {
  const interfaces: (Card | null)[] = Array.isArray(card.supportedInterfaces) ? card.supportedInterfaces : [];
  const jsonRpc = interfaces.filter((one) => (one?.protocolBinding ?? 'JSONRPC') === 'JSONRPC');
  const named = [card.protocolVersion, ...jsonRpc.map((one) => one?.protocolVersion)];
  const versions = named.filter((version) => typeof version === 'string');
  const speaks = (major: string): boolean =>
    versions.some((version) => version === major || version.startsWith(`${major}.`));
  return speaks('1') && !speaks('0') ? '1.0' : '0.3';
}

/** The URL at which the agent is called. Addresses of other origins on its card are ignored. */
export function callUrl({ public_url, agent_card }: Pick<HostedRequest, 'public_url' | 'agent_card'>): string {
  return public_url === null ? '' : (rpcAddress(public_url, agent_card) ?? public_url);
}

/** What a card says that its agent can do; anything may be in it. */
function capabilitiesOf(card: Card): { streaming?: unknown; extensions?: unknown } {
  return (card.capabilities as { streaming?: unknown; extensions?: unknown } | null | undefined) ?? {};
}

/** Whether the card says that the agent answers `message/stream`. */
export function canStream(card: Card): boolean {
  return capabilitiesOf(card).streaming === true;
}

/** Whether the card names the platform's own extension: other servers may refuse a request with members beside those of JSON-RPC. */
function takesDispatches(card: Card): boolean {
  const { extensions } = capabilitiesOf(card);
  return Array.isArray(extensions) && extensions.some((one: { uri?: unknown } | null) => one?.uri === DISPATCH_URI);
}

/** A human's answer as parts for an A2A server: the fields of a form, or the word of the decision; then the comment. */
function answerParts({ resolution, data, comment }: Resolution): Part[] {
  const fields = Object.keys(data ?? {});
  const onlyText = fields.length === 1 && typeof data?.text === 'string' ? data.text : undefined;
  const filled: Part[] = data && fields.length > 0 ? [{ kind: 'data', data }] : [];
  const text = (value: string): Part => ({ kind: 'text', text: value });
  const isForm = resolution === 'submitted' && filled.length > 0;
  const answer = isForm ? (onlyText === undefined ? filled : [text(onlyText)]) : [text(resolution), ...filled];
  return comment ? [...answer, text(comment)] : answer;
}

/**
 * The message as this agent gets it. When the agent's own task asked a question, the message continues that task, and its parts are the
 * human's answer: the agent already has the message that led to the question.
 */
function messageFor(open: HostedRequest): A2aMessage {
  const { taskId: _ours, contextId: _session, ...message } = open.payload.params.message;
  const contextId = open.remote_context_id || open.session_id;
  const resolution = open.payload.params.metadata?.resolution as Resolution | undefined;
  if (open.remote_task_id === null) return { ...message, contextId };
  const answered = resolution && {
    messageId: `${message.messageId}:${resolution.request_id}`,
    parts: answerParts(resolution),
  };
  return { ...message, ...answered, contextId, taskId: open.remote_task_id };
}

const METHODS = {
  '0.3': { send: 'message/send', stream: 'message/stream', get: 'tasks/get', cancel: 'tasks/cancel' },
  '1.0': { send: 'SendMessage', stream: 'SendStreamingMessage', get: 'GetTask', cancel: 'CancelTask' },
} as const;

/**
 * The body of the dispatch's POST. What the platform adds to A2A stands beside `params` for agents that take it there, and in the metadata for
 * all others.
 */
export function dispatchBody(open: HostedRequest): Record<string, unknown> {
  const { jsonrpc, id, method: _asked, params: given, ...dispatch } = open.payload;
  const version = versionOf(open.agent_card);
  const stream = canStream(open.agent_card);
  const message = messageFor(open);
  const blocking = version === '0.3' ? { blocking: true } : { returnImmediately: false };
  const configuration = { ...given.configuration, ...(!stream && blocking) };
  const isOurs = takesDispatches(open.agent_card);
  const params = {
    ...given,
    message: version === '0.3' ? message : messageTo1(message),
    ...(Object.keys(configuration).length > 0 && { configuration }),
    ...(!isOurs && { metadata: { ...given.metadata, [DISPATCH_URI]: dispatch } }),
  };
  return { jsonrpc, id, method: METHODS[version][stream ? 'stream' : 'send'], params, ...(isOurs && dispatch) };
}

/** The body of a request about the agent's own task, without its history. */
export function taskBody(open: HostedRequest, method: 'get' | 'cancel', taskId: string): Record<string, unknown> {
  return {
    jsonrpc: '2.0',
    id: `${open.payload.id}:${method}`,
    method: METHODS[versionOf(open.agent_card)][method],
    params: { id: taskId, ...(method === 'get' && { historyLength: 0 }) },
  };
}

/** Header values that HTTP allows; a header with another value is left out, because the request would fail. */
const HEADER_VALUE = /^[\x20-\x7e]+$/;

/** Headers of every request to a hosted agent. */
export function hostedHeaders(open: HostedRequest, { name, value }: Proof): Record<string, string> {
  const { traceparent, tracestate, baggage } = open.payload.session_context.propagation_headers;
  return {
    [name]: value,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    traceparent,
    ...(tracestate !== undefined && HEADER_VALUE.test(tracestate) && { tracestate }),
    ...(baggage !== undefined && HEADER_VALUE.test(baggage) && { baggage }),
    ...(versionOf(open.agent_card) === '1.0' && { 'a2a-version': '1.0' }),
  };
}
