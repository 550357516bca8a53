// All browser tests: see rig.ts. Needs PAWL, the program, and CHROMIUM, the browser.

import './pages.test';
import './live.test';
