import type { WorkflowStarter } from '../../../messages/core.js';
import type { MeshFixture } from '../../mesh/mesh-fixture.js';
import type { Gateway } from '../../setup/gateway.js';
import type { Faults } from './faults.js';
import type { LossyNetwork } from './network.js';

/** What processes share. */
export interface Context {
  fixture: MeshFixture;
  workflowStarter: WorkflowStarter;
  faults: Faults;
  /** Null: processes know of no other. */
  network: LossyNetwork | null;
  /** Told of every answer that was taken. */
  accepted(dispatchId: string): void;
  /** Told of every dispatch that a node has taken from another process. */
  taken(dispatchId: string, over: Promise<unknown>): void;
}

/** What callers come to. */
export interface Entry {
  readonly gateway: Gateway;
  readonly alive: boolean;
  /** Rejects with DeadProcess. */
  readonly death: Promise<never>;
}
