import { fetchAhead, mayBeSignedIn } from './api/call.js';
import { firstFilters, requestsBody } from './inbox/filters.js';
import { restorePath } from './sign-in/return-path.js';

/** Asks who is signed in, and for the first page of the inbox, while the rest of the script is loaded and run, which takes as long. */
function askAhead(): void {
  void fetchAhead('/console/session');
  const filters = firstFilters(location);
  if (filters && mayBeSignedIn()) void fetchAhead('/requests/get', requestsBody(filters));
}

restorePath();
askAhead();
const start = () => void import('./app.js');
if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', start);
else start();
