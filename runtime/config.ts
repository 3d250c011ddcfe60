import { resolve } from 'node:path';
import { z } from 'zod';
import { OidcRoles } from '../contracts/oidc-roles.js';
import { Clocks } from './clocks.js';

const port = z.coerce.number().int().min(0).max(65_535);
/** Values separated by commas. */
const list = z
  .string()
  .trim()
  .default('')
  .transform((text) => text.split(/\s*,\s*/).filter(Boolean));
/** As browsers send it: scheme, host, and the port unless it is the scheme's own. */
const origin = z
  .string()
  .refine((text) => /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text, {
    message: 'must be an origin, for example https://app.example.com',
  });
/** Pairs of OpenTelemetry's variables: `name=value,…`, percent-encoded. */
const pairs = z
  .string()
  .default('')
  .transform((text, context) => {
    try {
      const given = text.split(',').filter((pair) => pair.trim() !== '');
      return Object.fromEntries(
        given.map((pair) => {
          const at = pair.indexOf('=');
          if (at < 1) throw new URIError('no name');
          return [pair.slice(0, at), pair.slice(at + 1)].map((part) => decodeURIComponent(part.trim()));
        }),
      ) as Record<string, string>;
    } catch {
      context.addIssue('must be name=value, percent-encoded and separated by commas');
      return z.NEVER;
    }
  });
const url = (protocols: RegExp) => z.url({ protocol: protocols }).optional();
const milliseconds = (fallback: number) => z.coerce.number().int().min(1).max(86_400_000).default(fallback);
const onOff = (fallback: 'on' | 'off') => z.enum(['on', 'off']).default(fallback);
const secretKey = z
  .string()
  .refine((text) => Buffer.from(text, 'base64').length === 32, 'must be 32 bytes in base64')
  .optional();

const json = z.string().transform((text, context) => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    context.addIssue('must be JSON');
    return z.NEVER;
  }
});
/** An object in JSON, of which each name that is missing has its default. */
const clocks = json.default({}).pipe(Clocks);
/** The address of a provider of identities: what it says is believed, so nobody may change it on the way. */
const issuer = z
  .url({ protocol: /^https?$/ })
  .refine((text) => URL.canParse(text) && isPrivate(new URL(text)), 'must be https://, except on this machine')
  .optional();
const isPrivate = ({ protocol, hostname }: URL) =>
  protocol === 'https:' || ['localhost', '127.0.0.1', '[::1]'].includes(hostname);

const days = z.coerce.number().int().min(1).max(36_500).optional();

