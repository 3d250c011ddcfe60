/**
 * Writes the generated part of the TypeScript client: the types with openapi-typescript, and a class for each group of operations. Its
 * sister openapi-fetch is left out: it would add 6.6 kB, and its calls are by path and not by name. `--check` writes nothing and fails where
 * a file is not current.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import openapiTS, { astToString } from 'openapi-typescript';
import ts from 'typescript';
import { A2A_TYPES, asIs, camelCase } from './as-is.mjs';
import { methods, pascalCase, schemas } from './description.mjs';

const FOLDER = join(import.meta.dirname, '..', '..', 'sdk', 'client', 'generated');
const HEAD = '// Generated from contracts/ by `npm run clients`.';
const requests = new Set(methods.map(({ request }) => request));

/** The schemas as types. Those of A2A are the SDK's own. */
async function typesText() {
  const info = { title: 'types', version: '1' };
  const document = { openapi: '3.1.0', info, paths: {}, components: { schemas: camelCased(schemas) } };
  const nodes = await openapiTS(document, { defaultNonNullable: false, silent: true, postTransform: openEnumeration });
  const components = nodes.find(({ name }) => name.text === 'components');
  const types = components.members.find(({ name }) => name.text === 'schemas').type.members;
  const texts = types
    .filter(({ name }) => !A2A_TYPES.includes(name.text))
    .map(({ name, type }) => `export type ${name.text} = ${astToString(type).trim()};\n`);
  return `${HEAD}
import type { Task } from '../../../contracts/a2a/a2a.js';
import type { Artifact, Part } from '../../../contracts/a2a/parts.js';
import type { Open } from '../api/open.js';

${texts.join('\n').replace(/components\["schemas"\]\["(\w+)"\]/g, '$1')}`;
}

/** The schemas with the names of members in camelCase. */
function camelCased(named) {
  const rename = (members) => Object.fromEntries(Object.entries(members).map(([key, one]) => [camelCase(key), one]));
  return JSON.parse(JSON.stringify(named), (key, value) => {
    if (key === 'properties') return rename(value);
    return key === 'required' && Array.isArray(value) ? value.map(camelCase) : value;
  });
}

/** Of an answer, a newer platform may add values to an enumeration. */
function openEnumeration(type, { path }) {
  const isText = (one) => ts.isIdentifier(one) && one.text.startsWith('"'); // as openapi-typescript writes a text
  const isEnumeration = ts.isUnionTypeNode(type) && type.types.every(isText);
  if (!isEnumeration || requests.has(path.split('/')[3])) return undefined;
  return ts.factory.createTypeReferenceNode('Open', [type]);
}

/** A class for each group, and all groups as one class. */
function operationsText() {
  const groups = [...new Set(methods.map(({ group }) => group))];
  const classes = groups.map((group) => groupText(methods.filter((method) => method.group === group)));
  return `${HEAD}
import { ApiGroup, type CallOptions, segment } from '../api/api-group.js';
import type { PlatformApi } from '../api/platform-api.js';
import type * as types from './schema-types.js';

${classes.join('\n\n')}

/** The operations of the platform's API: the first word of a path is a property, the rest is its method. */
export class Operations {
${groups.map((group) => `  readonly ${group}: ${pascalCase(group)}Operations;`).join('\n')}

  constructor(api: PlatformApi) {
${groups.map((group) => `    this.${group} = new ${pascalCase(group)}Operations(api);`).join('\n')}
  }
}
`;
}

function groupText(group) {
  const paths = [...new Set(group.map(({ path }) => `\`/${path.split('/')[1]}\``))];
  return `/** ${paths.join(', ')}: a method for each operation. */
export class ${pascalCase(group[0].group)}Operations extends ApiGroup {
${group.map(methodText).join('\n\n')}
}`;
}

function methodText({ name, verb, path, parameters, request, response, answers, sentences, ...method }) {
  const { anyOf, oneOf, required = [], properties = {} } = schemas[request] ?? {};
  const hasForms = Boolean(anyOf ?? oneOf);
  const hasRequest = hasForms || Object.keys(properties).length > 0;
  const given = parameters.map((parameter) => `${camelCase(parameter)}: string`);
  if (hasRequest) given.push(`request: types.${request}${hasForms || required.length > 0 ? '' : ' = {}'}`);
  const call = { json: 'invoke', events: 'invokeStream', lines: 'invokeLines' }[answers];
  const pathText = path.replace(/\{(\w+)\}/g, (_all, parameter) => `\${segment({ ${camelCase(parameter)} })}`);
  const fields = [
    ...(verb === 'GET' ? [`verb: 'GET'`] : []),
    parameters.length > 0 ? `path: \`${pathText}\`` : `path: '${path}'`,
    ...['form', 'isPublic', 'retry'].filter((key) => method[key]).map((key) => `${key}: true`),
    ...Object.entries({ requestAsIs: request && asIs(schemas[request]), responseAsIs: asIs(schemas[response]) })
      .filter(([, places]) => places)
      .map(([key, places]) => `${key}: ${JSON.stringify(places)}`),
  ];
  return `  /**
${sentences.map((line) => `   * ${line}`).join('\n')}
   */
  ${camelCase(name)}(${[...given, 'options: CallOptions = {}'].join(', ')}): ${answers === 'json' ? 'Promise' : 'AsyncGenerator'}<types.${response}> {
    return this.${call}({ ${fields.join(', ')} }, ${hasRequest ? 'request' : '{}'}, options);
  }`;
}

for (const [name, text] of Object.entries({
  'schema-types.ts': await typesText(),
  'operations.ts': operationsText(),
})) {
  const path = join(FOLDER, name);
  if (!process.argv.includes('--check')) writeFileSync(path, text);
  else if (readFileSync(path, 'utf8') !== text) throw new Error(`${path} is not current: npm run clients`);
}
