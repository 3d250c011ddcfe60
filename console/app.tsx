import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Navigate,
  RouterProvider,
} from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { parseAccessSearch } from './access/search.js';
import { parseAlertsSearch } from './alerts/search.js';
import { ApiError, isSignedOut } from './api/call.js';
import { requestsQuery } from './api/requests.js';
import { sessionQuery } from './api/session.js';
import { parseAuditSearch } from './audit/search.js';
import { parseFleetSearch } from './fleet/health.js';
import { parseGuardsSearch } from './guards/search.js';
import { firstFilters, parseInboxSearch } from './inbox/filters.js';
import { Inbox } from './inbox/inbox.js';
import { parseKnowledgeSearch } from './knowledge/search.js';
import { parseMessagesSearch } from './messages/filters.js';
import { parsePlansSearch } from './plans/search.js';
import { parsePoliciesSearch } from './policies/search.js';
import { parseSessionsSearch } from './sessions/search.js';
import { Shell } from './shell/shell.js';
import { parseTalkSearch } from './talk/search.js';
import { parseToolsSearch } from './tools/search.js';
import { parseUsageSearch } from './usage/search.js';
import '../contracts/colors.css';
import './styles/base.css';
import './styles/parts.css';
import './styles/table.css';
import './styles/shell.css';
import './styles/list.css';
import './styles/inbox.css';
import './styles/message.css';
import './styles/messages.css';
import './styles/overview.css';
import './styles/markdown.css';
import './styles/fleet.css';
import './styles/talk.css';
import './styles/rules.css';
import './styles/watch.css';
import './styles/plans.css';
import './styles/knowledge.css';

const RETRIES = 2;

/** A session that has ended shows itself by any call. */
const onError = (error: Error) => {
  if (isSignedOut(error)) client.setQueryData(sessionQuery.queryKey, null);
};
const client = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      retry: (count, error) =>
        count < RETRIES && !(error instanceof ApiError && error.status > 0 && error.status < 500),
      networkMode: 'always',
    },
  },
});

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => <Navigate to="/inbox" search={{}} replace />,
});
const toInbox = (path: string) =>
  createRoute({
    getParentRoute: () => root,
    path,
    component: () => <Navigate to="/inbox" search={{}} replace />,
  });
const inbox = createRoute({
  getParentRoute: () => root,
  path: '/inbox',
  validateSearch: parseInboxSearch,
  component: Inbox,
});
const message = createRoute({
  getParentRoute: () => root,
  path: '/messages/$messageId',
  component: lazyRouteComponent(() => import('./message/message.js'), 'Message'),
});
const messages = createRoute({
  getParentRoute: () => root,
  path: '/messages',
  validateSearch: parseMessagesSearch,
  component: lazyRouteComponent(() => import('./messages/messages.js'), 'Messages'),
});
const overview = createRoute({
  getParentRoute: () => root,
  path: '/overview',
  component: lazyRouteComponent(() => import('./overview/overview.js'), 'Overview'),
});
const fleet = createRoute({
  getParentRoute: () => root,
  path: '/fleet',
  validateSearch: parseFleetSearch,
  component: lazyRouteComponent(() => import('./fleet/fleet.js'), 'Fleet'),
});
const talk = createRoute({
  getParentRoute: () => root,
  path: '/talk',
  validateSearch: parseTalkSearch,
  component: lazyRouteComponent(() => import('./talk/talk.js'), 'Talk'),
});
const policies = createRoute({
  getParentRoute: () => root,
  path: '/policies',
  validateSearch: parsePoliciesSearch,
  component: lazyRouteComponent(() => import('./policies/policies.js'), 'Policies'),
});
const guards = createRoute({
  getParentRoute: () => root,
  path: '/guards',
  validateSearch: parseGuardsSearch,
  component: lazyRouteComponent(() => import('./guards/guards.js'), 'Guards'),
});
const tools = createRoute({
  getParentRoute: () => root,
  path: '/tools',
  validateSearch: parseToolsSearch,
  component: lazyRouteComponent(() => import('./tools/tools.js'), 'Tools'),
});
const alerts = createRoute({
  getParentRoute: () => root,
  path: '/alerts',
  validateSearch: parseAlertsSearch,
  component: lazyRouteComponent(() => import('./alerts/alerts.js'), 'Alerts'),
});
const usage = createRoute({
  getParentRoute: () => root,
  path: '/usage',
  validateSearch: parseUsageSearch,
  component: lazyRouteComponent(() => import('./usage/usage.js'), 'Usage'),
});
const audit = createRoute({
  getParentRoute: () => root,
  path: '/audit',
  validateSearch: parseAuditSearch,
  component: lazyRouteComponent(() => import('./audit/audit.js'), 'Audit'),
});
const access = createRoute({
  getParentRoute: () => root,
  path: '/access',
  validateSearch: parseAccessSearch,
  component: lazyRouteComponent(() => import('./access/access.js'), 'Access'),
});
const plans = createRoute({
  getParentRoute: () => root,
  path: '/plans',
  validateSearch: parsePlansSearch,
  component: lazyRouteComponent(() => import('./plans/plans.js'), 'Plans'),
});
const sessions = createRoute({
  getParentRoute: () => root,
  path: '/sessions',
  validateSearch: parseSessionsSearch,
  component: lazyRouteComponent(() => import('./sessions/sessions.js'), 'Sessions'),
});
const knowledge = createRoute({
  getParentRoute: () => root,
  path: '/knowledge',
  validateSearch: parseKnowledgeSearch,
  component: lazyRouteComponent(() => import('./knowledge/knowledge.js'), 'Knowledge'),
});
const router = createRouter({
  routeTree: root.addChildren([
    ...[toInbox('/'), toInbox('/sign-in'), inbox, message, messages, overview, fleet, talk],
    ...[plans, sessions, knowledge],
    ...[policies, guards, tools],
    ...[alerts, usage, audit, access],
  ]),
  basepath: '/console',
  // What no view reads is taken out of the address, so that a link that somebody has changed or that is old works.
  search: { strict: true },
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}

/** How long the first view waits for what was asked for ahead, so that it is drawn once and whole. */
const DRAWN_AFTER_MS = 150;

/** Reads who is signed in, and the list of the inbox where that is the view. */
async function readFirst(): Promise<void> {
  const filters = firstFilters(location);
  const session = await client.fetchQuery(sessionQuery);
  if (session && filters) await client.prefetchInfiniteQuery(requestsQuery(filters));
}

async function draw(element: HTMLElement): Promise<void> {
  const late = new Promise((resolve) => setTimeout(resolve, DRAWN_AFTER_MS));
  await Promise.race([readFirst().catch(() => undefined), late]); // the views tell what fails
  createRoot(element).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
}

const element = document.getElementById('console');
if (element) void draw(element);
