-- What a worker lacks now, such as the engine or room on its disk, one a line; "" is nothing.
ALTER TABLE workers ADD COLUMN lacks TEXT COLLATE "C" NOT NULL DEFAULT '';
