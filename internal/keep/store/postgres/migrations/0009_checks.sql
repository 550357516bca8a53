-- The checks of a task, as JSON: those that its agent sees, and the sealed ones.
ALTER TABLE case_texts ADD COLUMN verify TEXT COLLATE "C" NOT NULL DEFAULT 'null';
ALTER TABLE case_texts ADD COLUMN sealed TEXT COLLATE "C" NOT NULL DEFAULT 'null';
