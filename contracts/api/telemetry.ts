import { z } from 'zod';
import { AnyId, Instant, JsonObject, okPage, pageFields, Timestamp } from '../primitives.js';
import { post, TENANT } from './operation.js';

/** An event record (decisions.md, Telemetry); `event` is the payload in the specification's table. */
export const EventRecord = z.object({
  event_id: z.string(),
  event_type: z.string(),
  category: z.string(),
  type: z.string(),
  source: z.string(),
  severity: z.enum(['info', 'warning', 'critical']),
  tenant_id: z.string(),
  session_id: z.string(),
  timestamp: Timestamp,
  trace_id: z.string().optional(),
  event: JsonObject,
});
export type EventRecord = z.infer<typeof EventRecord>;

export const GetEventsResponse = okPage({ events: z.array(EventRecord) });

export const TELEMETRY_OPERATIONS = {
  getEvents: post('/telemetry/get_events', TENANT, 'List events', {
    request: z.strictObject({
      ...pageFields,
      session_id: AnyId.optional(),
      message_id: AnyId.optional(),
      instance_id: AnyId.optional(),
      category: z.string().max(64).optional(),
      type: z.string().max(128).optional(),
      source: z.string().max(128).optional(),
      from: Instant.optional(),
      to: Instant.optional(),
    }),
    response: GetEventsResponse,
  }),
};
