import type { LocalMesh } from '../messages/dispatch/local-mesh.js';
import type { Dispatcher } from './dispatcher.js';
import type { Reservations } from './reservations.js';

/** This node as the fast path sees it. */
export function createLocalMesh(node: {
  meshId: string;
  reservations: Reservations;
  connected: Dispatcher;
  hosted: Dispatcher;
  isDraining(): boolean;
}): LocalMesh {
  const { meshId, reservations, connected, hosted } = node;
  return {
    meshId,
    reserve: (dispatchId) => {
      if (node.isDraining()) return null;
      reservations.take(dispatchId);
      return {
        send: (open, leaseValid) => (open.deployment_mode === 'hosted' ? hosted : connected).sendHere(open, leaseValid),
        release: () => reservations.release(dispatchId),
      };
    },
  };
}
