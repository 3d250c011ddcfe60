/** The mark and the name. */
export function Logo() {
  return (
    <span className="logo">
      <svg viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" />
        <path d="M8 21 16 9l8 12" />
        <circle cx="16" cy="21" r="2.4" />
      </svg>
      Agent Fleet
    </span>
  );
}
