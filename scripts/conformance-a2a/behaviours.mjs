/** How the agent answers a message, by the prefix of the kit's `messageId`. */

const text = (content) => ({ kind: 'text', text: content });
const artifact = (...parts) => ({ artifact: { artifactId: 'output', parts } });
const WORKING = { state: 'working' };
const COMPLETED = { state: 'completed' };
const FILE = { name: 'output.txt', mimeType: 'text/plain' };
/** Duration of an ordinary answer. */
const WORK_MS = 500;
/** Twice the default time that the kits wait for an event. */
const LONG_MS = 5_000;

const RESUBSCRIBED = 'test-resubscribe-message-id';

const chunk = (content, flags) => ({ ...artifact(text(content)), ...flags });
const oneArtifact = (...parts) => [WORKING, artifact(...parts), COMPLETED];

/** The longest matching prefix applies. */
const BY_PREFIX = {
  'tck-complete-task': [{ state: 'completed', message: [text('Hello from TCK')] }],
  'tck-artifact-text': oneArtifact(text('Generated text content')),
  'tck-artifact-file': oneArtifact({ kind: 'file', file: { ...FILE, bytes: 'dGNr' } }),
  'tck-artifact-file-url': oneArtifact({ kind: 'file', file: { ...FILE, uri: 'https://example.com/output.txt' } }),
  'tck-artifact-data': oneArtifact({ kind: 'data', data: { key: 'value', count: 42 } }),
  'tck-message-response': [{ reply: [text('Direct message response')] }],
  'tck-input-required': [{ state: 'input-required', message: [text('What else?')] }],
  'tck-reject-task': [{ state: 'rejected', message: [text('rejected')] }],
  'tck-stream-001': oneArtifact(text('Stream hello from TCK')),
  'tck-stream-002': [COMPLETED],
  'tck-stream-003': oneArtifact(text('Stream task lifecycle')),
  'tck-stream-ordering-001': oneArtifact(text('Ordered output')),
  'tck-stream-artifact-text': oneArtifact(text('Streamed text content')),
  'tck-stream-artifact-file': oneArtifact({ kind: 'file', file: { ...FILE, bytes: 'dGNr' } }),
  'tck-stream-artifact-chunked': [
    WORKING,
    chunk('chunk-1 ', { append: false }),
    chunk('chunk-2', { append: true, lastChunk: true }),
    COMPLETED,
  ],
  [RESUBSCRIBED]: [WORKING, { waitMs: LONG_MS }, COMPLETED],
};

/** Works for a while, so that a test can observe the working task, then echoes and waits for input: the 0.3 kit continues or cancels such tasks. */
function echo(parts) {
  const content = parts.map((part) => part.text ?? part.kind).join(' ');
  const question = { state: 'input-required', message: [text('What else?')] };
  return [WORKING, { waitMs: WORK_MS }, artifact(text(`You said: ${content}`)), question];
}

/** The 1.0 kit sends these messages to a waiting task, and then one that ends it. */
const KEEPS_WAITING = /^TCK history message/;

function answerTo(parts) {
  const waits = parts.some((part) => KEEPS_WAITING.test(part.text));
  return BY_PREFIX[waits ? 'tck-input-required' : 'tck-complete-task'];
}

/**
 * The steps of the answer to one dispatch.
 * @param {{ params: { message: { taskId?: string, parts: object[] } }, session_context: { client_message_id: string } }} dispatch
 */
export function behaviourFor({ params: { message }, session_context: { client_message_id: messageId } }) {
  if (!messageId.startsWith('tck-') && !messageId.startsWith(RESUBSCRIBED)) return echo(message.parts);
  if (message.taskId !== undefined) return answerTo(message.parts);
  const prefixes = Object.keys(BY_PREFIX).filter((prefix) => messageId.startsWith(prefix));
  const [longest = 'tck-complete-task'] = prefixes.sort((a, b) => b.length - a.length);
  return BY_PREFIX[longest];
}
