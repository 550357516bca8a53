package safety

import (
	_ "embed"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// pattern is a command line that is dangerous wherever it stands.
type pattern struct {
	finding

	words  []string // each with its alternatives; see commands.txt
	unless []string
	loose  bool // the first word may stand anywhere
}

//go:embed commands.txt
var commandTable string

// frameworks are the programs that run an application's own tasks.
const frameworks = "rails rake python3 django-admin php artisan prisma mix sequelize sequelize-cli typeorm alembic" +
	" flask knex supabase flyway manage.py sail console"

// patterns are the lines of commands.txt, by program.
var patterns = sync.OnceValue(func() map[string][]pattern {
	out := map[string][]pattern{}
	for head, line := range sections(strings.ReplaceAll(commandTable, "$frameworks", frameworks)) {
		name, why, _ := strings.Cut(head, ": ")
		kind := finding{pattern: name, why: why, danger: High}
		if bare, medium := strings.CutSuffix(name, " medium"); medium {
			kind.pattern, kind.danger = bare, Medium
		}
		programs, words, _ := strings.Cut(line, ":")
		p := newPattern(kind, strings.Fields(words))
		for _, program := range strings.Fields(programs) {
			out[program] = append(out[program], p)
		}
	}
	return out
})

func newPattern(kind finding, words []string) pattern {
	p := pattern{finding: kind}
	for _, w := range words {
		if w == "…" {
			p.loose = true
		} else if not, ok := strings.CutPrefix(w, "!"); ok {
			p.unless = append(p.unless, not)
		} else {
			p.words = append(p.words, w)
		}
	}
	return p
}

// asksOnly are the options by which a command only says what it would do.
var asksOnly = []string{
	"--dry-run", "--dryrun", "--dry-run=client", "--dry-run=server", "--dry-run=true", "--what-if",
	"--help", "--snapshot", "--skip-publish",
}

// services judges a command by the patterns of its program.
func (m *matcher) services(c *call) {
	of := patterns()[c.name]
	help := c.mentions("-h") && len(c.args) < 3 && c.name != "shutdown"
	dry := c.mentions("-n") && slices.Contains([]string{"cargo", "npm"}, c.name)
	if help || dry || c.verb() == "help" || c.mentions(asksOnly...) {
		return
	}
	for _, p := range of {
		if p.matches(c.args) && !m.spared(p.pattern, c) {
			m.report(p.finding, c.words)
		}
	}
}

func (p pattern) matches(args []word) bool {
	options := args
	if end := slices.IndexFunc(args, func(a word) bool { return a.text == "--" }); end >= 0 {
		options = args[:end]
	}
	for _, not := range p.unless {
		if slices.ContainsFunc(args, func(a word) bool { return fits(not, a.text) }) {
			return false
		}
	}
	for i, w := range p.words {
		if strings.HasPrefix(w, "-") {
			if !slices.ContainsFunc(options, func(a word) bool { return fits(w, a.text) }) {
				return false
			}
			continue
		}
		at := slices.IndexFunc(args, func(a word) bool { return fits(w, a.text) })
		if at < 0 {
			return false
		}
		if i == 0 && !p.loose && !verbAt(args, at) {
			return false
		}
		args = args[at+1:]
	}
	return true
}

// verbAt says whether only options and their values stand before an argument:
// "npm run publish" is another verb.
func verbAt(args []word, at int) bool {
	for i, a := range args[:at] {
		value := i > 0 && strings.HasPrefix(args[i-1].text, "-") && !strings.Contains(args[i-1].text, "=")
		if !strings.HasPrefix(a.text, "-") && !value {
			return false
		}
	}
	return true
}

// fits says whether an argument is one of the alternatives of a pattern's word.
func fits(alternatives, text string) bool {
	for one := range strings.SplitSeq(alternatives, "|") {
		option := strings.HasPrefix(one, "-")
		switch {
		case one == text:
			return true
		case option != strings.HasPrefix(text, "-"):
		case strings.HasPrefix(one, "--"):
			name, value, _ := strings.Cut(text, "=")
			on := value != "false" && abbreviates(name, one) && !strings.Contains(one, "=")
			if on || glob(one, text) {
				return true
			}
		case option:
			letter, among := strings.CutSuffix(one, "+")
			if among && !strings.HasPrefix(text, "--") && strings.Contains(text, letter[1:]) {
				return true
			}
		case strings.Contains(one, `\`):
			if strings.ReplaceAll(one, `\`, "") == text {
				return true
			}
		case glob(one, text):
			return true
		}
	}
	return false
}

//go:embed lists.txt
var listTable string

var words = sync.OnceValue(func() map[string][]string { return WordsOf(listTable) })

// RunsItself are patterns of files that programs of the person run or obey without being
// asked.
func RunsItself() []string { return list("runs by itself") }

// list is a list of lists.txt.
func list(name string) []string { return words()[name] }

// WordsOf are the words of a table's sections.
func WordsOf(table string) map[string][]string {
	out := map[string][]string{}
	for section, line := range sections(table) {
		out[section] = append(out[section], strings.Fields(line)...)
	}
	return out
}

// sections are the indented lines of a table with the text before the colon of
// the line above them. Empty lines and comments do not count.
func sections(table string) iter.Seq2[string, string] {
	return func(yield func(head, line string) bool) {
		head := ""
		for line := range strings.Lines(table) {
			text := strings.TrimSpace(line)
			if text == "" || text[0] == '#' {
				continue
			}
			if line[0] != '\t' {
				head = strings.TrimSuffix(text, ":")
			} else if !yield(head, text) {
				return
			}
		}
	}
}

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
	if text, isKnown := m.stdin(c.cmd); isKnown {
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

func wordRune(c rune) bool {
	return strings.ContainsRune("_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", c)
}
