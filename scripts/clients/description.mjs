/**
 * The operations of the platform's OpenAPI document as methods of a client, which the clients of both SDKs are generated from. As a program,
 * it prints them and their schemas as JSON.
 */
import { pathToFileURL } from 'node:url';
import { openApiDocument } from '../../dist/contracts/api/openapi.js';

/** `/send` is `client.send`, `client.stream` and `client.tasks`; the WebSocket of agents is `Agent`. A test holds that there are no others. */
const NOT_GENERATED = ['send', 'sendToType', 'connectAgent'];
/** The last words of paths that may be called again after a lost answer: they only read, or a repeat changes nothing more. */
const REPEATABLE =
  /^(get|pending|query|test_policy|backtest|update|set|allow_type|disallow_type|heartbeat|ingest|refresh)(_|$)/;
/** Groups that are not called as the first word of their paths. */
const GROUPS = { knowledge_base: 'knowledge' };

const { paths, components } = openApiDocument('');
/** JSON Schemas by name: those of the document, and the request and the answer of each method. */
export const schemas = { ...components.schemas };
/** The methods in the order of the document. Their names and parameters are written as on the wire. */
export const methods = Object.entries(paths).flatMap(([path, operations]) =>
  Object.entries(operations)
    .filter(([, { operationId }]) => !NOT_GENERATED.includes(operationId))
    .map(([verb, operation]) => methodOf(path, verb.toUpperCase(), operation)),
);

/** `get_by_id` → `GetById` */
export function pascalCase(name) {
  return name.replace(/(?:^|_)([a-z0-9])/g, (_all, first) => first.toUpperCase());
}

function methodOf(path, verb, operation) {
  const { operationId, tags, summary, requestBody, responses, parameters = [], security } = operation;
  const [[bodyType, body] = []] = Object.entries(requestBody?.content ?? {});
  const [[answerType, answer]] = Object.entries(responses[200].content);
  const answers = { 'text/event-stream': 'events', 'application/jsonl': 'lines' }[answerType] ?? 'json';
  // `/sessions/get_by_id` is `sessions.get_by_id`. Paths of one word and of other standards are named by their tag and operation.
  const [first, ...rest] = path.split('/').filter((word) => word !== '' && !word.startsWith('{'));
  const isNamedByPath = rest.length > 0 && verb === 'POST' && !path.includes('.');
  const group = isNamedByPath ? (GROUPS[first] ?? first) : tags[0].toLowerCase();
  const name = isNamedByPath ? rest.join('_') : operationId.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const named = (ending, schema) => {
    const key = pascalCase(`${group}_${name}`) + ending;
    schemas[key] = schema;
    return key;
  };
  const request = body?.schema ?? queryOf(parameters);
  const scopes = security.flatMap(({ bearer }) => bearer ?? []);
  const access = scopes.length === 0 ? 'Needs no token.' : `Needs the scope \`${scopes[0]}\`.`;
  return {
    group,
    name,
    verb,
    path,
    parameters: parameters.filter((one) => one.in === 'path').map((one) => one.name),
    request: request && named('Request', request),
    response: named(answers === 'json' ? 'Response' : 'Item', answer.schema),
    answers,
    form: bodyType === 'application/x-www-form-urlencoded',
    isPublic: security.length === 0,
    retry: verb === 'GET' || REPEATABLE.test(path.split('/').at(-1)),
    sentences: [
      `${summary.replace(/\.?$/, '.')} \`${verb} ${path}\`. ${operation.description ?? access}`,
      ...(operation['x-experimental'] ? ['An extension of the specification, which may change without notice.'] : []),
      ...(operation['x-sunset'] ? [`@deprecated It ends on ${operation['x-sunset']}.`] : []),
    ],
  };
}

/** The query as an object; the versions of A2A are no part of it. */
function queryOf(parameters) {
  const query = parameters.filter((one) => one.in === 'query' && one.name !== 'A2A-Version');
  if (query.length === 0) return null;
  return { type: 'object', properties: Object.fromEntries(query.map(({ name, schema }) => [name, schema])) };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) console.log(JSON.stringify({ methods, schemas }));
