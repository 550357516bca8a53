PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE autopilot (
  one          BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
  session      TEXT   NOT NULL,
  phase        TEXT   NOT NULL,
  mode         TEXT   NOT NULL,
  why          TEXT   NOT NULL,
  max_parallel BIGINT NOT NULL,
  exit         BIGINT NOT NULL,
  sprint       TEXT   NOT NULL, -- '' is none
  owner_pid    BIGINT NOT NULL, -- 0: it has ended
  owner_start  TEXT   NOT NULL,
  owner_boot   TEXT   NOT NULL,
  owner_host   TEXT   NOT NULL,
  started_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  ended_at     BIGINT NOT NULL,
  state        TEXT   NOT NULL
);
INSERT INTO "autopilot" VALUES(1,'6003nt0s','ended','auto','no task is ready',3,0,'',0,'','','',1795427273429,1795427276870,1795427276870,'{"settings":{"max_parallel":3,"wip_limit":0,"error_threshold":3,"mode":"auto","pause_on_error":false,"pause_limit":1800000000000,"verify":true,"wait_green":true,"target_limit":43200000000000},"mode":"auto","phase":"ended","why":"no task is ready","errors":0,"tally":{"started":2,"completed":2,"landed":2,"failed":0,"timed_out":0,"blocked":0,"stopped":0},"counts":{"ready":0,"review":0,"waiting":0,"failed":0,"queued":0},"dry":"no task is ready","verify_at":"2026-11-23T09:47:54.400836828Z","at":"2026-11-23T09:47:56.563058172Z"}');
CREATE TABLE autopilot_controls (
  id   INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT   NOT NULL,
  text TEXT   NOT NULL,
  at   BIGINT NOT NULL
);
CREATE TABLE case_history (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT   NOT NULL,
  at          BIGINT NOT NULL,
  action      TEXT   NOT NULL,
  actor       TEXT   NOT NULL,
  from_status TEXT   NOT NULL,
  to_status   TEXT   NOT NULL,
  why         TEXT   NOT NULL
);
INSERT INTO "case_history" VALUES(1,'task-001',1795427272700,'add','person','','pending','');
INSERT INTO "case_history" VALUES(2,'task-002',1795427272767,'add','person','','pending','');
INSERT INTO "case_history" VALUES(3,'task-001',1795427274373,'start','pawl','pending','active','score 0 like task-002, but older');
INSERT INTO "case_history" VALUES(4,'task-002',1795427274399,'start','pawl','pending','active','the only ready task');
INSERT INTO "case_history" VALUES(5,'task-002',1795427275974,'queue','pawl','active','review','its change waits to be landed');
INSERT INTO "case_history" VALUES(6,'task-001',1795427276359,'queue','pawl','active','review','its change waits to be landed');
INSERT INTO "case_history" VALUES(7,'task-002',1795427276530,'land','pawl','review','done','landed on main as 9d2a68e767');
INSERT INTO "case_history" VALUES(8,'task-001',1795427276561,'land','pawl','review','done','nothing to change: main has it already, at 9d2a68e767');
CREATE TABLE case_limits (
  id             TEXT   NOT NULL PRIMARY KEY REFERENCES cases (id) ON DELETE CASCADE,
  max_iterations BIGINT NOT NULL,
  timeout        BIGINT NOT NULL, -- milliseconds
  at             BIGINT NOT NULL
);
CREATE TABLE case_needs (
  dependent TEXT NOT NULL REFERENCES cases (id) ON DELETE CASCADE,
  need      TEXT NOT NULL REFERENCES cases (id),
  PRIMARY KEY (dependent, need)
) WITHOUT ROWID;
CREATE TABLE case_numbers (
  type TEXT   NOT NULL PRIMARY KEY,
  last BIGINT NOT NULL
);
INSERT INTO "case_numbers" VALUES('task',2);
CREATE TABLE case_reviews (
  seq        INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT   NOT NULL, -- the task's
  run        TEXT   NOT NULL,
  work       TEXT   NOT NULL, -- JSON: what is to land
  why        TEXT   NOT NULL,
  asked_at   BIGINT NOT NULL,
  decision   TEXT   NOT NULL, -- '' while it is open
  feedback   TEXT   NOT NULL,
  decided_at BIGINT NOT NULL
);
CREATE TABLE case_texts (
  id          TEXT NOT NULL PRIMARY KEY REFERENCES cases (id) ON DELETE CASCADE,
  description TEXT NOT NULL,
  acceptance  TEXT NOT NULL -- JSON list
);
CREATE TABLE cases (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  id            TEXT   NOT NULL UNIQUE,
  number        BIGINT NOT NULL, -- the counting part of the id
  type          TEXT   NOT NULL,
  title         TEXT   NOT NULL,
  tags          TEXT   NOT NULL, -- between line feeds, one before and one after each
  priority      BIGINT NOT NULL,
  parent        TEXT   NOT NULL, -- '' is none
  ref           TEXT   NOT NULL, -- '' is none
  status        TEXT   NOT NULL,
  why           TEXT   NOT NULL,
  retries       BIGINT NOT NULL,
  created_at    BIGINT NOT NULL,
  updated_at    BIGINT NOT NULL,
  ready         BIGINT NOT NULL,
  score         BIGINT NOT NULL,
  unmet         BIGINT NOT NULL, -- needs that are not done
  unblocks      BIGINT NOT NULL, -- cases that need it and are not done
  held          BIGINT NOT NULL,
  children      BIGINT NOT NULL,
  children_done BIGINT NOT NULL
);
INSERT INTO "cases" VALUES(1,'task-001',1,'task','One','',0,'','','done','nothing to change: main has it already, at 9d2a68e767',0,1795427272700,1795427276561,0,0,0,0,0,0,0);
INSERT INTO "cases" VALUES(2,'task-002',2,'task','Two','',0,'','','done','landed on main as 9d2a68e767',0,1795427272767,1795427276530,0,0,0,0,0,0,0);
CREATE TABLE controls (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  run      TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  kind     TEXT   NOT NULL,
  text     TEXT   NOT NULL,
  at       BIGINT NOT NULL,
  taken_at BIGINT NOT NULL
);
CREATE TABLE events (
  seq  INTEGER PRIMARY KEY AUTOINCREMENT,
  run  TEXT   NOT NULL,
  n    BIGINT, -- NULL: beside the run's own story
  at   BIGINT NOT NULL,
  kind TEXT   NOT NULL,
  data TEXT   NOT NULL
);
INSERT INTO "events" VALUES(1,'r348m1g9',1,1795427272075,'run.created','{"kind":"procedure","name":"build","root":"/home/ada/project","agent":"script","max_iterations":2}');
INSERT INTO "events" VALUES(2,'r348m1g9',2,1795427272595,'iteration.ended','{"number":1,"attempt":1,"started_at":"2026-11-23T09:47:52.153237375Z","elapsed":171886749,"agent":"script","strategy":"default","exit":{"code":0,"terminal":"ok"},"signal":{"kind":"pending","text":"which one?"},"progress":-1,"gates":[{"name":"tests","required":true,"status":"failed","elapsed":217000899,"exit_code":1,"passed":0,"total":-1}],"verified":true,"score":0,"failure":{"class":"unknown","kind":"work","transient":false,"severity":"medium","summary":"exit status 1 without a cause in the output","fingerprint":"8dc71a736a19dcaa","actions":["Run the failing command by itself, with more output: this one names no cause."],"failed_step":"tests"},"tree_known":true,"tree_before":"8b6f752a4131b58f70270ae3fc95567899bc2892","tree_after":"8b6f752a4131b58f70270ae3fc95567899bc2892","commits":0,"snapshot":"efa64305be72435840463c0cc1c3e2737858396c","tokens_in":0,"tokens_out":0,"cost_micro_usd":0,"cost_source":"none","calls":0,"output_bytes":180,"outcome":"asked","next":{"kind":"ask","seq":2,"why":"the agent asks: which one?","status":"pending","question":{"text":"which one?","attempts":["Iteration 1 (default): it asked: which one?"],"step":"tests"}}}');
INSERT INTO "events" VALUES(3,'r348m1g9',3,1795427272604,'question.asked','{"iteration":1,"text":"which one?"}');
INSERT INTO "events" VALUES(4,'autopilot',NULL,1795427274374,'task.started','{"case":"task-001","title":"One","why":"score 0 like task-002, but older"}');
INSERT INTO "events" VALUES(5,'autopilot',NULL,1795427274399,'task.started','{"case":"task-002","title":"Two","why":"the only ready task"}');
INSERT INTO "events" VALUES(6,'7y9tvsjd',1,1795427275464,'run.created','{"kind":"task","name":"task-002","root":"/home/ada/project","agent":"script","max_iterations":50}');
INSERT INTO "events" VALUES(7,'x906khvh',1,1795427275465,'run.created','{"kind":"task","name":"task-001","root":"/home/ada/project","agent":"script","max_iterations":50}');
INSERT INTO "events" VALUES(8,'7y9tvsjd',2,1795427275904,'iteration.ended','{"number":1,"attempt":1,"started_at":"2026-11-23T09:47:55.542588896Z","elapsed":145103023,"agent":"script","strategy":"default","exit":{"code":0,"terminal":"ok"},"signal":{"kind":"complete"},"progress":-1,"gates":[{"name":"tests","required":true,"status":"passed","elapsed":77107391,"exit_code":0,"passed":0,"total":-1,"tries":1}],"verified":true,"score":1000,"tree_known":true,"tree_before":"b7b2223ea57e5129e9fcac8f3b3f1623817516b4","tree_after":"e1eb996355e3c6d5c0bfd849b905b89f8dd6d8e4","files":["work"],"commits":0,"snapshot":"7a31796e25cb515d73269d13c992c79f7e0ecc92","tokens_in":0,"tokens_out":0,"cost_micro_usd":0,"cost_source":"none","calls":0,"output_bytes":247,"outcome":"success","next":{"kind":"finish","seq":2,"why":"COMPLETE, and the gates pass","status":"completed"}}');
INSERT INTO "events" VALUES(9,'7y9tvsjd',3,1795427275906,'finished','{"status":"completed","why":"COMPLETE, and the gates pass","iteration":1,"exit":0,"elapsed":440702446,"cost_micro_usd":0,"cost_known":false}');
INSERT INTO "events" VALUES(10,'autopilot',NULL,1795427275975,'task.settled','{"case":"task-002","title":"Two","run":"7y9tvsjd","action":"verify","why":"COMPLETE, and the gates pass"}');
INSERT INTO "events" VALUES(11,'x906khvh',2,1795427276228,'iteration.ended','{"number":1,"attempt":1,"started_at":"2026-11-23T09:47:55.547647566Z","elapsed":139010558,"agent":"script","strategy":"default","exit":{"code":0,"terminal":"ok"},"signal":{"kind":"complete"},"progress":-1,"gates":[{"name":"tests","required":true,"status":"passed","elapsed":345334074,"exit_code":0,"passed":0,"total":-1,"tries":1}],"verified":true,"score":1000,"tree_known":true,"tree_before":"b7b2223ea57e5129e9fcac8f3b3f1623817516b4","tree_after":"e1eb996355e3c6d5c0bfd849b905b89f8dd6d8e4","files":["work"],"commits":0,"snapshot":"f556161e7e9d6b32439e0b3987c6736ba9e59ccc","tokens_in":0,"tokens_out":0,"cost_micro_usd":0,"cost_source":"none","calls":0,"output_bytes":247,"outcome":"success","next":{"kind":"finish","seq":2,"why":"COMPLETE, and the gates pass","status":"completed"}}');
INSERT INTO "events" VALUES(12,'x906khvh',3,1795427276229,'finished','{"status":"completed","why":"COMPLETE, and the gates pass","iteration":1,"exit":0,"elapsed":762129025,"cost_micro_usd":0,"cost_known":false}');
INSERT INTO "events" VALUES(13,'autopilot',NULL,1795427276360,'task.settled','{"case":"task-001","title":"One","run":"x906khvh","action":"verify","why":"COMPLETE, and the gates pass"}');
INSERT INTO "events" VALUES(14,'queue:refs/heads/main',NULL,1795427276530,'queue.landed','{"kind":"landed","id":"task-002","text":"landed on main as 9d2a68e767","commit":"9d2a68e7677f5bf523d86871bd5d3fa20170ae21"}');
INSERT INTO "events" VALUES(15,'queue:refs/heads/main',NULL,1795427276561,'queue.landed','{"kind":"landed","id":"task-001","text":"nothing to change: main has it already, at 9d2a68e767","commit":"9d2a68e7677f5bf523d86871bd5d3fa20170ae21"}');
INSERT INTO "events" VALUES(16,'autopilot',NULL,1795427276629,'task.landed','{"case":"task-002","title":"Two"}');
INSERT INTO "events" VALUES(17,'autopilot',NULL,1795427276868,'task.landed','{"case":"task-001","title":"One"}');
CREATE TABLE gate_records (
  key    TEXT   NOT NULL PRIMARY KEY,
  tree   TEXT   NOT NULL,
  green  BIGINT NOT NULL,
  at     BIGINT NOT NULL,
  record TEXT   NOT NULL
);
INSERT INTO "gate_records" VALUES('065504ca899469fb20e3758ad3bf7966993e0123727332f9444712858990eeec','b7b2223ea57e5129e9fcac8f3b3f1623817516b4',1,1795427274350,'{"verdict":{"tree":"b7b2223ea57e5129e9fcac8f3b3f1623817516b4","green":true,"summary":"1 of 1 gates passed"},"gates":[{"name":"tests","required":true,"status":"passed","elapsed":190706821,"exit_code":0,"passed":0,"total":-1,"tries":1}]}');
INSERT INTO "gate_records" VALUES('da3d745a01fff15385d170e2954a85ce4067bc33db341d7d2c117273d44ff499','e1eb996355e3c6d5c0bfd849b905b89f8dd6d8e4',1,1795427276505,'{"verdict":{"tree":"e1eb996355e3c6d5c0bfd849b905b89f8dd6d8e4","green":true,"summary":"1 of 1 gates passed"},"gates":[{"name":"tests","required":true,"status":"passed","elapsed":176567198,"exit_code":0,"passed":0,"total":-1,"tries":1}]}');
CREATE TABLE iterations (
  run        TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  number     BIGINT NOT NULL,
  attempt    BIGINT NOT NULL,
  outcome    TEXT   NOT NULL,
  started_at BIGINT NOT NULL,
  elapsed    BIGINT NOT NULL, -- milliseconds
  record     TEXT   NOT NULL,
  PRIMARY KEY (run, number, attempt)
);
INSERT INTO "iterations" VALUES('r348m1g9',1,1,'asked',1795427272153,171,'{"number":1,"attempt":1,"started_at":"2026-11-23T09:47:52.153237375Z","elapsed":171886749,"agent":"script","strategy":"default","exit":{"code":0,"terminal":"ok"},"signal":{"kind":"pending","text":"which one?"},"progress":-1,"gates":[{"name":"tests","required":true,"status":"failed","elapsed":217000899,"exit_code":1,"passed":0,"total":-1}],"verified":true,"score":0,"failure":{"class":"unknown","kind":"work","transient":false,"severity":"medium","summary":"exit status 1 without a cause in the output","fingerprint":"8dc71a736a19dcaa","actions":["Run the failing command by itself, with more output: this one names no cause."],"failed_step":"tests"},"tree_known":true,"tree_before":"8b6f752a4131b58f70270ae3fc95567899bc2892","tree_after":"8b6f752a4131b58f70270ae3fc95567899bc2892","commits":0,"snapshot":"efa64305be72435840463c0cc1c3e2737858396c","tokens_in":0,"tokens_out":0,"cost_micro_usd":0,"cost_source":"none","calls":0,"output_bytes":180,"outcome":"asked"}');
INSERT INTO "iterations" VALUES('7y9tvsjd',1,1,'success',1795427275542,145,'{"number":1,"attempt":1,"started_at":"2026-11-23T09:47:55.542588896Z","elapsed":145103023,"agent":"script","strategy":"default","exit":{"code":0,"terminal":"ok"},"signal":{"kind":"complete"},"progress":-1,"gates":[{"name":"tests","required":true,"status":"passed","elapsed":77107391,"exit_code":0,"passed":0,"total":-1,"tries":1}],"verified":true,"score":1000,"tree_known":true,"tree_before":"b7b2223ea57e5129e9fcac8f3b3f1623817516b4","tree_after":"e1eb996355e3c6d5c0bfd849b905b89f8dd6d8e4","files":["work"],"commits":0,"snapshot":"7a31796e25cb515d73269d13c992c79f7e0ecc92","tokens_in":0,"tokens_out":0,"cost_micro_usd":0,"cost_source":"none","calls":0,"output_bytes":247,"outcome":"success"}');
INSERT INTO "iterations" VALUES('x906khvh',1,1,'success',1795427275547,139,'{"number":1,"attempt":1,"started_at":"2026-11-23T09:47:55.547647566Z","elapsed":139010558,"agent":"script","strategy":"default","exit":{"code":0,"terminal":"ok"},"signal":{"kind":"complete"},"progress":-1,"gates":[{"name":"tests","required":true,"status":"passed","elapsed":345334074,"exit_code":0,"passed":0,"total":-1,"tries":1}],"verified":true,"score":1000,"tree_known":true,"tree_before":"b7b2223ea57e5129e9fcac8f3b3f1623817516b4","tree_after":"e1eb996355e3c6d5c0bfd849b905b89f8dd6d8e4","files":["work"],"commits":0,"snapshot":"f556161e7e9d6b32439e0b3987c6736ba9e59ccc","tokens_in":0,"tokens_out":0,"cost_micro_usd":0,"cost_source":"none","calls":0,"output_bytes":247,"outcome":"success"}');
CREATE TABLE landings (
  seq    INTEGER PRIMARY KEY AUTOINCREMENT,
  target TEXT   NOT NULL,
  task   TEXT   NOT NULL,
  id     TEXT   NOT NULL, -- of the commit
  at     BIGINT NOT NULL,
  data   TEXT   NOT NULL
);
INSERT INTO "landings" VALUES(1,'refs/heads/main','task-002','9d2a68e7677f5bf523d86871bd5d3fa20170ae21',1795427276530,'{"task":"task-002","run":"7y9tvsjd","commit":"9d2a68e7677f5bf523d86871bd5d3fa20170ae21","tree":"e1eb996355e3c6d5c0bfd849b905b89f8dd6d8e4","batch":1,"from":"984e08cb07bd4077e812b74b9e6c547707bd2d60","to":"9d2a68e7677f5bf523d86871bd5d3fa20170ae21","at":"2026-11-23T09:47:56.530409042Z"}');
INSERT INTO "landings" VALUES(2,'refs/heads/main','task-001','9d2a68e7677f5bf523d86871bd5d3fa20170ae21',1795427276561,'{"task":"task-001","run":"x906khvh","commit":"9d2a68e7677f5bf523d86871bd5d3fa20170ae21","tree":"e1eb996355e3c6d5c0bfd849b905b89f8dd6d8e4","batch":2,"from":"9d2a68e7677f5bf523d86871bd5d3fa20170ae21","to":"9d2a68e7677f5bf523d86871bd5d3fa20170ae21","empty":true,"at":"2026-11-23T09:47:56.561763815Z"}');
CREATE TABLE learned (
  class     TEXT   NOT NULL,
  strategy  TEXT   NOT NULL,
  wins      BIGINT NOT NULL,
  losses    BIGINT NOT NULL,
  day       BIGINT NOT NULL, -- since 1970, up to which they have faded
  successes BIGINT NOT NULL,
  failures  BIGINT NOT NULL,
  used_at   BIGINT NOT NULL, -- milliseconds since 1970
  PRIMARY KEY (class, strategy)
);
CREATE TABLE migrations (
			number BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL);
