/**
 * Generates the part of the SDK's client that follows from `contracts/`: `sdk/client/generated/`, a class for each group of operations of
 * `/openapi.json`. `prepare` and the build run it; the files are not in the repository.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as esbuild from 'esbuild';
import { asIs } from './as-is.mjs';
import { methodsOf } from './operations.mjs';
import { A2A_TYPES, camelCase, pascalCase, typeText } from './type-text.mjs';

const FOLDER = join('sdk', 'client', 'generated');
const HEAD = '// Generated from contracts/ by scripts/client/generate.mjs; not in the repository.';

/**
 * Writes the files that are missing or stale.
 * @param {string} root the checkout
 */
export async function generateClient(root) {
  const folder = join(root, FOLDER);
  const files = clientFiles(await openApi(root));
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) if (!(name in files)) rmSync(join(folder, name));
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    if (!existsSync(path) || readFileSync(path, 'utf8') !== text) writeFileSync(path, text);
  }
}

/** The OpenAPI document, from the sources. */
async function openApi(root) {
  const { outputFiles } = await esbuild.build({
    absWorkingDir: root,
    entryPoints: ['contracts/api/openapi.ts'],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
  });
  const code = Buffer.from(outputFiles[0].contents).toString('base64');
  const { openApiDocument } = await import(`data:text/javascript;base64,${code}`);
  return openApiDocument('http://localhost');
}

/** @returns {Record<string, string>} text by file name */
function clientFiles(document) {
  const { schemas } = document.components;
  const groups = Map.groupBy?.(methodsOf(document), ({ group }) => group) ?? grouped(methodsOf(document));
  const models = Object.keys(schemas).filter((name) => !(name in A2A_TYPES));
  const files = {
    'models.ts': modelsText(models, schemas),
    'operations.ts': operationsText(groups),
    'exported-types.ts': `${HEAD}\n${['models', ...groups.keys()].map((name) => `export type * from './${fileName(name)}.js';`).join('\n')}\n`,
  };
  for (const [group, methods] of groups) files[`${fileName(group)}.ts`] = groupText(group, methods, schemas);
  return files;
}

/** `Map.groupBy` of Node 21. */
function grouped(methods) {
  const groups = new Map();
  for (const method of methods) groups.set(method.group, [...(groups.get(method.group) ?? []), method]);
  return groups;
}

const fileName = (group) => group.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

function modelsText(models, schemas) {
  const types = models.map((name) => `export type ${name} = ${typeText(schemas[name], 'output')};`);
  return withImports(types.join('\n\n'), []);
}

/** All groups as one class, and the method of each operation. */
function operationsText(groups) {
  const names = [...groups.keys()];
  const imports = names.map((group) => `import { ${className(group)} } from './${fileName(group)}.js';`);
  const methods = [...groups.values()].flat();
  const table = methods.map(({ operationId, group, name }) => `  ${operationId}: '${group}.${name}',`);
  return `${HEAD}
import type { PlatformApi } from '../api/platform-api.js';
${imports.join('\n')}

/** The operations of the platform's API: the first word of a path is a property, the rest is its method. */
export class Operations {
${names.map((group) => `  readonly ${group}: ${className(group)};`).join('\n')}

  constructor(api: PlatformApi) {
${names.map((group) => `    this.${group} = new ${className(group)}(api);`).join('\n')}
  }
}

/** The method of each operation, by the operation's id. */
export const METHODS: Readonly<Record<string, string>> = {
${table.join('\n')}
};
`;
}

const className = (group) => `${pascalCase(group)}Operations`;

