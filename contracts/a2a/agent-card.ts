import { z } from 'zod';

const Texts = z.array(z.string());

/** A skill, the same in both versions of A2A. */
export const CardSkill = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  tags: Texts,
  examples: Texts.optional(),
  inputModes: Texts.optional(),
  outputModes: Texts.optional(),
});
export type CardSkill = z.infer<typeof CardSkill>;

/** Who offers an agent. */
const CardProvider = z.object({ organization: z.string(), url: z.string() });

/** A URL of the platform and its version of A2A; clients prefer the first. */
const CardInterface = z.object({ url: z.string(), protocolBinding: z.literal('JSONRPC'), protocolVersion: z.string() });

const COMMON = {
  name: z.string(),
  description: z.string(),
  version: z.string(),
  supportedInterfaces: z.array(CardInterface).min(1),
  defaultInputModes: Texts,
  defaultOutputModes: Texts,
  skills: z.array(CardSkill),
  provider: CardProvider.optional(),
  documentationUrl: z.string().optional(),
  iconUrl: z.string().optional(),
};
const CAPABILITIES = { streaming: z.boolean(), pushNotifications: z.boolean() };
const HTTP_AUTH = { scheme: z.string(), bearerFormat: z.string(), description: z.string() };

/** An A2A 0.3 agent card that also has the `supportedInterfaces` of 1.0, so that clients of either version can use it. */
export const AgentCard03 = z.object({
  protocolVersion: z.literal('0.3.0'),
  ...COMMON,
  url: z.string(),
  preferredTransport: z.literal('JSONRPC'),
  additionalInterfaces: z.array(z.object({ url: z.string(), transport: z.literal('JSONRPC') })),
  capabilities: z.object({ ...CAPABILITIES, stateTransitionHistory: z.boolean() }),
  securitySchemes: z.record(z.string(), z.object({ type: z.literal('http'), ...HTTP_AUTH })),
  security: z.array(z.record(z.string(), Texts)),
  supportsAuthenticatedExtendedCard: z.boolean(),
});
export type AgentCard03 = z.infer<typeof AgentCard03>;

/** An A2A 1.0 agent card in ProtoJSON, which writes a `oneof` as its one set member. */
export const AgentCard10 = z.object({
  ...COMMON,
  capabilities: z.object({ ...CAPABILITIES, extendedAgentCard: z.boolean() }),
  securitySchemes: z.record(z.string(), z.object({ httpAuthSecurityScheme: z.object(HTTP_AUTH) })),
  securityRequirements: z.array(z.object({ schemes: z.record(z.string(), z.object({ list: Texts })) })),
});
export type AgentCard10 = z.infer<typeof AgentCard10>;

export const AgentCardResponse = z.union([AgentCard03, AgentCard10]);
