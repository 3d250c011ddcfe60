import { z } from 'zod';
import { Task } from '../a2a/a2a.js';
import { Artifact, Part } from '../a2a/parts.js';
import { ErrorBody } from '../primitives.js';
import { AgentInstance } from './agents.js';
import { AlertRule } from './alerts.js';
import { Credential } from './auth.js';
import { Delivery } from './deliveries.js';
import { KnowledgeBase, KnowledgeSource, KnowledgeStats } from './knowledge/knowledge.js';
import { SearchResult } from './knowledge/knowledge-query.js';
import { InputRequest, MessageRecord } from './messages.js';
import type { Operation } from './operation.js';
import { TAGS } from './operations.js';
import { Plan } from './plans.js';
import { ApprovalRecord, ExportedApproval } from './policies/approvals.js';
import { Guard } from './policies/guards.js';
import { Policy } from './policies/policies.js';
import { SessionDetails, SessionSummary } from './sessions.js';
import { EventRecord, PlatformEvent } from './telemetry.js';
import { ModelPrice } from './tenants/tenants.js';
import { UsageRow } from './usage.js';

type Json = Record<string, unknown>;

/** The version of the machine-readable description. */
const INFO_VERSION = '1.0.0';
const NAMED = {
  AgentInstance,
  AlertRule,
  ApprovalRecord,
  Artifact,
  Credential,
  Delivery,
  ErrorBody,
  EventRecord,
  ExportedApproval,
  Guard,
  InputRequest,
  KnowledgeBase,
  KnowledgeSource,
  KnowledgeStats,
  MessageRecord,
  ModelPrice,
  Part,
  Plan,
  PlatformEvent,
  Policy,
  SearchResult,
  SessionDetails,
  SessionSummary,
  Task,
  UsageRow,
};

const STATUS_TEXTS: Record<number, string> = {
  304: 'Not modified',
  400: 'The request is not valid',
  401: 'Credentials are missing, invalid or expired',
  403: 'The token may not do this',
  404: 'There is no such resource',
  408: 'The request took too long to arrive',
  409: 'The state of the resource forbids it',
  410: 'Expired',
  413: 'The body is too large',
  426: 'This address does not speak TLS to agents',
  429: 'Too many requests',
  500: 'An unexpected error',
  502: 'An upstream failed',
  503: 'The database or Temporal is away, or the platform is stopping',
};

/** Removes what zod adds to a JSON Schema: the pattern of a date-time, the bounds of safe integers. */
function simplify(jsonSchema: Json, io: 'input' | 'output'): void {
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  // Responses may gain members; requests with unknown members are rejected.
  if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
}

/** Converts zod schemas to JSON Schemas and collects the named ones in `components`. */
class SchemaWriter {
  readonly components: Record<string, Json> = {};
  readonly #names = z.registry<{ id: string }>();

  constructor() {
    for (const [id, schema] of Object.entries(NAMED)) this.#names.add(schema, { id });
  }

  write(schema: z.ZodType, io: 'input' | 'output'): Json {
    const override = ({ jsonSchema }: { jsonSchema: object }) => simplify(jsonSchema as Json, io);
    const written = z.toJSONSchema(schema, { io, metadata: this.#names, unrepresentable: 'any', override });
    const text = JSON.stringify(written).replaceAll('"#/$defs/', '"#/components/schemas/');
    const { $schema: _dialect, $defs, ...root } = JSON.parse(text) as Json & { $defs?: Record<string, Json> };
    Object.assign(this.components, $defs);
    const id = this.#names.get(schema)?.id;
    if (id === undefined || '$ref' in root) return root;
    this.components[id] = root;
    return { $ref: `#/components/schemas/${id}` };
  }
}

function security(access: Operation['access']): Json[] {
  if (access === 'public') return [];
  return access === 'optional' ? [{}, { bearer: [] }] : [{ bearer: [access] }];
}

function parametersOf({ path, a2aVersions, query }: Operation, writer: SchemaWriter): Json[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true }));
  const versions = a2aVersions ? ['header', 'query'].map((location) => ({ name: 'A2A-Version', in: location })) : [];
  const inQuery = Object.entries(query?.shape ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    schema: writer.write(schema as z.ZodType, 'input'),
  }));
  return [...[...inPath, ...versions].map((parameter) => ({ ...parameter, schema: { type: 'string' } })), ...inQuery];
}

function describe(operation: Operation, writer: SchemaWriter): Json {
  const json = (schema: z.ZodType, io: 'input' | 'output') => ({
    'application/json': { schema: writer.write(schema, io) },
  });
  const { summary, access, othersNeed, request, response, lines, experimental, statuses, sunset } = operation;
  const error = { content: json(ErrorBody, 'output') };
  const errors = statuses.map((status) => [
    status,
    { description: STATUS_TEXTS[status] ?? 'An error', ...(status >= 400 && error) },
  ]);
  const parameters = parametersOf(operation, writer);
  const content = {
    ...(operation.stream !== true && lines !== true && json(response, 'output')),
    ...(lines && { 'application/jsonl': { schema: writer.write(lines === true ? response : lines, 'output') } }),
    ...(operation.stream && {
      'text/event-stream': {
        schema: operation.stream === 'both' ? { type: 'string' } : writer.write(response, 'output'),
      },
    }),
  };
  const description = `Scope ${access} with a token that stands for the agent's type; any other token needs ${othersNeed}.`;
  return {
    summary,
    ...(othersNeed && { description }),
    security: security(othersNeed ?? access),
    ...(experimental && { 'x-experimental': true }),
    ...(sunset && { deprecated: true, 'x-sunset': sunset }),
    ...(parameters.length > 0 && { parameters }),
    ...(request && {
      // An absent body counts as an empty one.
      requestBody: {
        required: !request.safeParse({}).success,
        content: operation.form
          ? { 'application/x-www-form-urlencoded': { schema: writer.write(request, 'input') } }
          : json(request, 'input'),
      },
    }),
    responses: {
      200: { description: 'Success', content },
      ...Object.fromEntries(errors),
    },
  };
}

/** The OpenAPI 3.1 description of every operation, for the server at `baseUrl`. */
export function openApiDocument(baseUrl: string): Json {
  const writer = new SchemaWriter();
  const paths: Record<string, Json> = {};
  for (const [tag, operations] of Object.entries(TAGS)) {
    for (const [operationId, operation] of Object.entries<Operation>(operations)) {
      const path = operation.path.replace(/:(\w+)/g, '{$1}');
      const described = { operationId, tags: [tag], ...describe(operation, writer) };
      paths[path] = { ...paths[path], [operation.method.toLowerCase()]: described };
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Agent Fleet Platform',
      version: INFO_VERSION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: baseUrl }],
    paths,
    components: {
      schemas: writer.components,
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
  };
}
