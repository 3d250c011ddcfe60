import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** The page is served by the API below `/console`. One style sheet, so that a view that is loaded later finds its style. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  plugins: [react()],
  build: { target: 'es2023', cssCodeSplit: false, assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  logLevel: 'error',
});
