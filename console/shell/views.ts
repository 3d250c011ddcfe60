import type { LinkProps } from '@tanstack/react-router';
import type { Scope } from '../../contracts/primitives.js';
import type { Icon } from '../parts/icon.js';

/** A view of the console. */
export interface View {
  to: NonNullable<LinkProps['to']>;
  label: string;
  icon: Parameters<typeof Icon>[0]['name'];
  /** The second key of `G …`, which goes there. */
  key: string;
  /** Shown to whom: those who could read nothing there do not see it. */
  scope: Scope;
}

/** All views, by what one does there. */
export const VIEWS: { heading: string; views: View[] }[] = [
  {
    heading: 'Work',
    views: [
      { to: '/inbox', label: 'Inbox', icon: 'inbox', key: 'i', scope: 'read' },
      { to: '/messages', label: 'Messages', icon: 'messages', key: 'm', scope: 'read' },
      { to: '/talk', label: 'Talk', icon: 'talk', key: 't', scope: 'read' },
      { to: '/plans', label: 'Plans', icon: 'plans', key: 'n', scope: 'read' },
      { to: '/sessions', label: 'Sessions', icon: 'sessions', key: 's', scope: 'read' },
    ],
  },
  {
    heading: 'Watch',
    views: [
      { to: '/overview', label: 'Overview', icon: 'overview', key: 'o', scope: 'read' },
      { to: '/fleet', label: 'Fleet', icon: 'fleet', key: 'f', scope: 'read' },
      { to: '/knowledge', label: 'Knowledge', icon: 'knowledge', key: 'k', scope: 'read' },
      { to: '/alerts', label: 'Alerts', icon: 'bell', key: 'w', scope: 'admin' },
      { to: '/usage', label: 'Usage', icon: 'usage', key: 'u', scope: 'read' },
    ],
  },
  {
    heading: 'Rule',
    views: [
      { to: '/policies', label: 'Policies', icon: 'policies', key: 'p', scope: 'admin' },
      { to: '/guards', label: 'Guards', icon: 'guards', key: 'g', scope: 'admin' },
      { to: '/tools', label: 'Tools', icon: 'tools', key: 'l', scope: 'read' },
    ],
  },
  {
    heading: 'Admin',
    views: [
      { to: '/audit', label: 'Audit', icon: 'audit', key: 'a', scope: 'admin' },
      { to: '/access', label: 'Access', icon: 'key', key: 'c', scope: 'full' },
    ],
  },
];