INSERT INTO "migrations" VALUES(1,'0001_runs','7b2a416a249f152f729d86b5ca1a20a03c4d6286ef8191984d15a3763af53402',1795427271716);
INSERT INTO "migrations" VALUES(2,'0002_learned','d57cd6c35ab7a08a742b01e855a0fbcf6ae50c0604a94dbafac0e793ad6e611f',1795427271728);
INSERT INTO "migrations" VALUES(3,'0003_board','40ebf7a247817b4e79506907e668681c7a93db83600e03aaa124c6a62b4c40f2',1795427271729);
INSERT INTO "migrations" VALUES(4,'0004_workspaces','a24e2602c8f5fc329853d38787c714401b67ce9d102474f04e1c7ba8477dd847',1795427271729);
INSERT INTO "migrations" VALUES(5,'0005_steps','44f9ecaecd588e17f58b0d3cc335ae625c5a74fbc533bba2959d0f48335cd20e',1795427271731);
INSERT INTO "migrations" VALUES(6,'0006_queue','9451a431ce59b55905e3c55a1edcd507f373c7407ea0c77bbbd97cce58ec40bc',1795427271731);
INSERT INTO "migrations" VALUES(7,'0007_autopilot','8d65072b5a261172291a05b27c4400904c7586ebc7ce9922bb9989e1083ea029',1795427271732);
INSERT INTO "migrations" VALUES(8,'0008_tallies','ae83740d4f1d58b3e7f47a0dc956ab68451ced6c8015e2cd2ffbbc24f089e6f5',1795427271774);
CREATE TABLE queue_asks (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  target   TEXT   NOT NULL,
  event    TEXT   NOT NULL,
  at       BIGINT NOT NULL,
  taken_at BIGINT NOT NULL
);
INSERT INTO "queue_asks" VALUES(1,'refs/heads/main','{"kind":"asked","at":"0001-01-01T00:00:00Z","ask":{"wish":"verify"}}',1795427273456,1795427273667);
INSERT INTO "queue_asks" VALUES(2,'refs/heads/main','{"kind":"asked","at":"0001-01-01T00:00:00Z","ask":{"wish":"verify"}}',1795427274400,1795427274485);
INSERT INTO "queue_asks" VALUES(3,'refs/heads/main','{"kind":"added","at":"0001-01-01T00:00:00Z","entry":{"id":"task-002","run":"7y9tvsjd","commit":"c6321976f6d8b8e45bf9527ccc57887cf9a30f55","base":"984e08cb07bd4077e812b74b9e6c547707bd2d60","title":"Two","added_at":"2026-11-23T09:47:55.904806126Z","order":0,"status":""}}',1795427275974,1795427276039);
INSERT INTO "queue_asks" VALUES(4,'refs/heads/main','{"kind":"added","at":"0001-01-01T00:00:00Z","entry":{"id":"task-001","run":"x906khvh","commit":"b7366c35c6b89b07d4290b7354f3f2e872348c52","base":"984e08cb07bd4077e812b74b9e6c547707bd2d60","title":"One","added_at":"2026-11-23T09:47:56.228085245Z","order":0,"status":""}}',1795427276359,1795427276367);
CREATE TABLE queue_entries (
  target TEXT NOT NULL REFERENCES queues (target) ON DELETE CASCADE,
  task   TEXT NOT NULL,
  entry  TEXT NOT NULL,
  PRIMARY KEY (target, task)
) WITHOUT ROWID;
CREATE TABLE queues (
  target      TEXT   NOT NULL PRIMARY KEY, -- the full name of the ref
  n           BIGINT NOT NULL, -- number of the last step
  owner_pid   BIGINT NOT NULL, -- 0: nobody works on it
  owner_start TEXT   NOT NULL,
  owner_boot  TEXT   NOT NULL,
  owner_host  TEXT   NOT NULL,
  updated_at  BIGINT NOT NULL,
  state       TEXT   NOT NULL -- without its entries
);
INSERT INTO "queues" VALUES('refs/heads/main',14,0,'','','',1795427276561,'{"seq":12,"stepped":"2026-11-23T09:47:56.561763815Z","target":"refs/heads/main","policy":{"batch":8,"retries":3,"timeout":3600000000000,"action":"defer","resolve":true,"push":false,"propose":false},"tip":"9d2a68e7677f5bf523d86871bd5d3fa20170ae21","green":"e1eb996355e3c6d5c0bfd849b905b89f8dd6d8e4","window":8,"batches":2,"arrived":2,"command":{"seq":12,"kind":"wait","why":"nothing is ready to land"},"out":{"landings":[{"task":"task-001","run":"x906khvh","commit":"9d2a68e7677f5bf523d86871bd5d3fa20170ae21","tree":"e1eb996355e3c6d5c0bfd849b905b89f8dd6d8e4","batch":2,"from":"9d2a68e7677f5bf523d86871bd5d3fa20170ae21","to":"9d2a68e7677f5bf523d86871bd5d3fa20170ae21","empty":true,"at":"2026-11-23T09:47:56.561763815Z"}],"cases":[{"id":"task-001","move":"landed","why":"nothing to change: main has it already, at 9d2a68e767"}],"notes":[{"kind":"landed","id":"task-001","text":"nothing to change: main has it already, at 9d2a68e767","commit":"9d2a68e7677f5bf523d86871bd5d3fa20170ae21"}]}}');
CREATE TABLE runs (
  id             TEXT   NOT NULL PRIMARY KEY,
  kind           TEXT   NOT NULL,
  name           TEXT   NOT NULL,
  root           TEXT   NOT NULL,
  status         TEXT   NOT NULL,
  why            TEXT   NOT NULL,
  n              BIGINT NOT NULL, -- number of the last event
  iteration      BIGINT NOT NULL,
  max_iterations BIGINT NOT NULL,
  agent          TEXT   NOT NULL,
  cost           BIGINT NOT NULL,
  cost_known     BIGINT NOT NULL,
  tokens_in      BIGINT NOT NULL,
  tokens_out     BIGINT NOT NULL,
  owner_pid      BIGINT NOT NULL, -- 0: nobody drives the run
  owner_start    TEXT   NOT NULL,
  owner_boot     TEXT   NOT NULL,
  owner_host     TEXT   NOT NULL,
  started_at     BIGINT NOT NULL,
  updated_at     BIGINT NOT NULL,
  ended_at       BIGINT NOT NULL,
  elapsed        BIGINT NOT NULL, -- milliseconds
  state          TEXT   NOT NULL
);
INSERT INTO "runs" VALUES('r348m1g9','procedure','build','/home/ada/project','pending','the agent asks: which one?',3,1,2,'script',0,0,0,0,0,'','','',1795427272075,1795427272604,0,519,'{"policy":{"kind":"procedure","max_iterations":2,"failure_threshold":3,"thrashing_threshold":5,"stuck_threshold":5,"repeated_threshold":5,"max_waits":20,"max_wait":21600000000000,"iteration_timeout":1800000000000,"idle_timeout":600000000000,"max_cost_micro_usd":20000000,"max_iteration_cost_micro_usd":5000000,"max_iteration_calls":500,"agent":"script","mode":"auto"},"status":"pending","why":"the agent asks: which one?","started_at":"2026-11-23T09:47:52.075542572Z","last_at":"2026-11-23T09:47:52.595178631Z","iteration":1,"limit":2,"spent":{"cost_micro_usd":0,"cost_known":false,"tokens_in":0,"tokens_out":0,"calls":0,"active":171886749,"wall":519636069},"command":{"kind":"ask","seq":2,"why":"the agent asks: which one?","status":"pending","question":{"text":"which one?","attempts":["Iteration 1 (default): it asked: which one?"],"step":"tests"}},"seq":2,"guards":{"last":[0,0,0]},"best":{"number":1,"snapshot":"efa64305be72435840463c0cc1c3e2737858396c"},"recent":[{"number":1,"strategy":"default","outcome":"asked","summary":"it asked: which one?","score":0}],"wrong":"gate tests is red: exit status 1 without a cause in the output","strategy":"default","question":{"text":"which one?","attempts":["Iteration 1 (default): it asked: which one?"],"step":"tests"}}');
INSERT INTO "runs" VALUES('7y9tvsjd','task','task-002','/home/ada/project','completed','COMPLETE, and the gates pass',3,1,50,'script',0,0,0,0,0,'','','',1795427275464,1795427275906,1795427275906,440,'{"policy":{"kind":"task","max_iterations":50,"failure_threshold":5,"thrashing_threshold":5,"stuck_threshold":5,"repeated_threshold":5,"max_waits":20,"max_wait":21600000000000,"task_timeout":1800000000000,"iteration_timeout":1800000000000,"idle_timeout":600000000000,"max_cost_micro_usd":20000000,"max_iteration_cost_micro_usd":5000000,"max_iteration_calls":500,"agent":"script","mode":"auto"},"status":"completed","why":"COMPLETE, and the gates pass","started_at":"2026-11-23T09:47:55.46410369Z","last_at":"2026-11-23T09:47:55.904806126Z","iteration":1,"limit":50,"spent":{"cost_micro_usd":0,"cost_known":false,"tokens_in":0,"tokens_out":0,"calls":0,"active":145103023,"wall":440702446},"command":{"kind":"finish","seq":2,"why":"COMPLETE, and the gates pass","status":"completed"},"seq":2,"guards":{"scored":1,"last":[1000,0,0],"top":1000,"trees":["e1eb996355e3c6d5c0bfd849b905b89f8dd6d8e4"]},"best":{"number":1,"score":1000,"snapshot":"7a31796e25cb515d73269d13c992c79f7e0ecc92"},"recent":[{"number":1,"strategy":"default","outcome":"success","score":1000}],"strategy":"default"}');
INSERT INTO "runs" VALUES('x906khvh','task','task-001','/home/ada/project','completed','COMPLETE, and the gates pass',3,1,50,'script',0,0,0,0,0,'','','',1795427275465,1795427276229,1795427276229,762,'{"policy":{"kind":"task","max_iterations":50,"failure_threshold":5,"thrashing_threshold":5,"stuck_threshold":5,"repeated_threshold":5,"max_waits":20,"max_wait":21600000000000,"task_timeout":1800000000000,"iteration_timeout":1800000000000,"idle_timeout":600000000000,"max_cost_micro_usd":20000000,"max_iteration_cost_micro_usd":5000000,"max_iteration_calls":500,"agent":"script","mode":"auto"},"status":"completed","why":"COMPLETE, and the gates pass","started_at":"2026-11-23T09:47:55.46595622Z","last_at":"2026-11-23T09:47:56.228085245Z","iteration":1,"limit":50,"spent":{"cost_micro_usd":0,"cost_known":false,"tokens_in":0,"tokens_out":0,"calls":0,"active":139010558,"wall":762129025},"command":{"kind":"finish","seq":2,"why":"COMPLETE, and the gates pass","status":"completed"},"seq":2,"guards":{"scored":1,"last":[1000,0,0],"top":1000,"trees":["e1eb996355e3c6d5c0bfd849b905b89f8dd6d8e4"]},"best":{"number":1,"score":1000,"snapshot":"f556161e7e9d6b32439e0b3987c6736ba9e59ccc"},"recent":[{"number":1,"strategy":"default","outcome":"success","score":1000}],"strategy":"default"}');
CREATE TABLE setups (
  run   TEXT NOT NULL PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  setup TEXT NOT NULL
);
INSERT INTO "setups" VALUES('r348m1g9','{"flags":{"max_iterations":"2"},"sandbox":"normal: writes, secrets and signals, by user, mount and process namespaces, Landlock 7, seccomp, control groups","checks":[{"name":"tests","command":"test -f work","required":true,"timeout":300000000000}],"base":"8b6f752a4131b58f70270ae3fc95567899bc2892","guarded":{"hooks":"9d9c9e01c2ac865372cfe8859e6a48d83099d7a43d3818685a2f8912c8f52cd5","config":"2abfcce4a97075bb538752c754aa6ca4e45d0152125b8873a1938ab71e2a6cc6","attributes":"","places":"{}","head":"ref: refs/heads/main\n","replace":"ref id\n"},"rest":"8b6f752a4131b58f70270ae3fc95567899bc2892"}');
INSERT INTO "setups" VALUES('7y9tvsjd','{"flags":{},"sandbox":"normal: writes, secrets and signals, by user, mount and process namespaces, Landlock 7, seccomp, control groups","checks":[{"name":"tests","command":"true","required":true,"timeout":300000000000}],"place":"/home/ada/.local/state/pawl/repo-b6f9e691/workspaces/task-002","base":"b7b2223ea57e5129e9fcac8f3b3f1623817516b4","guarded":{"hooks":"","config":"d8ace4c806ee18ddbc3e8c76e02d910e3a97402be40d62f062ecc720167263a1","attributes":"","places":"{\"/home/ada/.local/state/pawl/repo-b6f9e691/workspaces/task-002/.git\\u0000objects/info/alternates\":\"a file with /home/ada/project/.git/objects\\n\"}","head":"ref: refs/heads/pawl/task-002\n","replace":"ref id\n"}}');
INSERT INTO "setups" VALUES('x906khvh','{"flags":{},"sandbox":"normal: writes, secrets and signals, by user, mount and process namespaces, Landlock 7, seccomp, control groups","checks":[{"name":"tests","command":"true","required":true,"timeout":300000000000}],"place":"/home/ada/.local/state/pawl/repo-b6f9e691/workspaces/task-001","base":"b7b2223ea57e5129e9fcac8f3b3f1623817516b4","guarded":{"hooks":"","config":"d8ace4c806ee18ddbc3e8c76e02d910e3a97402be40d62f062ecc720167263a1","attributes":"","places":"{\"/home/ada/.local/state/pawl/repo-b6f9e691/workspaces/task-001/.git\\u0000objects/info/alternates\":\"a file with /home/ada/project/.git/objects\\n\"}","head":"ref: refs/heads/pawl/task-001\n","replace":"ref id\n"}}');
CREATE TABLE slots (
  id          TEXT   NOT NULL PRIMARY KEY, -- the task's
  run         TEXT   NOT NULL,
  since       BIGINT NOT NULL,
  activity    TEXT   NOT NULL,
  activity_at BIGINT NOT NULL
);
CREATE TABLE sprints (
  id         TEXT   NOT NULL PRIMARY KEY, -- YYYY-MM-DD-NNN
  started_at BIGINT NOT NULL,
  ended_at   BIGINT NOT NULL, -- 0: it runs, or was never ended
  stats      TEXT   NOT NULL
);
CREATE TABLE steps (
  run        TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  step       TEXT   NOT NULL, -- with its matrix values, below its workflow
  n          BIGINT NOT NULL, -- 1-based
  iteration  BIGINT NOT NULL,
  attempt    BIGINT NOT NULL,
  status     TEXT   NOT NULL,
  hash       TEXT   NOT NULL, -- of what the file says
  input      TEXT   NOT NULL, -- of what it was given
  started_at BIGINT NOT NULL,
  elapsed    BIGINT NOT NULL,
  record     TEXT   NOT NULL,
  output     TEXT   NOT NULL,
  PRIMARY KEY (run, step, n)
);
CREATE TABLE tallies (
  quarter         BIGINT NOT NULL, -- of an hour, since 1970
  sprint          TEXT   NOT NULL, -- that ran then, '' is none
  agent           TEXT   NOT NULL, -- '' is none
  iterations      BIGINT NOT NULL DEFAULT 0, -- without attempts that a provider's limit cut off
  succeeded       BIGINT NOT NULL DEFAULT 0, -- of these
  failed          BIGINT NOT NULL DEFAULT 0, -- of these
  retries         BIGINT NOT NULL DEFAULT 0, -- of these, those after a failed one of their run
  cured           BIGINT NOT NULL DEFAULT 0, -- of the retries, those that succeeded
  elapsed         BIGINT NOT NULL DEFAULT 0, -- milliseconds, of iterations and attempts
  fastest         BIGINT,                    -- milliseconds, of an iteration
  slowest         BIGINT,
  cost            BIGINT NOT NULL DEFAULT 0, -- micro-dollars, where it is known
  cost_known      BIGINT NOT NULL DEFAULT 0, -- of how many it is known
  tokens_in       BIGINT NOT NULL DEFAULT 0,
  tokens_out      BIGINT NOT NULL DEFAULT 0,
  waited          BIGINT NOT NULL DEFAULT 0, -- milliseconds, for providers and backoffs
  asked           BIGINT NOT NULL DEFAULT 0, -- milliseconds, for answers
  guards          BIGINT NOT NULL DEFAULT 0, -- that tripped
  conflicts       BIGINT NOT NULL DEFAULT 0, -- of landings
  started         BIGINT NOT NULL DEFAULT 0, -- tasks
  landed          BIGINT NOT NULL DEFAULT 0,
  gave_up         BIGINT NOT NULL DEFAULT 0, -- tasks that failed
  timed_out       BIGINT NOT NULL DEFAULT 0,
  blocked         BIGINT NOT NULL DEFAULT 0,
  task_iterations BIGINT NOT NULL DEFAULT 0, -- of the tasks that landed, in all their runs
  fewest          BIGINT,                    -- iterations of one of them
  most            BIGINT,
  PRIMARY KEY (quarter, sprint, agent)
) WITHOUT ROWID;
INSERT INTO "tallies" VALUES(1994919,'','',0,0,0,0,0,0,NULL,NULL,0,0,0,0,0,0,0,0,2,0,0,0,0,0,NULL,NULL);
INSERT INTO "tallies" VALUES(1994919,'','script',3,2,0,0,0,455,139,171,0,0,0,0,0,0,0,0,0,2,0,0,0,2,1,1);
CREATE TABLE workspaces (
  id          TEXT   NOT NULL PRIMARY KEY, -- the task; of a clone that waits for one, a name of its own
  kind        TEXT   NOT NULL,             -- task, integration, warm
  state       TEXT   NOT NULL,             -- making, held, kept, warm, removing
  why         TEXT   NOT NULL,             -- why it is kept
  repo        TEXT   NOT NULL,             -- git directory of the repository that it borrows from
  dir         TEXT   NOT NULL,             -- the folder
  own         TEXT   NOT NULL,             -- pawl's folder for it
  folder      TEXT   NOT NULL,             -- device and inode of the folder, '' before it is there
  branch      TEXT   NOT NULL,
  base        TEXT   NOT NULL,             -- commit
  head        TEXT   NOT NULL,             -- commit that was collected last, '' is none
  ports       BIGINT NOT NULL,             -- first of the block, 0 is none
  setup       TEXT   NOT NULL,             -- hash of the setup that was done, '' is none
  landed      BIGINT NOT NULL,
  owner_pid   BIGINT NOT NULL,
  owner_start TEXT   NOT NULL,
  owner_boot  TEXT   NOT NULL,
  owner_host  TEXT   NOT NULL,
  taken_at    BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  keep_until  BIGINT NOT NULL              -- 0 is without end
);
INSERT INTO "workspaces" VALUES('warm-rgx3og2fva','warm','warm','waits for a task','/home/ada/project/.git','/home/ada/.local/state/pawl/repo-b6f9e691/workspaces/.warm-rgx3og2fva','/home/ada/.local/state/pawl/repo-b6f9e691/pool/rgx3og2fva','27:6230318','','','',0,'',0,0,'','','',1795427276067,1795427276505,0);
INSERT INTO "workspaces" VALUES('warm-kewskdhyxf','warm','warm','waits for a task','/home/ada/project/.git','/home/ada/.local/state/pawl/repo-b6f9e691/workspaces/.warm-kewskdhyxf','/home/ada/.local/state/pawl/repo-b6f9e691/pool/kewskdhyxf','27:6229153','','','',0,'',0,0,'','','',1795427274785,1795427276629,0);
INSERT INTO "workspaces" VALUES('warm-ikbjam53m5','warm','warm','waits for a task','/home/ada/project/.git','/home/ada/.local/state/pawl/repo-b6f9e691/workspaces/.warm-ikbjam53m5','/home/ada/.local/state/pawl/repo-b6f9e691/pool/ikbjam53m5','27:6227866','','','',0,'',0,0,'','','',1795427274398,1795427276868,0);
CREATE INDEX runs_by_name ON runs (root, name, started_at);
CREATE INDEX runs_by_start ON runs (started_at);
CREATE INDEX runs_open ON runs (started_at) WHERE ended_at = 0;
CREATE INDEX runs_owned ON runs (root, name) WHERE owner_pid <> 0;
CREATE UNIQUE INDEX events_once ON events (run, n) WHERE n IS NOT NULL;
CREATE INDEX events_of_run ON events (run);
CREATE INDEX controls_open ON controls (run) WHERE taken_at = 0;
CREATE INDEX cases_next ON cases (priority DESC, score DESC, created_at, number) WHERE ready = 1;
CREATE INDEX cases_of_parent ON cases (parent) WHERE parent <> '';
CREATE INDEX cases_by_status ON cases (status);
CREATE UNIQUE INDEX cases_by_ref ON cases (ref) WHERE ref <> '';
CREATE INDEX case_needs_by_need ON case_needs (need);
CREATE INDEX case_history_of_case ON case_history (id);
CREATE INDEX queue_asks_open ON queue_asks (target) WHERE taken_at = 0;
CREATE INDEX landings_of_task ON landings (task);
CREATE INDEX gate_records_of_tree ON gate_records (tree);
CREATE INDEX case_reviews_of_case ON case_reviews (id);
CREATE INDEX case_reviews_open ON case_reviews (seq) WHERE decision = '';
CREATE INDEX runs_of_task ON runs (name, started_at) WHERE kind = 'task';
CREATE INDEX sprints_by_start ON sprints (started_at, ended_at, id);
CREATE VIEW more AS SELECT * FROM tallies;
CREATE TRIGGER add_up INSTEAD OF INSERT ON more BEGIN
  INSERT INTO tallies (quarter, sprint, agent,
      iterations, succeeded, failed, retries, cured, elapsed, fastest, slowest, cost, cost_known, tokens_in, tokens_out, waited, asked,
      guards, conflicts, started, landed, gave_up, timed_out, blocked, task_iterations, fewest, most)
    VALUES (
      NEW.quarter, NEW.sprint, NEW.agent, coalesce(NEW.iterations, 0), coalesce(NEW.succeeded, 0), coalesce(NEW.failed, 0),
      coalesce(NEW.retries, 0), coalesce(NEW.cured, 0), coalesce(NEW.elapsed, 0), NEW.fastest, NEW.slowest, coalesce(NEW.cost, 0),
      coalesce(NEW.cost_known, 0), coalesce(NEW.tokens_in, 0), coalesce(NEW.tokens_out, 0), coalesce(NEW.waited, 0), coalesce(NEW.asked, 0),
      coalesce(NEW.guards, 0), coalesce(NEW.conflicts, 0), coalesce(NEW.started, 0), coalesce(NEW.landed, 0), coalesce(NEW.gave_up, 0),
      coalesce(NEW.timed_out, 0), coalesce(NEW.blocked, 0), coalesce(NEW.task_iterations, 0), NEW.fewest, NEW.most)
    ON CONFLICT (quarter, sprint, agent) DO UPDATE SET
      iterations = iterations + excluded.iterations, succeeded = succeeded + excluded.succeeded, failed = failed + excluded.failed,
      retries = retries + excluded.retries, cured = cured + excluded.cured, elapsed = elapsed + excluded.elapsed,
      fastest = coalesce(min(fastest, excluded.fastest), fastest, excluded.fastest),
      slowest = coalesce(max(slowest, excluded.slowest), slowest, excluded.slowest), cost = cost + excluded.cost,
      cost_known = cost_known + excluded.cost_known, tokens_in = tokens_in + excluded.tokens_in,
      tokens_out = tokens_out + excluded.tokens_out, waited = waited + excluded.waited, asked = asked + excluded.asked,
      guards = guards + excluded.guards, conflicts = conflicts + excluded.conflicts, started = started + excluded.started,
      landed = landed + excluded.landed, gave_up = gave_up + excluded.gave_up, timed_out = timed_out + excluded.timed_out,
      blocked = blocked + excluded.blocked, task_iterations = task_iterations + excluded.task_iterations,
      fewest = coalesce(min(fewest, excluded.fewest), fewest, excluded.fewest),
      most = coalesce(max(most, excluded.most), most, excluded.most);
