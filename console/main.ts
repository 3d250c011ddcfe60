import type { ConsoleSession } from '../contracts/api/console.js';
import { fetchAhead, rememberCsrfToken } from './api/call.js';
import { filtersOf, parseInboxSearch, requestsBody } from './inbox/filters.js';
import { restorePath } from './sign-in/return-path.js';

/** Views that show the inbox. */
const INBOX = /^\/console(\/(inbox)?)?$/;

/** Asks who is signed in and for the first page of the inbox while the rest of the script is loaded and run, which takes as long. */
async function askAhead(): Promise<void> {
  const { session } = (await fetchAhead('/console/session')) as { session: ConsoleSession | null };
  if (!session || !INBOX.test(location.pathname)) return;
  rememberCsrfToken(session);
  const filters = filtersOf(parseInboxSearch(Object.fromEntries(new URLSearchParams(location.search))));
  await fetchAhead('/requests/get', requestsBody(filters));
}

restorePath();
askAhead().catch(() => undefined); // whoever takes the answer is told
const start = () => void import('./app.js');
if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', start);
else start();