/** All settings. `npm run docs` writes .env.example from the headings, sentences and examples here. */
export const Settings = z.object({
  // Addresses and files
  /** State of the embedded servers, secret.key and dev.json. It survives restarts; one directory serves one running platform. */
  FLEET_DATA_DIR: z.string().min(1).default('.fleet'),
  /** The address that the servers listen on. */
  FLEET_HOST: z.string().min(1).default('127.0.0.1'),
  /** Port of the API (HTTP); 0 picks a free one. */
  FLEET_API_PORT: port.default(8080),
  /** Port of the mesh (TLS); 0 picks a free one. */
  FLEET_MESH_PORT: port.default(8443),
  /**
   * Port of GET /metrics for Prometheus (HTTP, without a token: keep it off public networks); 0 picks a free one, which the log names as
   * metrics_url.
   */
  FLEET_METRICS_PORT: port.default(9464),
  /**
   * The API's address as callers use it, if it is not the one that the server listens on (behind a proxy). Without a slash at the end.
   * @example https://api.example.com
   */
  FLEET_BASE_URL: url(/^https?$/),
  /**
   * The mesh's address as agents use it, likewise. The api role needs it if the mesh role runs in another process.
   * @example https://mesh.example.com
   */
  FLEET_MESH_URL: url(/^https?$/),
  /**
   * This process's own mesh address, behind no load balancer. Agents that lost their socket come back here, to the node that holds their
   * work. Its certificate must fit this name too. Not set: the address that the mesh listens on, or none if FLEET_MESH_URL is set.
   * @example https://mesh-1.internal:8443
   */
  FLEET_NODE_URL: url(/^https$/),
  // Secrets and TLS
  /**
   * 32 bytes in base64 (`openssl rand -base64 32`). It encrypts stored secrets and protects client secrets. If it is not set, it is created
   * once as secret.key in the data directory. All processes on one database need the same key; a process with another one refuses to start.
   */
  FLEET_SECRET_KEY: secretKey,
  /**
   * The key before it, accepted for reading while `fleet keys rotate-secret` rotates it (docs/operations.md), and for client secrets not
   * used since.
   */
  FLEET_PREVIOUS_SECRET_KEY: secretKey,
  /**
   * Certificate file (PEM) of the mesh, which may be replaced while it runs. If it is not set, a local authority issues one; its
   * certificate is ca_file in dev.json.
   * @example /etc/fleet/tls.crt
   */
  FLEET_TLS_CERT: z.string().optional(),
  /** The key of this certificate (PEM). @example /etc/fleet/tls.key */
  FLEET_TLS_KEY: z.string().optional(),
  // Sign-in of people to the console (docs/console.md)
  /** The issuer of an OpenID Connect provider. Without it people sign in as credentials. @example https://login.example.com/realms/staff */
  OIDC_ISSUER: issuer,
  /** The client that is registered there, with the redirect URI FLEET_BASE_URL/console/oidc/callback. @example agent-fleet */
  OIDC_CLIENT_ID: z.string().min(1).optional(),
  /** Its secret. @example the-secret-of-the-client */
  OIDC_CLIENT_SECRET: z.string().min(1).optional(),
  /** The claim whose values say what a person may do: a text or a list of texts. */
  OIDC_CLAIM_ROLES: z.string().min(1).default('groups'),
  /**
   * What each value gives, as JSON: a tenant with `scopes` (`["read"]` by default) and the names by which the `approvers` of policies name the
   * person, or the role of an operator of the platform. Several entries for one value add up.
   * @example [{"role":"finance","tenant":"ten_01…","scopes":["read"],"approvers":["finance"]},{"role":"platform","operator":true}]
   */
  OIDC_ROLES: json.pipe(OidcRoles).optional(),
  // Behaviour of the process
  /** off starts no example agents. */
  FLEET_EXAMPLES: onOff('on'),
  /**
   * on lets operators decide about a message that waits for a person by the signal `resolve` to its workflow (docs/operations.md). Whoever may write
   * to the namespace of Temporal can then decide.
   */
  FLEET_TEMPORAL_RESOLVE: onOff('off'),
  /**
   * For how long a process that stops goes on as before while `/health` says 503, in milliseconds, so that load balancers send elsewhere
   * before its ports close. Not set: 5000 with `--roles`, else 0.
   * @example 15000
   */
  FLEET_STOP_DELAY_MS: z.coerce.number().int().min(0).max(600_000).optional(),
  /**
   * on encrypts what workflows, activities and signals carry in Temporal, with a key derived from the secret key (docs/operations.md). It can be
   * turned on and off at any time; every process reads both.
   */
  FLEET_TEMPORAL_ENCRYPTION: onOff('off'),
  /**
   * The key that POST /temporal/codec/decode takes, at which operators decrypt what the Temporal UI and command line show, of all tenants
   * (`openssl rand -hex 32`). Not set: there is no such endpoint.
   */
  FLEET_TEMPORAL_CODEC_KEY: z
    .string()
    .regex(/^[\w.~+/=-]{32,256}$/, 'must be 32 to 256 characters of a bearer token')
    .optional(),
  /** trace, debug, info, warn, error or silent. */
  FLEET_LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
  // Traces (docs/traces.md)
  /** The share of traces that are exported, and whose tool calls and streams are kept: 0 to 1. */
  FLEET_TRACE_SAMPLE_RATIO: z.coerce.number().min(0).max(1).default(1),
  /**
   * An OpenTelemetry collector, to which traces are exported by OTLP over HTTP with JSON (at /v1/traces). Without it nothing is exported.
   * @example http://collector.example.com:4318
   */
  OTEL_EXPORTER_OTLP_ENDPOINT: url(/^https?$/),
  /** The whole address for traces, if it is another one. @example https://traces.example.com/otlp/v1/traces */
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url(/^https?$/),
  /** Headers of these requests, percent-encoded and separated by commas. @example api-key=secret,x-team=fleet */
  OTEL_EXPORTER_OTLP_HEADERS: pairs,
  /** For one request, in milliseconds. */
  OTEL_EXPORTER_OTLP_TIMEOUT: z.coerce.number().int().min(100).max(60_000).default(10_000),
  /** How the platform names itself there; agent-fleet by default. @example agent-fleet */
  OTEL_SERVICE_NAME: z.string().max(256).optional(),
  /** Further attributes of the platform, as the headers. @example deployment.environment.name=production */
  OTEL_RESOURCE_ATTRIBUTES: pairs,
  // Servers that replace the embedded ones
  /** A login that may create tables and roles. @example postgresql://fleet:password@db.example.com:5432/fleet */
  DATABASE_URL: url(/^postgres(ql)?$/),
  /** Connections for the work of tenants. A quarter of that, at least 4, and one more come on top for the platform's own work. */
  DATABASE_POOL_MAX: z.coerce.number().int().min(2).max(1_000).default(20),
  /** How long a statement may take. A connection that says nothing for a sixth longer is taken for dead: its call fails with 503. */
  DATABASE_TIMEOUT_MS: milliseconds(30_000),
  /** Temporal. Its own variables (TEMPORAL_API_KEY, TEMPORAL_TLS_…) count as well. @example temporal.example.com:7233 */
  TEMPORAL_ADDRESS: z.string().optional(),
  /** Its namespace. */
  TEMPORAL_NAMESPACE: z.string().min(1).default('default'),
  /** The address of the Temporal UI, for the links that are shown. @example https://temporal.example.com */
  TEMPORAL_UI_URL: url(/^https?$/),
  /** The temporal program for the embedded server, if it is not on the PATH. @example /usr/local/bin/temporal */
  TEMPORAL_CLI_PATH: z.string().optional(),
  /** Redis 7 or newer, or Valkey. Needed as soon as the roles are split over several processes. @example redis://cache.example.com:6379 */
  REDIS_URL: url(/^rediss?$/),
  // Networks
  /**
   * Ranges that outbound requests (hosted agents, webhooks, Slack, push notifications) may reach besides public addresses, separated by
   * commas.
   * @example 10.20.0.0/16,fd00::/8
   */
  OUTBOUND_ALLOW_CIDRS: list,
  /** Proxies whose X-Forwarded headers count, separated by commas. @example 10.0.0.0/24 */
  TRUST_PROXY_CIDRS: list,
  /**
   * Origins whose pages may call the API from a browser (CORS), separated by commas; none by default. Give such pages short-lived tokens
   * only.
   * @example https://app.example.com,http://localhost:3000
   */
  CORS_ORIGINS: list.pipe(z.array(origin)),
  // Alerts
  /**
   * The mail server of email channels; smtps:// for TLS from the first byte. Without it, email deliveries fail.
   * @example smtp://user:password@mail.example.com:587
   */
  SMTP_URL: url(/^smtps?$/),
  /** The sender of emails. */
  SMTP_FROM: z.string().min(3).max(320).default('agent-fleet@localhost'),
  /** Slack's Web API, for channels with a bot token. */
  SLACK_API_URL: z.url({ protocol: /^https?$/ }).default('https://slack.com/api'),
  // The example agent's model
  /** An OpenAI-compatible address. If it is not set, the example agent follows rules. @example https://llm.example.com/v1 */
  LLM_URL: url(/^https?$/),
  /** Its key. */
  LLM_API_KEY: z.string().optional(),
  /** Its model. @example some-model */
  LLM_MODEL: z.string().optional(),
  // Knowledge bases
  /**
   * An OpenAI-compatible address for embeddings, which may be in a private network. If it is not set, the local model that `npm run models`
   * installs is used, and without it knowledge is searched by words.
   * @example https://llm.example.com/v1
   */
  EMBEDDINGS_URL: url(/^https?$/),
  /** Its key. */
  EMBEDDINGS_API_KEY: z.string().optional(),
  /** Its model. @example text-embedding-3-small */
  EMBEDDINGS_MODEL: z.string().max(200).optional(),
  /** The folder of the local model. Not set: agent-fleet/models in the user's cache folder. @example /opt/agent-fleet/models */
  EMBEDDINGS_MODEL_DIR: z.string().min(1).optional(),
  /** Memory for the indexes that searches use, in MiB. Those used longest ago make room; a knowledge base that is larger alone is refused. */
  KNOWLEDGE_CACHE_MB: z.coerce.number().int().min(16).max(1_000_000).default(1_024),
  // Waiting, in milliseconds
  /** How long a blocking message/send waits before it answers with the task as it is. */
  SEND_WAIT_MS: milliseconds(60_000),
  /**
   * How long a message waits while no agent of its target is online. While one is, it waits up to its `deadline_ms`; `queue_wait_ms` in its
   * metadata takes the place of both.
   */
  QUEUE_WAIT_MS: milliseconds(30_000),
  /** After how long a message that waits for an agent, or is with one, gets its workflow in Temporal. */
  WATCH_AFTER_MS: z.coerce.number().int().min(0).max(86_400_000).default(10_000),
  /** How long a connected agent may be away before its work in flight fails. */
  RESUME_WINDOW_MS: milliseconds(45_000),
  /** How long a human may take to answer. */
  INPUT_EXPIRY_MS: milliseconds(86_400_000),
  // Bounds
  /** Messages of one tenant that agents have at once; further ones wait for that (`waits_for.kind` is `quota`). */
  TENANT_MAX_IN_FLIGHT: z.coerce.number().int().min(1).max(1_000_000).default(2_000),
  /** Messages of one tenant that wait for agents; new ones get 429 beyond. */
  TENANT_MAX_QUEUED: z.coerce.number().int().min(1).max(10_000_000).default(100_000),
  /** Messages of one tenant that wait for input; new messages get 429 beyond. */
  TENANT_MAX_WAITING: z.coerce.number().int().min(1).max(10_000_000).default(100_000),
  /** Hours for which a messageId names the same message. After them it is new. */
  IDEMPOTENCY_TTL_HOURS: z.coerce.number().int().min(1).max(87_600).default(168),
  /**
   * Days after which messages are deleted, with all that belongs to them, a whole month at a time; not set: they are kept for ever.
   * @example 365
   */
  MESSAGE_RETENTION_DAYS: days,
  /** The same for events. @example 90 */
  EVENT_RETENTION_DAYS: days,
  /** Days after which entries of the audit are deleted; not set: they are kept for ever. @example 3650 */
  AUDIT_RETENTION_DAYS: days,
  /** Days for which a job of a knowledge base can be read after its end, and its idempotency_key names it. */
  KNOWLEDGE_JOB_RETENTION_DAYS: z.coerce.number().int().min(1).max(36_500).default(7),
  /** Calls of one tenant in a minute, on all nodes together with REDIS_URL; 0 means no limit. */
  RATE_LIMIT_PER_MINUTE: z.coerce.number().int().min(0).default(0),
  /** Streams and calls of /send that are open at once with one token, in one process; 429 beyond. */
  OPEN_CALLS_PER_TOKEN: z.coerce.number().int().min(1).max(1_000_000).default(1_000),
  /** The same of one tenant. */
  OPEN_CALLS_PER_TENANT: z.coerce.number().int().min(1).max(1_000_000).default(5_000),
  /** The same of all tenants together. */
  OPEN_CALLS_MAX: z.coerce.number().int().min(1).max(1_000_000).default(20_000),
  // For the platform's own tests
  /** Not for operators: shorter waits, by the names of runtime/clocks.ts, as JSON. They may change with every release. @example {"rereadMs":50} */
  FLEET_CLOCKS: clocks,
});

