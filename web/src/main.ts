import { mount } from 'svelte';
import './app.css';
import App from './App.svelte';
import { clock } from './lib/clock.svelte';
import { keys } from './lib/keys.svelte';
import { live } from './lib/live.svelte';
import { router } from './lib/router.svelte';
import { enter } from './lib/session';
import { store } from './lib/store.svelte';
import { wholeTexts } from './lib/whole';

enter();
router.start();
clock.start();
keys.start();
live.start();
store.start();
wholeTexts(document);
mount(App, { target: document.getElementById('app')! });
