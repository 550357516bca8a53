// Deeds while agents work, and every key: they fail at times on a busy machine,
// so they run by `scripts/web deeds` until they do not. See rig.ts.

import './keys.test';
import './work.test';
import './alike.test';
import './help.test';
