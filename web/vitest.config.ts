import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// What needs no browser. Tests of what a page decides lie beside it.
export default defineConfig({
  plugins: [svelte()],
  test: { include: ['src/**/*.test.ts', 'test/unit.test.ts'], environment: 'node', testTimeout: 60_000 },
});
