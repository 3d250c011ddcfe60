/** One of the two paths of a message, as the settings of a platform (architecture.md, decision 11). */
export interface MessagePath {
  way: 'fast path' | 'workflow path';
  env: { FLEET_FAST_PATH: 'on' | 'off' };
}

export const FAST_PATH: MessagePath = { way: 'fast path', env: { FLEET_FAST_PATH: 'on' } };
export const WORKFLOW_PATH: MessagePath = { way: 'workflow path', env: { FLEET_FAST_PATH: 'off' } };

/** For `describe.each`: what callers, agents and humans see is the same on both. The gate tries the second one in `test/system/` alone. */
export const PATHS: readonly MessagePath[] = process.env.TEST_RUN === 'gate' ? [FAST_PATH] : [FAST_PATH, WORKFLOW_PATH];
