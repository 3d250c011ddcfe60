import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { flatProperty } from '../../contracts/forms/flat-schema.js';
import { shapeProblem } from '../../contracts/forms/form-shape.js';
import { isObject } from '../../contracts/json-guard.js';
import type { InputRequestRow } from '../read/rows.js';

/**
 * Compiles the flat part of a form's JSON Schema: named properties of simple types. It has no references and no regular expressions, because
 * an agent could write one that never ends.
 */
function compile(schema: Record<string, unknown>, allErrors = false): ValidateFunction {
  const properties = isObject(schema.properties) ? Object.entries(schema.properties) : [];
  return new Ajv({ allErrors, strict: false, validateFormats: false, addUsedSchema: false }).compile({
    type: 'object',
    properties: Object.fromEntries(properties.map(([name, property]) => [name, flatProperty(property).schema])),
    ...(Array.isArray(schema.required) && { required: schema.required }),
    ...(typeof schema.additionalProperties === 'boolean' && { additionalProperties: schema.additionalProperties }),
  });
}

/** Why a form's schema cannot be used; null when it can. */
export function schemaProblem(schema: Record<string, unknown>): string | null {
  const problem = shapeProblem(schema);
  if (problem !== null) return problem;
  try {
    compile(schema);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

type Form = Pick<InputRequestRow, 'schema' | 'fields'>;

/** How many values of an enum an error lists, and with how many characters at most. */
const [SHOWN_VALUES, SHOWN_CHARS] = [20, 300];

/** Values that are allowed, as an error names them. */
function shownValues(values: readonly unknown[]): string {
  const text = values
    .slice(0, SHOWN_VALUES)
    .map((value) => JSON.stringify(value))
    .join(', ')
    .slice(0, SHOWN_CHARS);
  return values.length > SHOWN_VALUES || text.length === SHOWN_CHARS ? `${text}, …` : text;
}

/** The values that an error of Ajv allows; undefined for one that is not about values. */
function allowedBy({ params }: ErrorObject): unknown[] | undefined {
  return 'allowedValue' in params ? [params.allowedValue] : params.allowedValues;
}

/** Problems that an error lists at most. */
const SHOWN_PROBLEMS = 10;

/** All reasons why `data` does not fit the form; null when it fits. Without a schema `fields` lists the permitted names, and the values of choices. */
export function formProblem({ schema, fields }: Form, data: Record<string, unknown>): string | null {
  const problems = schema ? schemaProblems(schema, data) : fieldProblems(fields ?? [], fields ? data : {});
  if (problems.length === 0) return null;
  const more = problems.length > SHOWN_PROBLEMS ? [`${problems.length - SHOWN_PROBLEMS} more`] : [];
  return [...problems.slice(0, SHOWN_PROBLEMS), ...more].join('; ');
}

function schemaProblems(schema: Record<string, unknown>, data: Record<string, unknown>): string[] {
  const validate = compile(schema, true);
  if (validate(data)) return [];
  return (validate.errors ?? []).map((error) => {
    const allowed = allowedBy(error);
    const why = allowed ? `must be one of ${shownValues(allowed)}` : (error.message ?? 'does not fit the schema');
    return `${error.instancePath.slice(1) || 'data'} ${why}`;
  });
}

function fieldProblems(fields: NonNullable<Form['fields']>, data: Record<string, unknown>): string[] {
  const byId = new Map(fields.map((field) => [field.id, field]));
  return Object.entries(data).flatMap(([name, value]) => {
    const field = byId.get(name);
    if (!field) return [`${name} is not a field of the form`];
    const options = field.options?.map((option) => JSON.stringify(option)) ?? [];
    if (options.length === 0 || options.includes(JSON.stringify(value))) return [];
    return [`${name} must be one of ${shownValues(field.options ?? [])}`];
  });
}

const TRUTH: ReadonlyMap<string, boolean> = new Map([
  ...['true', 'yes', 'on'].map((word) => [word, true] as const),
  ...['false', 'no', 'off'].map((word) => [word, false] as const),
]);

/** Text as the value of a field: one of its choices, a number or a truth value where the field takes that, else the text. */
function valueOfText(text: string, { enum: choices, type }: Record<string, unknown>): unknown {
  const word = text.trim();
  const choice = Array.isArray(choices) ? choices.find((one) => String(one) === word) : undefined;
  if (choice !== undefined) return choice;
  const types: unknown[] = [type].flat();
  if ((types.includes('number') || types.includes('integer')) && word !== '' && Number.isFinite(Number(word)))
    return Number(word);
  return (types.includes('boolean') ? TRUTH.get(word.toLowerCase()) : undefined) ?? text;
}

/** Plain text as the answer to a form: the value of its field where it has one, otherwise `{text}`. */
export function dataOfText({ schema, fields }: Form, text: string): Record<string, unknown> {
  const properties = isObject(schema?.properties) ? Object.entries(schema.properties) : [];
  const listed = (schema ? [] : (fields ?? [])).map(({ id, options }) => [id, options && { enum: options }] as const);
  const [only, ...others] = [...properties, ...listed];
  if (!only || others.length > 0) return { text };
  const [name, property] = only;
  return { [name]: valueOfText(text, flatProperty(property).schema) };
}

/** What is wrong with an answer to a form. */
export interface FormProblem {
  /** Absent if the problem is not about one field. */
  field?: string;
  /** A sentence for the person who fills it in. */
  text: string;
}

const TYPE_TEXTS: Record<string, string> = {
  number: 'A number is needed.',
  integer: 'A whole number is needed.',
};
/** What an error of Ajv says to a person, by its keyword; `{limit}` is that of the schema. */
const PROBLEM_TEXTS: Record<string, string> = {
  required: 'This is needed.',
  enum: 'One of these is needed:',
  const: 'This is needed:',
  minimum: 'At least {limit} is needed.',
  maximum: 'At most {limit} is allowed.',
  exclusiveMinimum: 'More than {limit} is needed.',
  exclusiveMaximum: 'Less than {limit} is needed.',
  multipleOf: 'A multiple of {limit} is needed.',
  minLength: 'At least {limit} characters are needed.',
  maxLength: 'At most {limit} characters are allowed.',
  minItems: 'At least {limit} values are needed.',
  maxItems: 'At most {limit} values are allowed.',
  uniqueItems: 'Each value may stand here once only.',
};

function problemText(error: ErrorObject): string {
  const { keyword, params, message } = error;
  const allowed = allowedBy(error);
  if (allowed) return `${PROBLEM_TEXTS[keyword]} ${shownValues(allowed)}.`;
  if (keyword === 'type') return TYPE_TEXTS[params.type] ?? `It ${message}.`;
  const text = PROBLEM_TEXTS[keyword] ?? `It ${message}.`;
  return text.replace('{limit}', String(params.limit ?? params.multipleOf));
}

function problemOf(error: ErrorObject): FormProblem {
  const [, pointer] = error.instancePath.split('/');
  const field = error.keyword === 'required' ? error.params.missingProperty : pointer;
  const text = problemText(error);
  return field === undefined ? { text } : { field: field.replaceAll('~1', '/').replaceAll('~0', '~'), text };
}

/** The problems of an answer to a form with a schema, in sentences for the person who fills it in. Of each field only the first is given. */
export function formProblems(
  { schema }: { schema?: Record<string, unknown> | undefined },
  data: Record<string, unknown>,
): FormProblem[] {
  if (!schema) return [];
  const validate = compile(schema, true);
  if (validate(data)) return [];
  const problems = (validate.errors ?? []).map(problemOf);
  return problems.filter(({ field }, index) => problems.findIndex((other) => other.field === field) === index);
}
