const KEY = 'fleet.return';

/** Keeps where the page is, for the time at the provider. It stays in this browser tab: no address says where a sign-in leads. */
export function keepPath(): void {
  sessionStorage.setItem(KEY, location.pathname + location.search);
}

/** Goes back there, once. Before the router reads the address. */
export function restorePath(): void {
  const path = sessionStorage.getItem(KEY);
  if (path === null || location.pathname !== '/console') return;
  sessionStorage.removeItem(KEY);
  if (/^\/console\/(?!sign-in)/.test(path)) history.replaceState(null, '', path);
}
