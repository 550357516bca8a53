package safety

import "strings"

// This file has the rules about databases.

// sqlClient judges the SQL that a client is given in its arguments or on stdin.
func sqlClient(m *matcher, c *call) {
	for _, a := range c.args {
		m.sql(a.text, c)
	}
	if c.cmd.fed {
		m.sql(c.cmd.text, c)
	} else if c.cmd.from != nil {
		if text, ok := printed(c.cmd.from); ok && m.pay(len(text)) {
			m.sql(text, c)
		}
	}
}

func (m *matcher) sql(text string, c *call) {
	if m.found != nil || !m.pay(len(text)) {
		return
	}
	if why := destroysData(text); why != "" {
		m.high(c, "sql-destroy", why)
	}
	for _, escape := range []string{`\!`, ".shell ", ".system "} {
		for rest := text; !m.tangled; {
			_, after, ok := strings.Cut(rest, escape)
			if !ok {
				break
			}
			line, _, _ := strings.Cut(after, "\n")
			m.run(line, c.depth+1)
			rest = after
		}
	}
}

// destroysData says what SQL would destroy; "" when nothing. Strings and
// comments are no SQL.
func destroysData(text string) string {
	var words []string // of the statement at hand
	judge := func() string {
		why := statement(words)
		words = words[:0]
		return why
	}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '\'':
			i += quotedEnd(text[i:], '\'')
		case c == '"' || c == '`':
			i += quotedEnd(text[i:], c)
			words = append(words, "name")
		case c == '-' && strings.HasPrefix(text[i:], "--"):
			i = lineEnd(text, i)
		case c == '/' && strings.HasPrefix(text[i:], "/*"):
			n := strings.Index(text[i+2:], "*/")
			if n < 0 {
				n = len(text)
			}
			i = min(i+2+n+2, len(text))
		case c == ';':
			if why := judge(); why != "" {
				return why
			}
			i++
		case letter(c) || c == '_' || c >= 0x80:
			from := i
			for i < len(text) && (letter(text[i]) || text[i] == '_' || text[i] == '.' || text[i] >= '0' && text[i] <= '9' || text[i] >= 0x80) {
				i++
			}
			words = append(words, strings.ToUpper(cutBytes(text[from:i], 40)))
		default:
			i++
		}
	}
	return judge()
}

func cutBytes(s string, n int) string { return s[:min(len(s), n)] }

func lineEnd(text string, i int) int {
	if n := strings.IndexByte(text[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(text)
}

// quotedEnd is the length of a quoted text with its quotes.
func quotedEnd(text string, quote byte) int {
	for i := 1; i < len(text); i++ {
		if text[i] == quote {
			return i + 1
		}
	}
	return len(text)
}

func statement(words []string) string {
	where := false
	for _, w := range words {
		where = where || w == "WHERE" || w == "LIMIT" || w == "USING"
	}
	for i, w := range words {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch {
		case w == "DROP" && i > 0 && words[0] == "ALTER" && (next == "COLUMN" || next == "PARTITION"):
			return "drops a column or partition with its data"
		case w == "DROP" && (i == 0 || words[0] != "GRANT" && words[0] != "REVOKE"):
			switch next {
			case "TABLE", "DATABASE", "SCHEMA", "OWNED", "KEYSPACE", "TABLESPACE", "COLLECTION", "MATERIALIZED", "SERVER":
				return "drops " + strings.ToLower(next) + "s with their data"
			}
		case w == "TRUNCATE" && (i == 0 || words[i-1] == "EXPLAIN" || next == "TABLE") && next != "":
			return "empties a table"
		case w == "DELETE" && next == "FROM" && !where && len(words) > i+2:
			return "deletes all rows of a table"
		}
	}
	return ""
}

// wholeDatabase judges programs that drop or restore databases.
func wholeDatabase(m *matcher, c *call) {
	switch {
	case c.name == "dropdb" || c.name == "dropuser":
		m.high(c, "drop-database", "drops a database")
	case c.name == "mysqladmin" && c.mentions("drop", "shutdown"):
		m.high(c, "drop-database", "drops a database")
	case c.name == "pg_restore" && c.has('c', "--clean"):
		m.high(c, "drop-database", "drops what is in a database")
	}
}

func redisRule(m *matcher, c *call) {
	check := func(text string) {
		up := strings.ToUpper(text)
		if hasWord(up, "FLUSHALL") || hasWord(up, "FLUSHDB") {
			m.high(c, "flush-database", "deletes everything in a database")
		}
	}
	for _, a := range c.args {
		check(a.text)
	}
	m.stdin(c, check)
}

func mongoRule(m *matcher, c *call) {
	check := func(text string) {
		flat := strings.Join(strings.Fields(text), "")
		for _, s := range []string{"dropDatabase(", ".drop()", ".drop({", "deleteMany({})", "remove({})", "dropAllUsers"} {
			if strings.Contains(flat, s) {
				m.high(c, "drop-database", "deletes everything in a database or collection")
				return
			}
		}
	}
	for _, a := range c.args {
		check(a.text)
	}
	m.stdin(c, check)
	if c.name == "mongorestore" && c.mentions("--drop") {
		m.high(c, "drop-database", "drops what is in a database")
	}
}

// stdin hands over what is known of a command's stdin.
func (m *matcher) stdin(c *call, take func(string)) {
	text, ok := c.cmd.text, c.cmd.fed
	if !ok && c.cmd.from != nil {
		text, ok = printed(c.cmd.from)
	}
	if ok && m.pay(len(text)) {
		take(text)
	}
}

// hasWord says whether a word stands alone in a text.
func hasWord(text, w string) bool {
	for rest := text; ; {
		i := strings.Index(rest, w)
		if i < 0 {
			return false
		}
		before := i == 0 || !wordByte(rest[i-1])
		rest = rest[i+len(w):]
		if before && (rest == "" || !wordByte(rest[0])) {
			return true
		}
	}
}

func wordByte(c byte) bool { return letter(c) || c == '_' || c >= '0' && c <= '9' }

// migrations judges tools of frameworks that empty their database.
func migrations(m *matcher, c *call) {
	for i, a := range c.args {
		switch t := a.text; {
		case t == "db:drop", t == "db:reset", t == "db:schema:load" && c.mentions("--force"), t == "db:migrate:reset", t == "db:purge", strings.HasPrefix(t, "db:drop:"), strings.HasPrefix(t, "db:reset:"),
			t == "migrate:fresh", t == "migrate:reset", t == "migrate:refresh", t == "db:wipe", t == "ecto.drop", t == "ecto.reset",
			t == "schema:drop", t == "orm:schema:drop", t == "doctrine:database:drop", t == "doctrine:schema:drop", t == "typeorm:drop",
			t == "flush" && i > 0 && strings.HasSuffix(c.args[i-1].text, "manage.py"), t == "reset_db" && i > 0,
			t == "reset" && i > 0 && c.args[i-1].text == "migrate" && c.name == "prisma",
			t == "--force-reset" && c.name == "prisma", t == "--accept-data-loss" && c.name == "prisma",
			t == "reset" && i > 0 && c.args[i-1].text == "db" && c.name == "supabase",
			t == "base" && i > 0 && c.args[i-1].text == "downgrade" && c.name == "alembic", t == "clean" && c.name == "flyway",
			t == "drop-all" || t == "dropAll" || t == "drop_db" || t == "database:reset":
			m.high(c, "reset-database", "empties or drops the application's database")
			return
		}
	}
}
