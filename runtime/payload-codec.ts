import type { DataConverter, Payload, PayloadCodec } from '@temporalio/common';
import type { Secrets } from './secrets.js';

const PURPOSE = 'temporal_payload';
const ENCODING = 'encoding';
const ENCRYPTED = Buffer.from('binary/encrypted');

/** A payload as JSON, as codec servers of Temporal get and give it: bytes are base64. */
export interface JsonPayload {
  metadata?: Record<string, string>;
  data?: string;
}

function toJson({ metadata, data }: Payload): JsonPayload {
  const entries = Object.entries(metadata ?? {}).map(([name, value]) => [name, Buffer.from(value).toString('base64')]);
  return { metadata: Object.fromEntries(entries), data: Buffer.from(data ?? []).toString('base64') };
}

function fromJson({ metadata = {}, data = '' }: JsonPayload): Payload {
  const entries = Object.entries(metadata).map(([name, value]) => [name, Buffer.from(value, 'base64')]);
  return { metadata: Object.fromEntries(entries), data: Buffer.from(data, 'base64') };
}

const isEncrypted = ({ metadata }: Payload): boolean => ENCRYPTED.equals(metadata?.[ENCODING] ?? Buffer.of());

/**
 * Encrypts what workflows, activities, signals and queries carry (AES-256-GCM, with a key derived from the secret key), so that Temporal and its
 * UI hold ids of workflows and search attributes alone. Whatever is encrypted is read, also while `encrypts` is false: so it can be turned on and
 * off with workflows running.
 */
function payloadCodec(secrets: Pick<Secrets, 'encrypt' | 'decrypt'>, encrypts: boolean): PayloadCodec {
  const encode = (payload: Payload): Payload => ({
    metadata: { [ENCODING]: ENCRYPTED },
    data: secrets.encrypt(JSON.stringify(toJson(payload)), PURPOSE),
  });
  const decode = (payload: Payload): Payload => {
    if (!isEncrypted(payload)) return payload;
    return fromJson(JSON.parse(secrets.decrypt(Buffer.from(payload.data ?? []), PURPOSE).toString()) as JsonPayload);
  };
  return {
    encode: async (payloads) => (encrypts ? payloads.map(encode) : payloads),
    decode: async (payloads) => payloads.map(decode),
  };
}

/** The one data converter of clients and workers. */
export function createDataConverter(
  secrets: Pick<Secrets, 'encrypt' | 'decrypt'>,
  { FLEET_TEMPORAL_ENCRYPTION }: { FLEET_TEMPORAL_ENCRYPTION: 'on' | 'off' },
): DataConverter {
  return { payloadCodecs: [payloadCodec(secrets, FLEET_TEMPORAL_ENCRYPTION === 'on')] };
}

/** Decrypts payloads for the Temporal UI and command line. @throws UnreadableValue for those of another key */
export async function decodePayloads(
  secrets: Pick<Secrets, 'encrypt' | 'decrypt'>,
  payloads: readonly JsonPayload[],
): Promise<JsonPayload[]> {
  return (await payloadCodec(secrets, false).decode(payloads.map(fromJson))).map(toJson);
}
