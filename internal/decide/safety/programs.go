package safety

import (
	_ "embed"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// This file knows the commands that run other commands.

//go:embed wrappers.txt
var wrapperTable string

// wrappers are the words of wrappers.txt, by program.
var wrappers = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{}
	for _, line := range sectionLines(wrapperTable) {
		programs, words, _ := strings.Cut(line, ":")
		for _, name := range strings.Fields(programs) {
			out[name] = strings.Fields(words)
		}
	}
	return out
})

// judgeCommand judges a command without its redirections: by the table, and by the commands that it
// runs.
func (s *shell) judgeCommand(cmd *command, words []string) {
	if len(words) == 0 || !s.payBudget(1) {
		return
	}
	s.runOneLevelDeeper(func() {
		c := &call{name: baseName(words[0]), args: words[1:], words: words, cmd: cmd}
		s.judgeByTable(c)
		isShell := slices.Contains(namedList("shell"), c.name)
		switch {
		case s.found != nil:
		case c.name == "cd", c.name == "pushd":
			s.changeFolder(skipOptions(c.args, nil))
		case c.name == "eval":
			s.judgeText(strings.Join(c.args, " "))
		case isShell, slices.Contains(namedList("interpreter"), c.name):
			s.judgeInterpreter(c, isShell)
			s.judgeWrapped(c, wrappers()[c.name])
		case c.name == "find":
			s.judgeFind(c)
		default:
			s.judgeWrapped(c, wrappers()[c.name])
		}
	})
}