const isAllOrNone = (values: unknown[]) => new Set(values.map((value) => value === undefined)).size === 1;

const CheckedSettings = Settings.refine(
  // A repeat within the lifetime of its `messageId` must find its message.
  ({ MESSAGE_RETENTION_DAYS: days, IDEMPOTENCY_TTL_HOURS: hours }) => days === undefined || days * 24 >= hours,
  { path: ['MESSAGE_RETENTION_DAYS'], error: 'must be at least as long as IDEMPOTENCY_TTL_HOURS' },
)
  .refine(({ EMBEDDINGS_URL: address, EMBEDDINGS_MODEL: model }) => address === undefined || model !== undefined, {
    path: ['EMBEDDINGS_MODEL'],
    error: 'must be set together with EMBEDDINGS_URL',
  })
  .refine(({ FLEET_TLS_CERT: cert, FLEET_TLS_KEY: key }) => (cert === undefined) === (key === undefined), {
    path: ['FLEET_TLS_KEY'],
    error: 'must be set together with FLEET_TLS_CERT',
  })
  .refine((set) => isAllOrNone([set.OIDC_ISSUER, set.OIDC_CLIENT_ID, set.OIDC_CLIENT_SECRET, set.OIDC_ROLES]), {
    path: ['OIDC_ISSUER'],
    error: 'must be set together with OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and OIDC_ROLES',
  });

/** The settings of the process, parsed once at the start. */
export type Config = z.infer<typeof Settings>;

/**
 * Reads the settings from the environment. An empty variable counts as absent.
 * @throws an Error that names every variable with an invalid value
 */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const parsed = CheckedSettings.safeParse(
    Object.fromEntries(Object.entries(environment).filter(([, value]) => value)),
  );
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`);
    throw new Error(`The settings are not valid:\n${problems.join('\n')}`);
  }
  return { ...parsed.data, FLEET_DATA_DIR: resolve(parsed.data.FLEET_DATA_DIR) };
}
