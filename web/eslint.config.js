// What neither the compiler nor prettier sees: promises that nobody waits for, effects that are not what they seem.
import js from '@eslint/js';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';
import config from './svelte.config.js';

export default ts.config(
  { ignores: ['.tests/', 'src/lib/schema.d.ts'] },
  js.configs.recommended,
  ts.configs.recommendedTypeChecked,
  svelte.configs.recommended,
  {
    languageOptions: {
      globals: { ...globals.browser, ...globals.node },
      parserOptions: {
        projectService: { allowDefaultProject: ['*.js', 'public/*.js'] },
        extraFileExtensions: ['.svelte'],
      },
    },
    rules: {
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', package: 'node:test', name: ['test', 'describe', 'before', 'after'] },
          ],
        },
      ],
      // svelte-check knows the types of snippets and of generic components; eslint sees any there.
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/no-unnecessary-type-assertion': 'off',
      // svelte-check warns of more than what eslint compiles a component for.
      'svelte/no-unused-svelte-ignore': 'off',
      // {' '} is a space at the end of a line.
      'svelte/no-useless-mustaches': 'off',
      // An action is async by its type, also one that has nothing to wait for.
      '@typescript-eslint/require-await': 'off',
      // Output of terminals is read here.
      'no-control-regex': 'off',
      // Maps and sets are made anew inside of $derived, and are not changed afterwards.
      'svelte/prefer-svelte-reactivity': 'off',
    },
  },
  {
    // What the server answers is changed on its way, whatever it is.
    files: ['test/**'],
    rules: { '@typescript-eslint/no-explicit-any': 'off' },
  },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser, svelteConfig: config } },
  },
);
