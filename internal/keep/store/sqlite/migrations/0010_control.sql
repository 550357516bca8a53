-- What a task says of iteration control, as JSON.
ALTER TABLE case_texts ADD COLUMN control TEXT NOT NULL DEFAULT 'null';
