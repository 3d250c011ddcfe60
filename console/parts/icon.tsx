const PATHS = {
  inbox: 'M3 13h4l1.5 3h7L17 13h4M5.5 5h13L21 13v6H3v-6z',
  messages: 'M4 6h16M4 12h16M4 18h9',
  overview: 'M4 20v-8M10 20V5M16 20v-5M21 20H3',
  book: 'M5 4h11a3 3 0 0 1 3 3v13H8a3 3 0 0 1-3-3zM5 17a3 3 0 0 1 3-3h11',
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM21 21l-5-5',
  check: 'm5 13 4 4L19 7',
  cross: 'm6 6 12 12M18 6 6 18',
  back: 'm14 6-6 6 6 6',
  next: 'm10 6 6 6-6 6',
  person: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 20c1-4 4-6 8-6s7 2 8 6',
  filter: 'M4 6h16M7 12h10M10 18h4',
  fleet: 'M4 5h16v5H4zM4 14h16v5H4zM8 7.5h.01M8 16.5h.01',
  talk: 'M4 5h16v11H10l-5 4v-4H4z',
  plans: 'M4 4h6v5H4zM14 9.5h6v5h-6zM4 15h6v5H4zM10 6.5h2v11h-2M12 12h2',
  sessions: 'M4 5h12v9H9l-4 3v-3H4zM19 9v9h-1v3l-4-3H9',
  knowledge: 'M4 6a8 3 0 1 0 16 0a8 3 0 1 0 -16 0zv12c0 1.7 3.600 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.600 3 8 3s8-1.3 8-3',
  clip: 'm20 11-8 8a5 5 0 0 1-7-7l9-9a3.3 3.3 0 0 1 5 5l-9 9a1.7 1.7 0 0 1-2.5-2.5L15 7',
  bell: 'M6 16V10a6 6 0 0 1 12 0v6l2 2H4zM10 21h4',
  usage: 'M12 3v18M16.500 8c-1-1.500-2.500-2-4.500-2-6 0-6 6 0 6s6.500 6 0 6c-2 0-3.700-.7-4.700-2.200',
  audit: 'M6 3h9l4 4v14H6zM9 12h7M9 16h7M9 8h3',
  key: 'M15 4a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM11 13l-8 8M6 18l3 3M15 9h.01',
  menu: 'M4 7h16M4 12h16M4 17h16',
  policies: 'M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6zM9 12l2 2 4-4',
  guards: 'M3 12s3.5-6 9-6 9 6 9 6-3.5 6-9 6-9-6-9-6zM12 9.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z',
  tools:
    'M14.5 6.5a4 4 0 0 1 5-2l-2.6 2.6.3 2.3 2.3.3L22 7a4 4 0 0 1-5.6 4.6L7.5 20.5a2 2 0 0 1-3-3l9-8.9a4 4 0 0 1 1-2.1z',
  external: 'M14 4h6v6M20 4l-9 9M18 14v6H4V6h6',
};

/** A drawing beside a text that says the same. */
export function Icon({ name }: { name: keyof typeof PATHS }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
