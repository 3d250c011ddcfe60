import { resolve } from 'node:path';
import { z } from 'zod';

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

const days = z.coerce.number().int().min(1).max(36_500).optional();

/** All settings. `.env.example` documents each of them, and a test compares the two. */
export const Settings = z.object({
  FLEET_DATA_DIR: z.string().min(1).default('.fleet'),
  FLEET_HOST: z.string().min(1).default('127.0.0.1'),
  FLEET_API_PORT: port.default(8080),
  FLEET_MESH_PORT: port.default(8443),
  FLEET_METRICS_PORT: port.default(9464),
  FLEET_BASE_URL: url(/^https?$/),
  FLEET_MESH_URL: url(/^https?$/),
  FLEET_NODE_URL: url(/^https$/),
  FLEET_SECRET_KEY: secretKey,
  FLEET_PREVIOUS_SECRET_KEY: secretKey,
  FLEET_TLS_CERT: z.string().optional(),
  FLEET_TLS_KEY: z.string().optional(),
  FLEET_EXAMPLES: onOff('on'),
  FLEET_TRACE_SAMPLE_RATIO: z.coerce.number().min(0).max(1).default(1),
  FLEET_LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
  OTEL_EXPORTER_OTLP_ENDPOINT: url(/^https?$/),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url(/^https?$/),
  OTEL_EXPORTER_OTLP_HEADERS: pairs,
  OTEL_EXPORTER_OTLP_TIMEOUT: z.coerce.number().int().min(100).max(60_000).default(10_000),
  OTEL_SERVICE_NAME: z.string().max(256).optional(),
  OTEL_RESOURCE_ATTRIBUTES: pairs,
  DATABASE_URL: url(/^postgres(ql)?$/),
  DATABASE_POOL_MAX: z.coerce.number().int().min(2).max(1_000).default(20),
  DATABASE_TIMEOUT_MS: milliseconds(30_000),
  TEMPORAL_ADDRESS: z.string().optional(),
  TEMPORAL_NAMESPACE: z.string().min(1).default('default'),
  TEMPORAL_UI_URL: url(/^https?$/),
  TEMPORAL_CLI_PATH: z.string().optional(),
  REDIS_URL: url(/^rediss?$/),
  OUTBOUND_ALLOW_CIDRS: list,
  TRUST_PROXY_CIDRS: list,
  CORS_ORIGINS: list.pipe(z.array(origin)),
  FLEET_FAST_PATH: onOff('on'),
  SMTP_URL: url(/^smtps?$/),
  SMTP_FROM: z.string().min(3).max(320).default('agent-fleet@localhost'),
  SLACK_API_URL: z.url({ protocol: /^https?$/ }).default('https://slack.com/api'),
  LLM_URL: url(/^https?$/),
  LLM_API_KEY: z.string().optional(),
  LLM_MODEL: z.string().optional(),
  EMBEDDINGS_URL: url(/^https?$/),
  EMBEDDINGS_API_KEY: z.string().optional(),
  EMBEDDINGS_MODEL: z.string().max(200).optional(),
  EMBEDDINGS_MODEL_DIR: z.string().min(1).optional(),
  KNOWLEDGE_CACHE_MB: z.coerce.number().int().min(16).max(1_000_000).default(1_024),
  SEND_WAIT_MS: milliseconds(60_000),
  QUEUE_WAIT_MS: milliseconds(30_000),
  RESUME_WINDOW_MS: milliseconds(45_000),
  INPUT_EXPIRY_MS: milliseconds(86_400_000),
  TENANT_MAX_IN_FLIGHT: z.coerce.number().int().min(1).max(1_000_000).default(2_000),
  TENANT_MAX_WAITING: z.coerce.number().int().min(1).max(10_000_000).default(100_000),
  IDEMPOTENCY_TTL_HOURS: z.coerce.number().int().min(1).max(87_600).default(168),
  MESSAGE_RETENTION_DAYS: days,
  EVENT_RETENTION_DAYS: days,
  KNOWLEDGE_JOB_RETENTION_DAYS: z.coerce.number().int().min(1).max(36_500).default(7),
  RATE_LIMIT_PER_MINUTE: z.coerce.number().int().min(0).default(0),
});

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
