/** The operations of the OpenAPI document, as methods of the SDK's client. */
import { camelCase } from './type-text.mjs';

/** `/send` is `client.send`, `client.stream` and `client.tasks`; the WebSocket of agents is `Agent`. A test holds that there are no others. */
const NOT_GENERATED = ['send', 'sendToType', 'connectAgent'];

/**
 * The last words of operations that may be repeated when it is unknown whether they took effect: they only read, or a repeat changes nothing
 * more.
 */
const REPEATABLE = /^(get|pending|query|test_policy|update|set|allow_type|disallow_type|heartbeat|ingest|refresh)(_|$)/;

/**
 * @typedef {object} Method
 * @property {string} operationId
 * @property {string} group the property of the client: the first word of the path, or its name in `GROUPS`
 * @property {string} name the rest of the path
 * @property {'GET' | 'POST'} verb
 * @property {string} path with `{name}` for parameters
 * @property {string[]} parameters in the path
 * @property {object | null} request JSON Schema of the body, or of the query of a GET
 * @property {object} response JSON Schema of the answer, or of one item of a stream
 * @property {'json' | 'events' | 'lines'} answers
 * @property {boolean} form whether the body is a form
 * @property {boolean} isPublic whether it needs no token
 * @property {boolean} repeatable
 * @property {string} summary
 * @property {string} access a sentence about who may call it
 * @property {boolean} isExperimental
 * @property {string | undefined} sunset when it ends
 */

/** @returns {Method[]} in the order of the document */
export function methodsOf({ paths }) {
  const taken = new Set();
  const methods = [];
  for (const [path, operations] of Object.entries(paths)) {
    for (const [verb, operation] of Object.entries(operations)) {
      if (NOT_GENERATED.includes(operation.operationId)) continue;
      const place = placeOf(path, operation);
      const name = taken.has(`${place.group}.${place.name}`) ? operation.operationId : place.name;
      taken.add(`${place.group}.${name}`);
      methods.push({ ...place, name, ...methodOf(path, verb, operation) });
    }
  }
  return methods;
}

/** Groups that are not called as the first word of their paths. */
export const GROUPS = { knowledge_base: 'knowledge' };

/** `/sessions/get_by_id` is `sessions.getById`. Paths of one word or with a dot are named by their tag and operation. */
function placeOf(path, { tags, operationId }) {
  const [group, ...rest] = path.split('/').filter((word) => word !== '' && !word.startsWith('{'));
  if (rest.length === 0 || path.includes('.'))
    return { group: camelCase(tags[0].toLowerCase().replaceAll(' ', '_')), name: operationId };
  return { group: camelCase(GROUPS[group] ?? group), name: camelCase(rest.join('_')) };
}

function methodOf(path, verb, operation) {
  const { operationId, summary, requestBody, responses, parameters = [], security } = operation;
  const [[bodyType, body] = []] = Object.entries(requestBody?.content ?? {});
  const [[answerType, { schema: response }]] = Object.entries(responses[200].content);
  return {
    operationId,
    verb: verb.toUpperCase(),
    path,
    parameters: parameters.filter((one) => one.in === 'path').map((one) => camelCase(one.name)),
    request: body?.schema ?? queryOf(parameters),
    response,
    answers: { 'text/event-stream': 'events', 'application/jsonl': 'lines' }[answerType] ?? 'json',
    form: bodyType === 'application/x-www-form-urlencoded',
    isPublic: security.length === 0,
    repeatable: verb === 'get' || REPEATABLE.test(path.split('/').at(-1)),
    summary,
    access: accessOf(security, operation.description),
    isExperimental: operation['x-experimental'] === true,
    sunset: operation['x-sunset'],
  };
}

/** The query as an object; headers and versions of A2A are no part of it. */
function queryOf(parameters) {
  const query = parameters.filter((one) => one.in === 'query' && one.name !== 'A2A-Version');
  if (query.length === 0) return null;
  return { type: 'object', properties: Object.fromEntries(query.map(({ name, schema }) => [name, schema])) };
}

function accessOf(security, description) {
  if (description) return description;
  const scopes = security.flatMap(({ bearer }) => bearer ?? []);
  return scopes.length === 0 ? 'Needs no token.' : `Needs the scope \`${scopes[0]}\`.`;
}
