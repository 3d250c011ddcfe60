const KEY = 'console.theme';
const THEMES = ['system', 'light', 'dark'] as const;

/** How the page looks: as the system says, or always light or dark. */
export type Theme = (typeof THEMES)[number];

function apply(theme: Theme): void {
  document.documentElement.style.colorScheme = theme === 'system' ? '' : theme;
}

const stored = THEMES.find((theme) => theme === localStorage.getItem(KEY)) ?? 'system';
apply(stored);

/** Chooses how the page looks, here and at the next visit. */
export function chooseTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  apply(theme);
}
