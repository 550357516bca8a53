package safety

import (
	_ "embed"
	"iter"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// finding is the verdict in a line of commands.txt on the commands that match it.
type finding struct {
	pattern, why string
	danger       Danger
	operation    Operation
}

// pattern is a command line that is dangerous wherever it stands.
type pattern struct {
	finding

	words  []string // each with its alternatives; see commands.txt
	unless []string
	loose  bool           // the first word may stand anywhere
	text   *regexp.Regexp // what a statement among the arguments or on stdin is; nil for any
}

//go:embed commands.txt
var commandTable string

// patterns are the lines of commands.txt, by program.
var patterns = sync.OnceValue(func() map[string][]pattern {
	out := map[string][]pattern{}
	var macros []string
	for head, line := range sectionLines(commandTable) {
		name, why, _ := strings.Cut(head, ": ")
		line = strings.NewReplacer(macros...).Replace(line)
		if name == "words" {
			macro, words, _ := strings.Cut(line, " ")
			macros = append(macros, macro, words)
			continue
		}
		name, kind, _ := strings.Cut(name, " ")
		f := finding{pattern: name, why: why, danger: High, operation: Destructive}
		switch kind {
		case "medium":
			f.danger = Medium
		case "external", "writes":
			f.operation = Operation(kind)
		}
		programs, words, _ := strings.Cut(line, ":")
		p := newPattern(f, words)
		for _, program := range strings.Fields(programs) {
			out[program] = append(out[program], p)
		}
	}
	return out
})

func newPattern(f finding, line string) pattern {
	p := pattern{finding: f}
	line, text, isText := strings.Cut(line, " TEXT ")
	if isText {
		p.text = regexp.MustCompile("(?mi)" + text)
	}
	for _, w := range strings.Fields(line) {
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

// call is a command that is judged.
type call struct {
	name  string
	args  []string
	words []string // for people
	cmd   *command
}

// judgeByTable judges a command by the patterns of its program.
func (s *shell) judgeByTable(c *call) {
	of := patterns()[c.name]
	asksHelp := len(c.args) > 0 && c.args[0] == "help"
	if len(of) == 0 || asksHelp || !s.payBudget(len(c.args)) || s.anyArgumentFits(namedList("asks only"), c.args) {
		return
	}
	options := withValues(c.args)
	var settings, texts []string
	for _, p := range of {
		rest, fits := s.matchPattern(p, c.args, options)
		if !fits {
			continue
		}
		if len(p.unless) > 0 && settings == nil {
			settings = s.settingsOf(c, options)
		}
		if p.text != nil && texts == nil {
			texts = s.statementsIn(c)
		}
		isUnless := func(not string) bool {
			among := settings
			if strings.HasSuffix(not, "$") {
				among = rest
			} else if not[0] == '@' {
				among = withoutValues(rest)
			}
			return s.anyArgumentFits([]string{not}, among)
		}
		isText := p.text == nil || slices.ContainsFunc(texts, p.text.MatchString)
		if isText && !slices.ContainsFunc(p.unless, isUnless) {
			s.reportFinding(p.finding, c.words)
		}
	}
}

// settingsOf are a command's options, and what is set for it.
func (s *shell) settingsOf(c *call, options []string) []string {
	all := append(slices.Clip(options), c.cmd.settings...)
	if s.payBudget(len(c.cmd.words)) {
		all = append(all, assignmentsIn(c.cmd.words)...)
	}
	if c.cmd.kept {
		all = append(all, "OUTPUT=kept")
	}
	return append(all, "PWD="+s.folderOf(options))
}

// assignmentsIn returns the words that set a variable, also for a command that another one runs.
func assignmentsIn(words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		name, _, isSet := strings.Cut(w, "=")
		return !isSet || !syntax.ValidName(name)
	})
}

// withValues are the arguments before "--", and NAME=value for each option with
// the argument after it, which may be its value.
func withValues(args []string) []string {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	all := slices.Clone(args)
	for i, a := range args[:max(0, len(args)-1)] {
		if len(a) > 1 && a[0] == '-' && !strings.Contains(a, "=") {
			all = append(all, a+"="+args[i+1])
		}
	}
	return all
}

// withoutValues are the arguments that are not the value of a short option.
func withoutValues(args []string) (free []string) {
	for i, a := range args {
		if i == 0 || len(args[i-1]) != 2 || args[i-1][0] != '-' {
			free = append(free, a)
		}
	}
	return free
}

// folderOf returns the folder in which a program works, which an option may change, as git's does.
func (s *shell) folderOf(options []string) string {
	folder := s.cwd
	for _, o := range options {
		switch name, value, isSet := strings.Cut(o, "="); {
		case name == "-C" && isSet:
			folder, _ = s.absolutePath(value)
		case name == "--git-dir", name == "--work-tree":
			folder = ""
		}
	}
	return folder
}

// matchPattern reports whether arguments have the words of a pattern, and returns those after them.
func (s *shell) matchPattern(p pattern, args, options []string) (rest []string, fits bool) {
	rest = args
	for i, w := range p.words {
		if strings.HasPrefix(w, "-") {
			if !s.anyArgumentFits([]string{w}, options) {
				return nil, false
			}
			continue
		}
		at := slices.IndexFunc(rest, func(a string) bool { return s.fitsWord(w, a) })
		if lastOnly, isLast := strings.CutSuffix(w, "$"); isLast {
			if at = lastOperand(rest); at < 0 || !s.fitsWord(lastOnly, rest[at]) {
				return nil, false
			}
		}
		isVerb := i == 0 && !p.loose
		isElsewhere := isVerb && !isVerbAt(rest, at)
		if at < 0 || isElsewhere {
			return nil, false
		}
		rest = rest[at+1:]
	}
	return rest, true
}

// lastOperand returns the index of the last argument that is no option; -1 for none.
func lastOperand(args []string) int {
	for i := len(args) - 1; i >= 0; i-- {
		if args[i] != "" && args[i][0] != '-' {
			return i
		}
	}
	return -1
}

// isVerbAt reports whether only options and their values stand before an argument: "npm run
// publish" is another verb.
func isVerbAt(args []string, at int) bool {
	for i, a := range args[:max(0, at)] {
		isValue := i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=")
		if !strings.HasPrefix(a, "-") && !isValue {
			return false
		}
	}
	return true
}

// anyArgumentFits reports whether one of the arguments fits one of the alternatives.
func (s *shell) anyArgumentFits(alternatives, args []string) bool {
	return slices.ContainsFunc(alternatives, func(of string) bool {
		if last, ok := strings.CutSuffix(of, "$"); ok {
			at := lastOperand(args)
			return at >= 0 && s.fitsWord(last, args[at])
		}
		return slices.ContainsFunc(args, func(a string) bool { return s.fitsWord(of, a) })
	})
}

// fitsWord reports whether an argument is one of the alternatives of a pattern's word.
func (s *shell) fitsWord(alternatives, text string) bool {
	for one := range strings.SplitSeq(alternatives, "|") {
		name, value, _ := strings.Cut(text, "=")
		before, class, isClass := strings.Cut(one, "@")
		isOption := strings.HasPrefix(one, "-")
		fits := false
		switch {
		case one == text, strings.Contains(one, `\`) && strings.ReplaceAll(one, `\`, "") == text:
			return true
		case isClass:
			rest, has := strings.CutPrefix(text, before)
			fits = has && s.isOfClass(class, rest)
		case isOption != strings.HasPrefix(text, "-"), strings.Contains(one, `\`):
		case strings.HasPrefix(one, "--"):
			isOn := value != "false" && !strings.Contains(one, "=")
			fits = matchesGlob(one, text) || isOn && isAbbreviation(name, one)
		case isOption:
			letter, among := strings.CutSuffix(one, "+")
			isAmong := among && !strings.HasPrefix(text, "--") && strings.Contains(name, letter[1:])
			fits = isAmong || matchesGlob(one, text)
		default:
			fits = matchesGlob(one, text)
		}
		if fits {
			return true
		}
	}
	return false
}

// isAbbreviation reports whether name is the option long, or enough of its beginning.
func isAbbreviation(name, long string) bool {
	if len(name) < len("--abc") {
		return name == long
	}
	return strings.HasPrefix(long, name)
}

var secretVariable = lazy.Regexp(`\$\+?\w*(?:KEY|SECRET|PASSWORD|TOKEN)\b`)

// isOfClass reports whether a text is of a class, or a path in a place, that commands.txt names.
func (s *shell) isOfClass(class, text string) bool {
	switch class {
	case "fetched":
		return strings.Contains(text, fetched)
	case "elsewhere":
		return looksLikeURL(text) && !isLoopback(text)
	case "secret":
		return secretVariable().MatchString(text)
	case "test":
		return namesTest(text)
	}
	return s.placeOfWord(text) == class
}

// looksLikeURL accepts addresses without a scheme, too.
func looksLikeURL(s string) bool {
	isBare := len(s) > 3 && strings.IndexByte("-/.", s[0]) < 0 && strings.Contains(s, ".") && strings.Contains(s, "/")
	return isBare || beginsWith(s, []string{"http://", "https://", "ftp://"})
}

// isLoopback reports whether an address is of this machine.
func isLoopback(url string) bool {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url = rest
	}
	host, _, _ := strings.Cut(url, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	if strings.HasPrefix(host, "[::1]") {
		return true
	}
	host, _, _ = strings.Cut(host, ":")
	switch host {
	case "localhost", "0.0.0.0", "host.docker.internal":
		return true
	}
	return strings.HasPrefix(host, "127.") || strings.HasSuffix(host, ".localhost")
}

var testWord = lazy.Regexp(`(?i)(?:^|[^a-z0-9])(?:tests?|testing)(?:$|[^a-z0-9])`)

// namesTest reports whether a name, a file or an address has a word for tests in it: app_test,
// test.db, TEST_DATABASE_URL, postgres://localhost/test.
func namesTest(name string) bool {
	if _, address, ok := strings.Cut(name, "://"); ok { // a host may be called anything
		_, name, _ = strings.Cut(address, "/")
	}
	name, _, _ = strings.Cut(path.Base(name), "?")
	return testWord().MatchString(name) && !strings.ContainsAny(name, " \t\n")
}

// noStatement are strings and comments of SQL, and databases for tests that are dropped.
var noStatement = lazy.Regexp("(?is)'[^']*(?:'|$)|\"[^\"]*(?:\"|$)|`[^`]*(?:`|$)|--[^\n]*|/\\*.*?(?:\\*/|$)|" +
	`\bDROP\s+DATABASE\s+(?:IF\s+EXISTS\s+)?(?:\w+_)?tests?(?:_\w+)?\b`)

// statementsIn are the statements of SQL and the like that a program is given in its
// arguments or on stdin.
func (s *shell) statementsIn(c *call) (all []string) {
	given := c.args
	if text, isKnown := s.knownStdinOf(c.cmd); isKnown {
		given = append(slices.Clip(given), text)
	}
	for _, text := range given {
		if s.payBudget(len(text)) {
			all = append(all, strings.Split(noStatement().ReplaceAllString(text, " name "), ";")...)
		}
	}
	return all
}

//go:embed lists.txt
var listTable string

var words = sync.OnceValue(func() map[string][]string { return WordsOf(listTable) })

// RunsItself are patterns of files that a person's own programs run or obey without being
// asked.
func RunsItself() []string { return namedList("runs by itself") }

// namedList returns a list of lists.txt.
func namedList(name string) []string { return words()[name] }

// WordsOf are the words of a table's sections.
func WordsOf(table string) map[string][]string {
	out := map[string][]string{}
	for section, line := range sectionLines(table) {
		out[section] = append(out[section], strings.Fields(line)...)
	}
	return out
}

// sectionLines yields the indented lines of a table with the text before the colon of the line
// above them. Empty lines and comments do not count.
func sectionLines(table string) iter.Seq2[string, string] {
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
