-- What a task says of iteration control, as JSON.
ALTER TABLE case_texts ADD COLUMN control TEXT COLLATE "C" NOT NULL DEFAULT 'null';