END;
CREATE VIEW iteration_facts AS
  SELECT i.run, i.number, i.attempt, i.started_at / 900000 AS quarter,
    CASE r.kind WHEN 'task' THEN coalesce((SELECT CASE WHEN s.ended_at = 0 OR s.ended_at >= i.started_at THEN s.id END
      FROM sprints s WHERE s.started_at <= i.started_at ORDER BY s.started_at DESC LIMIT 1), '') ELSE '' END AS sprint,
    coalesce(json_extract(i.record, '$.agent'), '') AS agent,
    i.outcome <> 'waited' AS iterations, i.outcome = 'success' AS succeeded, i.outcome = 'failed' AS failed,
    i.outcome <> 'waited' AND p.outcome IS 'failed' AS retries, i.outcome = 'success' AND p.outcome IS 'failed' AS cured,
    i.elapsed, CASE WHEN i.outcome <> 'waited' THEN i.elapsed END AS took,
    CASE WHEN coalesce(json_extract(i.record, '$.cost_source'), 'none') IN ('none', '') THEN 0
      ELSE coalesce(json_extract(i.record, '$.cost_micro_usd'), 0) END AS cost,
    coalesce(json_extract(i.record, '$.cost_source'), 'none') NOT IN ('none', '') AS cost_known,
    coalesce(json_extract(i.record, '$.tokens_in'), 0) AS tokens_in, coalesce(json_extract(i.record, '$.tokens_out'), 0) AS tokens_out
  FROM iterations i JOIN runs r ON r.id = i.run
    LEFT JOIN iterations p ON p.run = i.run AND p.number = i.number - 1
      AND p.attempt = (SELECT max(q.attempt) FROM iterations q WHERE q.run = i.run AND q.number = i.number - 1);
