/** JSON Schemas of the OpenAPI document as Python types. */

/** Names of the SDK's own types, which stand for schemas of the same name. */
const OWN_TYPES = new Set(['Part', 'Artifact']);
const SCALARS = { string: 'str', integer: 'int', number: 'float', boolean: 'bool', null: 'None' };
const KEYWORDS = new Set(['from', 'import', 'class', 'global', 'in', 'is', 'not', 'pass', 'return', 'with', 'async']);

/** Whether a member can be a Python name. */
export function isName(text) {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(text) && !KEYWORDS.has(text);
}

/** `get_by_id` → `GetById`. */
export function pascal(text) {
  return text
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

/**
 * Collects `TypedDict`s. Answers are plain dicts: members and values that a newer platform adds pass through, and an enumeration in an
 * answer is any string.
 */
export class TypeWriter {
  /** The text of each class, by name. */
  classes = new Map();
  #schemas;

  /** @param schemas the named ones of the document */
  constructor(schemas) {
    this.#schemas = schemas;
    for (const [name, schema] of Object.entries(schemas)) this.#addNamed(name, schema);
  }

  /** @param isAnswer enumerations of requests are literals, those of answers are not closed */
  typeOf(schema, name, isAnswer) {
    if (schema.$ref) return this.#reference(schema.$ref);
    if (schema.const !== undefined) return literal([schema.const]);
    if (schema.enum) return isAnswer ? 'str' : literal(schema.enum);
    const union = schema.anyOf ?? schema.oneOf;
    if (union && isAnswer && union.length > 2) return this.#merged(union, name);
    if (union) return this.#union(union.map((one, at) => this.typeOf(one, `${name}${at + 1}`, isAnswer)));
    if (Array.isArray(schema.type)) {
      return this.#union(schema.type.map((type) => this.typeOf({ ...schema, type }, name, isAnswer)));
    }
    if (schema.type === 'array') return `list[${this.typeOf(schema.items ?? {}, `${name}Item`, isAnswer)}]`;
    if (schema.type !== 'object') return SCALARS[schema.type] ?? 'Any';
    if (schema.properties && Object.keys(schema.properties).length > 0) return this.#class(schema, name, isAnswer);
    const member = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : {};
    return `dict[str, ${this.typeOf(member, `${name}Value`, isAnswer)}]`;
  }

  /** Adds the class of a named schema of the document. */
  #addNamed(name, schema) {
    if (OWN_TYPES.has(name)) return;
    if (schema.type === 'object') this.#class(schema, name, true);
    else this.#merged(schema.anyOf ?? schema.oneOf, name);
  }

  /** One class for the forms of an answer: a newer platform adds further ones. Members that all forms have are required. */
  #merged(forms, name) {
    const objects = forms.flatMap((form) => this.#objectsOf(form));
    if (objects.some((form) => form.type !== 'object')) return 'Any';
    const keys = [...new Set(objects.flatMap((form) => Object.keys(form.properties)))];
    const memberOf = (key) => {
      const [first, ...others] = objects.flatMap((form) => form.properties[key] ?? []);
      if (first.type === 'string') return { type: 'string' };
      const isSame = others.every((other) => JSON.stringify(other) === JSON.stringify(first));
      return isSame ? first : first.type === 'object' ? { type: 'object' } : {};
    };
    const properties = Object.fromEntries(keys.map((key) => [key, memberOf(key)]));
    const required = keys.filter((key) => objects.every((form) => form.required?.includes(key)));
    return this.#class({ type: 'object', properties, required }, name, true);
  }

  #objectsOf(form) {
    const schema = form.$ref ? this.#schemas[this.#reference(form.$ref)] : form;
    return (schema.anyOf ?? schema.oneOf ?? [schema]).flatMap((one) => (one === schema ? [one] : this.#objectsOf(one)));
  }

  #reference(ref) {
    return ref.split('/').at(-1);
  }

  #union(types) {
    const distinct = [...new Set(types)];
    return [...distinct.filter((type) => type !== 'None'), ...distinct.filter((type) => type === 'None')].join(' | ');
  }

  #class(schema, name, isAnswer) {
    const required = new Set(schema.required ?? []);
    const members = Object.entries(schema.properties ?? {}).map(([key, member]) => {
      const type = this.typeOf(member, name + pascal(key), isAnswer);
      return [key, required.has(key) ? type : `NotRequired[${type}]`];
    });
    const lines = members.every(([key]) => isName(key))
      ? [`class ${name}(TypedDict):`, ...members.map(([key, type]) => `    ${key}: ${type}`)]
      : [
          `${name} = TypedDict(`,
          `    "${name}",`,
          '    {',
          ...members.map(([key, type]) => `        "${key}": "${type}",`),
          '    },',
          ')',
        ];
    this.classes.set(name, lines.join('\n'));
    return name;
  }
}

function literal(values) {
  return `Literal[${values.map((value) => (value === true ? 'True' : value === false ? 'False' : JSON.stringify(value))).join(', ')}]`;
}
