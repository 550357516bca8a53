package safety

import (
	"regexp"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// This file has the rules about databases.

// sqlClient judges the SQL that a client is given in its arguments or on stdin.
func sqlClient(m *matcher, c *call) {
	m.given(c, func(text string) { m.sql(text, c) })
}

// given hands over the arguments of a command and what is known of its stdin.
func (m *matcher) given(c *call, take func(string)) {
	for _, a := range c.args {
		take(a.text)
	}
	text, ok := c.cmd.text, c.cmd.fed
	if !ok && c.cmd.from != nil {
		text, ok = printed(c.cmd.from)
	}
	if ok && m.pay(len(text)) {
		take(text)
	}
}

func (m *matcher) sql(text string, c *call) {
	if m.found != nil || !m.pay(len(text)) {
		return
	}
	why := destroysData(text, false)
	if why != "" && m.sparesData(c) {
		why = destroysData(text, true)
	}
	if why != "" {
		m.high(c, "sql-destroy", why)
	}
	for _, escape := range []string{`\!`, ".shell ", ".system "} {
		for _, part := range strings.Split(text, escape)[1:] {
			line, _, _ := strings.Cut(part, "\n")
			m.run(line, c.depth+1)
		}
	}
}

var sqlWords = lazy.Regexp("(?s)'[^']*(?:'|$)|\"[^\"]*(?:\"|$)|`[^`]*(?:`|$)|--[^\n]*|/\\*.*?(?:\\*/|$)")

// sqlDestroys are statements in capitals, without strings and comments.
var sqlDestroys = sync.OnceValue(func() []sqlRule {
	rule := func(re, unless, why string) sqlRule {
		return sqlRule{regexp.MustCompile(re), regexp.MustCompile(unless), why}
	}
	return []sqlRule{
		rule(`^\s*ALTER\b.*\bDROP\s+(?:COLUMN|PARTITION)\b`, `^$`, "drops a column or partition with its data"),
		rule(`\bDROP\s+(TABLE|DATABASE|SCHEMA|OWNED|KEYSPACE|TABLESPACE|COLLECTION|MATERIALIZED|SERVER)\b`,
			`^\s*(?:GRANT|REVOKE)\b`, "drops $1s with their data"),
		rule(`^\s*(?:EXPLAIN\s+)?TRUNCATE\s+\w|\bTRUNCATE\s+TABLE\b`, `^$`, "empties a table"),
		rule(`\bDELETE\s+FROM\s+\w`, `\b(?:WHERE|LIMIT|USING)\b`, "deletes all rows of a table"),
	}
})

type sqlRule struct {
	is, unless *regexp.Regexp
	why        string // $1 is what was matched
}

var databaseName = lazy.Regexp(`\bDROP\s+DATABASE\s+(?:IF\s+EXISTS\s+)?(\w+)\s*(?:WITH\b.*)?$`)

// destroysData says what SQL would destroy; "" when nothing. Strings and
// comments are no SQL. Of a database that is for tests only others count, which
// it may name.
func destroysData(text string, tests bool) string {
	text = sqlWords().ReplaceAllStringFunc(text, func(s string) string {
		if s[0] == '"' || s[0] == '`' {
			return " name "
		}
		return " "
	})
	for one := range strings.SplitSeq(strings.ToUpper(text), ";") {
		if name := databaseName().FindStringSubmatch(one); len(name) > 0 && namesTest(name[1]) {
			continue
		}
		spared := tests && !strings.Contains(one, "DATABASE")
		for _, r := range sqlDestroys() {
			if what := r.is.FindStringSubmatch(one); what != nil && !spared && !r.unless.MatchString(one) {
				return strings.ReplaceAll(r.why, "$1", strings.ToLower(what[len(what)-1]))
			}
		}
	}
	return ""
}

func redis(m *matcher, c *call) {
	m.given(c, func(text string) {
		words := strings.FieldsFunc(strings.ToUpper(text), func(r rune) bool { return !wordRune(r) })
		if anyOf(words, "FLUSHALL", "FLUSHDB") {
			m.high(c, "flush-database", "deletes everything in a database")
		}
	})
}

func mongo(m *matcher, c *call) {
	m.given(c, func(text string) {
		flat := strings.Join(strings.Fields(text), "")
		for _, s := range []string{"dropDatabase(", ".drop()", ".drop({", "deleteMany({})", "remove({})", "dropAllUsers"} {
			if strings.Contains(flat, s) {
				m.high(c, "drop-database", "deletes everything in a database or collection")
			}
		}
	})
}

func wordByte(c byte) bool { return wordRune(rune(c)) }

func wordRune(c rune) bool {
	return strings.ContainsRune("_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", c)
}