CREATE VIEW event_facts AS
  SELECT e.seq, e.at / 900000 AS quarter,
    CASE WHEN coalesce(r.kind, 'task') <> 'task' THEN '' ELSE
      coalesce((SELECT CASE WHEN s.ended_at = 0 OR s.ended_at >= e.at THEN s.id END
      FROM sprints s WHERE s.started_at <= e.at ORDER BY s.started_at DESC LIMIT 1), '') END AS sprint,
    CASE e.kind WHEN 'queue.conflict' THEN coalesce((SELECT t.agent FROM runs t
      WHERE t.kind = 'task' AND t.name = json_extract(e.data, '$.id') ORDER BY t.started_at DESC LIMIT 1), '')
      ELSE coalesce(r.agent, '') END AS agent,
    CASE e.kind WHEN 'wait.over' THEN max(0, e.at - coalesce((SELECT p.at FROM events p
      WHERE p.run = e.run AND p.n < e.n AND p.kind = 'wait.started' ORDER BY p.n DESC LIMIT 1), e.at)) ELSE 0 END AS waited,
    CASE e.kind WHEN 'answered' THEN max(0, e.at - coalesce((SELECT p.at FROM events p
      WHERE p.run = e.run AND p.n < e.n AND p.kind = 'question.asked' ORDER BY p.n DESC LIMIT 1), e.at)) ELSE 0 END AS asked,
    e.kind = 'iteration.ended' AS guards, e.kind = 'queue.conflict' AS conflicts
  FROM events e LEFT JOIN runs r ON r.id = e.run
  WHERE e.kind IN ('wait.over', 'answered', 'queue.conflict')
    OR e.kind = 'iteration.ended' AND json_extract(e.data, '$.next.guard') IS NOT NULL;
