/** The roles that one process may run. */
export const ROLES = ['api', 'mesh', 'worker', 'knowledge'] as const;
export type Role = (typeof ROLES)[number];

/** The parsed command line. */
export interface RunOptions {
  roles: ReadonlySet<Role>;
  /**
   * No `--roles` given, as with `npm start`: the process creates a first credential, runs the example agents and allows outbound requests to
   * this machine.
   */
  development: boolean;
}

/**
 * Reads `--roles api,mesh,worker,knowledge`.
 * @throws Error for invalid arguments
 */
export function readArguments(args: readonly string[]): RunOptions {
  if (args.length === 0) return { roles: new Set(ROLES), development: true };
  const [flag, value] = args;
  if (flag !== '--roles' || value === undefined || args.length > 2) {
    throw new Error(`Usage: node dist/start.js [--roles ${ROLES.join(',')}]`);
  }
  const roles = value.split(',').map((name) => {
    const role = ROLES.find((known) => known === name.trim());
    if (!role) throw new Error(`--roles: ${name} is not one of ${ROLES.join(', ')}`);
    return role;
  });
  return { roles: new Set(roles), development: false };
}