// baseName is a program's name without its folder, and that of an interpreter
// without its version.
func baseName(s string) string {
	s = s[strings.LastIndexAny(s, `/\`)+1:]
	if bare := strings.TrimRight(s, "0123456789."); slices.Contains(namedList("interpreter"), bare) {
		return bare
	}
	return s
}

// judgeWrapped judges the commands in the arguments of a program with these words in wrappers.txt.
func (s *shell) judgeWrapped(c *call, w []string) {
	is := func(word string) bool { return slices.Contains(w, word) }
	isNot := func(word string) bool { return word[0] == '!' && slices.Contains(c.args, word[1:]) }
	if w == nil || slices.ContainsFunc(w, isNot) {
		return
	}
	defer func(cwd string, contained bool) { s.cwd, s.contained = cwd, contained }(s.cwd, s.contained)
	if is("REMOTE") {
		s.cwd, s.contained = "", s.contained || is("CONTAINER")
	}
	for _, o := range withValues(c.args) {
		if name, text, isSet := strings.Cut(o, "="); isSet && is("="+name) {
			s.judgeText(text)
		}
	}
	for _, a := range c.args {
		if is("LINES") && isCommandLine(a) {
			s.judgeText(a)
		}
	}
	rest := c.args
	isVerb := func(word string) bool { return strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == "" }
	if slices.ContainsFunc(w, isVerb) {
		at := slices.IndexFunc(rest, func(a string) bool { return isVerb(a) && is(a) })
		if at < 0 {
			return
		}
		rest = rest[at+1:]
	}
	rest = skipOptions(rest, w)
	for is("NAME=") && len(rest) > 0 && strings.Contains(rest[0], "=") {
		rest = rest[1:]
	}
	if is("WORD") {
		rest = skipOptions(rest[min(1, len(rest)):], w)
	}
	if is("APPEND") {
		rest = append(slices.Clip(rest), s.xargsWords(c.cmd)...)
	}
	text, isKnown := s.knownStdinOf(c.cmd)
	switch {
	case len(rest) == 1 && isCommandLine(rest[0]):
		s.judgeText(rest[0])
	case len(rest) > 0 && s.payBudget(len(rest)):
		s.judgeCommand(c.cmd, rest)
	case is("INPUT") && isKnown:
		s.judgeText(text)
	}
}

// isCommandLine reports whether a word can be a whole command line.
func isCommandLine(text string) bool { return strings.ContainsAny(text, " \t\n;") }

// skipOptions returns what follows the options, some of which take an argument.
func skipOptions(args, takes []string) []string {
	for len(args) > 0 {
		a := args[0]
		switch {
		case a == "--":
			return args[1:]
		case len(a) < 2 || a[0] != '-':
			return args
		case len(args) > 1 && slices.Contains(takes, a):
			args = args[1:]
		}
		args = args[1:]
	}
	return nil
}

// xargsWords returns the words that xargs adds to its command, as far as they are known.
func (s *shell) xargsWords(c *command) []string {
	if text, isKnown := s.knownStdinOf(c); isKnown {
		return strings.Fields(text)
	}
	if text := s.outputOf(c.from); text != fetched {
		return strings.Fields(text)
	}
	return nil
}

// judgeInterpreter judges what a program that runs programs is started with. Only
// shells are read: what code in another language does is the sandbox's to hold.
func (s *shell) judgeInterpreter(c *call, isShell bool) {
	rest := skipOptions(c.args, namedList("shell option"))
	options := c.args[:len(c.args)-len(rest)]
	isTold := isShell && s.anyArgumentFits([]string{"-s+"}, options)
	readsInput := isTold || len(rest) == 0 || slices.Contains([]string{"-", "/dev/stdin"}, rest[0])
	switch {
	case len(rest) > 0 && s.anyArgumentFits([]string{"-m"}, options): // python -m twine upload
		s.judgeCommand(c.cmd, rest)
	case isShell && len(rest) > 0 && s.anyArgumentFits([]string{"-c+|--command"}, options):
		s.judgeText(rest[0])
	case readsInput:
		text, isKnown := s.knownStdinOf(c.cmd)
		from := c.cmd.from
		switch {
		case isKnown && isShell:
			s.judgeText(text)
		case from != nil && !isKnown:
			words := append(slices.Clone(from.words[:min(len(from.words), 20)]), "|")
			s.reportFinding(finding{"pipe-to-interpreter", "runs whatever is piped into it", High, Destructive},
				append(words, c.words...))
		}
	}
}

// judgeFind judges what find runs on what it finds.
func (s *shell) judgeFind(c *call) {
	roots := pathsFoundBy(c.args)
	for i, a := range c.args {
		if !slices.Contains(namedList("find runs"), a) || !s.payBudget(len(c.args)) {
			continue
		}
		end := slices.IndexFunc(c.args[i:], func(w string) bool { return w == ";" || w == "+" })
		if end < 0 {
			end = len(c.args) - i
		}
		var words []string
		for _, w := range c.args[i+1 : i+max(1, end)] {
			if w == "{}" {
				words = append(words, roots...)
			} else {
				words = append(words, strings.ReplaceAll(w, "{}", "found"))
			}
		}
		if s.payBudget(len(words)) {
			s.judgeCommand(&command{words: words}, words)
		}
	}
}

// pathsFoundBy stands for what find finds: where it looks, or something below if it chooses.
func pathsFoundBy(args []string) []string {
	end := slices.IndexFunc(args, func(a string) bool { return a != "" && strings.ContainsRune("-(!", rune(a[0])) })
	if end < 0 {
		end = len(args)
	}
	roots := args[:end]
	if end == 0 {
		roots = []string{"."}
	}
	chooses := func(a string) bool { return slices.Contains(namedList("find chooses"), a) }
	if !slices.ContainsFunc(args, chooses) {
		return roots
	}
	return lists.Each(roots, func(r string) string { return strings.TrimSuffix(r, "/") + "/found" })
}

// changeFolder follows cd.
func (s *shell) changeFolder(to []string) {
	abs, ok := s.absolutePath("~")
	if len(to) > 0 {
		abs, ok = s.absolutePath(to[0])
	}
	if s.cwd = ""; ok && !slices.Equal(to, []string{"-"}) {
		s.cwd = path.Clean(abs)
	}
}