CREATE VIEW case_facts AS
  SELECT h.seq, h.at / 900000 AS quarter,
    coalesce((SELECT CASE WHEN s.ended_at = 0 OR s.ended_at >= h.at THEN s.id END
      FROM sprints s WHERE s.started_at <= h.at ORDER BY s.started_at DESC LIMIT 1), '') AS sprint,
    -- A task is started before it has an agent.
    CASE h.action WHEN 'start' THEN '' ELSE
      coalesce((SELECT r.agent FROM runs r WHERE r.kind = 'task' AND r.name = h.id ORDER BY r.started_at DESC LIMIT 1), '') END AS agent,
    h.action = 'start' AS started, h.action = 'land' AS landed, h.action = 'fail' AS gave_up,
    h.action = 'expire' AS timed_out, h.action = 'block' AS blocked,
    CASE h.action WHEN 'land' THEN (SELECT sum(r.iteration) FROM runs r WHERE r.kind = 'task' AND r.name = h.id) END AS task_iterations
  FROM case_history h JOIN cases c ON c.id = h.id AND c.type = 'task'
  WHERE h.action IN ('start', 'land', 'fail', 'expire', 'block');
CREATE TRIGGER tally_iteration AFTER INSERT ON iterations BEGIN
  INSERT INTO more (quarter, sprint, agent, iterations, succeeded, failed, retries, cured, elapsed, fastest, slowest, cost, cost_known, tokens_in, tokens_out)
    SELECT quarter, sprint, agent, iterations, succeeded, failed, retries, cured, elapsed, took, took, cost, cost_known, tokens_in, tokens_out
    FROM iteration_facts WHERE run = NEW.run AND number = NEW.number AND attempt = NEW.attempt;