function groupText(group, methods, schemas) {
  const prefix = pascalCase(group);
  const types = methods.flatMap((method) => methodTypes(prefix, method));
  const code = methods.map((method) => methodText(prefix, method, schemas));
  const paths = [...new Set(methods.map(({ path }) => `/${path.split('/')[1]}`))];
  const text = `${types.join('\n')}

/** ${paths.map((path) => `\`${path}\``).join(', ')}: a method for each operation. */
export class ${className(group)} extends ApiGroup {
${code.join('\n\n')}
}`;
  return withImports(text, Object.keys(schemas));
}

const requestName = (prefix, { name }) => `${prefix}${pascalCase(name)}Request`;
const responseName = (prefix, { name, answers }) =>
  `${prefix}${pascalCase(name)}${answers === 'json' ? 'Response' : 'Item'}`;

function methodTypes(prefix, method) {
  const request =
    method.request && `export type ${requestName(prefix, method)} = ${typeText(method.request, 'input')};`;
  const response = `export type ${responseName(prefix, method)} = ${typeText(method.response, 'output')};`;
  return [request, response].filter(Boolean);
}

function methodText(prefix, method, schemas) {
  const { name, verb, path, parameters, request, response, answers, form, isPublic, repeatable } = method;
  const isEmpty = !request || (request.properties && Object.keys(request.properties).length === 0);
  const isOptional = !(request?.required?.length > 0) && !request?.anyOf && !request?.oneOf;
  const given = parameters.map((parameter) => `${parameter}: string`);
  if (!isEmpty) given.push(`request: ${requestName(prefix, method)}${isOptional ? ' = {}' : ''}`);
  given.push('options: CallOptions = {}');
  const call = { json: 'invoke', events: 'invokeStream', lines: 'invokeLines' }[answers];
  const result = responseName(prefix, method);
  const fields = Object.entries({
    verb: verb === 'POST' ? undefined : `'${verb}'`,
    path: pathText(path),
    form: form || undefined,
    isPublic: isPublic || undefined,
    retry: repeatable || undefined,
    requestAsIs: placeText(request, schemas),
    responseAsIs: placeText(response, schemas),
  }).flatMap(([key, value]) => (value === undefined ? [] : [`${key}: ${value}`]));
  return `${methodDoc(method)}
  ${name}(${given.join(', ')}): ${answers === 'json' ? 'Promise' : 'AsyncGenerator'}<${result}> {
    return this.${call}({ ${fields.join(', ')} }, ${isEmpty ? '{}' : 'request'}, options);
  }`;
}

/** A path as an expression; its parameters are arguments of the method. */
function pathText(path) {
  if (!path.includes('{')) return `'${path}'`;
  return `\`${path.replace(/\{(\w+)\}/g, (_all, name) => `\${encodeURIComponent(${camelCase(name)})}`)}\``;
}

function placeText(schema, schemas) {
  const place = schema ? asIs(schema, schemas) : undefined;
  return place === undefined ? undefined : JSON.stringify(place);
}

function methodDoc({ summary, verb, path, access, isExperimental, sunset }) {
  const lines = [
    `${summary.replace(/\.?$/, '.')} \`${verb} ${path}\`. ${access}`,
    ...(isExperimental ? ['An extension of the specification, which may change without notice.'] : []),
    ...(sunset ? [`@deprecated It ends on ${sunset}.`] : []),
  ];
  return `  /**\n${lines.map((line) => `   * ${line}`).join('\n')}\n   */`;
}

/** Adds imports for the names that the text uses. */
function withImports(text, models) {
  const uses = (name) => new RegExp(`\\b${name}\\b`).test(text);
  const names = models.filter((name) => !(name in A2A_TYPES) && uses(name));
  const imports = [
    ...(uses('ApiGroup') ? [`import { ApiGroup, type CallOptions } from '../api/api-group.js';`] : []),
    ...(uses('Open') ? [`import type { Open } from '../api/open.js';`] : []),
    ...Object.entries(A2A_TYPES).flatMap(([name, from]) =>
      uses(name) ? [`import type { ${name} } from '${from}';`] : [],
    ),
    ...(names.length > 0 ? [`import type { ${names.join(', ')} } from './models.js';`] : []),
  ];
  return `${HEAD}\n${imports.join('\n')}\n\n${text}\n`;
}
