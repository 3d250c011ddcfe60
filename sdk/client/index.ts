export { type AnswerSchema, type ClientOptions, createClient, FleetClient, type WaitOptions } from './client.js';
export { ApiError, isTransient, UnreachableError } from './errors.js';
export type { SendOptions } from './rpc.js';