END;
CREATE TRIGGER untally_iteration BEFORE UPDATE ON iterations BEGIN
  INSERT INTO more (quarter, sprint, agent, iterations, succeeded, failed, retries, cured, elapsed, cost, cost_known, tokens_in, tokens_out)
    SELECT quarter, sprint, agent, -iterations, -succeeded, -failed, -retries, -cured, -elapsed, -cost, -cost_known, -tokens_in, -tokens_out
    FROM iteration_facts WHERE run = OLD.run AND number = OLD.number AND attempt = OLD.attempt;
END;
CREATE TRIGGER retally_iteration AFTER UPDATE ON iterations BEGIN
  INSERT INTO more (quarter, sprint, agent, iterations, succeeded, failed, retries, cured, elapsed, fastest, slowest, cost, cost_known, tokens_in, tokens_out)
    SELECT quarter, sprint, agent, iterations, succeeded, failed, retries, cured, elapsed, took, took, cost, cost_known, tokens_in, tokens_out
    FROM iteration_facts WHERE run = NEW.run AND number = NEW.number AND attempt = NEW.attempt;
END;
CREATE TRIGGER tally_event AFTER INSERT ON events
WHEN NEW.kind IN ('wait.over', 'answered', 'queue.conflict') OR NEW.kind = 'iteration.ended' AND instr(NEW.data, '"guard"') BEGIN
  INSERT INTO more (quarter, sprint, agent, waited, asked, guards, conflicts)
    SELECT quarter, sprint, agent, waited, asked, guards, conflicts FROM event_facts WHERE seq = NEW.seq;
END;
CREATE TRIGGER tally_case AFTER INSERT ON case_history
WHEN NEW.action IN ('start', 'land', 'fail', 'expire', 'block') BEGIN
  INSERT INTO more (quarter, sprint, agent, started, landed, gave_up, timed_out, blocked, task_iterations, fewest, most)
    SELECT quarter, sprint, agent, started, landed, gave_up, timed_out, blocked, task_iterations, task_iterations, task_iterations
    FROM case_facts WHERE seq = NEW.seq;
END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',17);
INSERT INTO "sqlite_sequence" VALUES('cases',2);
INSERT INTO "sqlite_sequence" VALUES('case_history',8);
INSERT INTO "sqlite_sequence" VALUES('queue_asks',4);
INSERT INTO "sqlite_sequence" VALUES('landings',2);
COMMIT;
