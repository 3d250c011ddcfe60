/** What the agent does with a message, by the beginning of the `messageId` that the kit gave it. */

const text = (words) => ({ kind: 'text', text: words });
const artifact = (...parts) => ({ artifact: { artifactId: 'output', parts } });
const WORKING = { state: 'working' };
const COMPLETED = { state: 'completed' };
const FILE = { name: 'output.txt', mimeType: 'text/plain' };
/** What an ordinary message takes. */
const WORK_MS = 500;
/** Twice the time that the kits wait for an event by default. */
const LONG_MS = 5_000;

const RESUBSCRIBED = 'test-resubscribe-message-id';

const chunk = (words, more) => ({ ...artifact(text(words)), ...more });
const oneArtifact = (...parts) => [WORKING, artifact(...parts), COMPLETED];

/** The longest beginning that fits counts. */
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

/**
 * A while of work, so that a test may find the task at it, and an echo. The 0.3 kit goes on with such a task, or cancels it: it waits
 * for more.
 */
function echo(parts) {
  const words = parts.map((part) => part.text ?? part.kind).join(' ');
  const said = { state: 'input-required', message: [text('What else?')] };
  return [WORKING, { waitMs: WORK_MS }, artifact(text(`You said: ${words}`)), said];
}

/** The 1.0 kit sends these while a task waits, and then the one that ends it. */
const KEEPS_WAITING = /^TCK history message/;

function answerTo(parts) {
  const waits = parts.some((part) => KEEPS_WAITING.test(part.text));
  return BY_PREFIX[waits ? 'tck-input-required' : 'tck-complete-task'];
}

/**
 * The steps of the answer to one dispatch.
 * @param {{ params: { message: { taskId?: string, parts: object[] } }, session_context: { client_message_id: string } }} dispatch
 */
export function behaviourFor({ params: { message }, session_context: { client_message_id: given } }) {
  if (!given.startsWith('tck-') && !given.startsWith(RESUBSCRIBED)) return echo(message.parts);
  if (message.taskId !== undefined) return answerTo(message.parts);
  const prefixes = Object.keys(BY_PREFIX).filter((prefix) => given.startsWith(prefix));
  const [longest = 'tck-complete-task'] = prefixes.sort((one, other) => other.length - one.length);
  return BY_PREFIX[longest];
}
