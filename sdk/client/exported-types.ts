/** The types of the client, for the entries of Node and of browsers. */
export type { ArtifactUpdate, StatusUpdate } from '../../contracts/a2a/a2a.js';
export type { Artifact, Part } from '../../contracts/a2a/parts.js';
export type { Open } from './api/open.js';
export type { AnswerSchema, CallOptions, PostOptions } from './api/platform-api.js';
export type { TokenProvider } from './api/token-source.js';
export type * from './generated/operations.js';
export type * from './generated/schema-types.js';
export type { MessageMetadata, RoutingOptions, SendOptions } from './send/send-options.js';
export type { EndedTask, StreamEvent, Task, WaitingTask, WorkingTask } from './send/sent-task.js';
export type { TextStreamOptions } from './send/text.js';
export type { WaitOptions } from './waiting/until-settled.js';
