// All browser tests: see rig.ts. Needs PAWL, the program, and CHROMIUM, the browser.

import './keys.test';
import './pages.test';
import './story.test';
import './still.test';
import './live.test';
import './guard.test';
import './work.test';
import './alike.test';
import './settle.test';
import './find.test';
import './wall.test';
import './zoom.test';
import './boxes.test';
import './compare.test';
import './choose.test';
import './flow.test';
import './repositories.test';
import './restart.test';
import './history.test';
import './review.test';
import './idle.test';
import './terminal.test';
import './plan.test';
import './preview.test';
import './help.test';
