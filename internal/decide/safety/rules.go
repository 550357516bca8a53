package safety

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Danger grades an operation. High is stopped at normal and paranoid, Medium
// at paranoid only.
type Danger string

// The grades.
const (
	Medium Danger = "medium" // can be taken back with some work
	High   Danger = "high"   // cannot be taken back, or not by pawl
)

// Finding is a forbidden operation. It goes through JSON into a run's record:
// fields can be added, but their names must not change.
type Finding struct {
	Operation Operation `json:"operation"`
	Pattern   string    `json:"pattern"` // e.g. "git-push-force"
	Why       string    `json:"why"`     // what it would do, e.g. "overwrites the history of a remote branch"
	Danger    Danger    `json:"danger"`
	// Command is what was matched, or the file that a tool touches; at most
	// 200 bytes, on one line.
	Command string `json:"command"`
	Tool    string `json:"tool,omitempty"` // the tool call's, for a tool call
	Level   Level  `json:"level"`
}

// Reason is the finding in a sentence, without a full stop.
func (f Finding) Reason() string {
	return Prefix + f.Operation.Message() + ": " + f.Command + " (" + f.Pattern + ": " + f.Why + ")"
}

// Rules are what operations are judged by. The zero value allows everything.
type Rules struct {
	Level Level  `json:"level,omitempty"`
	Root  string `json:"root,omitempty"` // the workspace: where commands start
	Home  string `json:"home,omitempty"` // the user's; "" is not known
}

// Command judges a shell command and returns the first thing in it that the
// level forbids. What looks like a command in quotes, comments, file names or
// the text of a here-document is none. A command over 1 MiB is judged by its
// first MiB.
func (r Rules) Command(text string) (Finding, bool) {
	if r.Level == "" || r.Level == Permissive {
		return Finding{}, false
	}
	if len(text) > maxText {
		text = text[:maxText]
	}
	m := r.matcher(len(text))
	m.run(text, 0)
	if m.found == nil && m.tangled {
		m.report(finding{"tangled", "it is nested too deeply to be read", High, Destructive}, []word{{text: text}})
	}
	if m.found == nil {
		return Finding{}, false
	}
	return *m.found, true
}

// Tool judges a tool call: what it runs, and the files it touches if the tool
// changes files. tool is the agent's name for it.
func (r Rules) Tool(tool, command string, files []string) (Finding, bool) {
	if r.Level == "" || r.Level == Permissive {
		return Finding{}, false
	}
	f, found := Finding{}, false
	if command != "" && runs(tool) {
		f, found = r.Command(command)
	}
	if !found && changes(tool) {
		f, found = r.files(tool, files)
	}
	if !found && r.Level == Paranoid && isWeb(tool) {
		f, found = Finding{
			Operation: External, Pattern: "web-tool", Why: "it talks to the network",
			Danger: High, Command: tool, Level: r.Level,
		}, true
	}
	f.Tool = cut(tool, 100)
	return f, found
}

var toolWord = lazy.Regexp(`[A-Z]*[a-z0-9]+|[A-Z]+`)

// toolWords are the words of a tool's name, in lower case: MultiEdit,
// str_replace_editor and write-file have two or three.
func toolWords(tool string) []string {
	return lists.Each(toolWord().FindAllString(cut(tool, 200), -1), strings.ToLower)
}

func anyOf(words []string, of ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(of, w) })
}

// runs is false for tools whose "command" is no shell's, such as an editor's.
func runs(tool string) bool {
	w := toolWords(tool)
	return !anyOf(w, "edit", "editor", "replace", "write", "view", "read", "search", "grep", "glob")
}

// changes is true for tools that write, move or delete files.
func changes(tool string) bool {
	w := toolWords(tool)
	if anyOf(w, "todo", "todos", "plan", "memory", "task", "tasks") {
		return false
	}
	return anyOf(w, list("changing tool")...)
}

func isWeb(tool string) bool {
	w := toolWords(tool)
	if anyOf(w, "webfetch", "websearch", "browser") {
		return true
	}
	return anyOf(w, "web", "internet", "google") && anyOf(w, "fetch", "search", "browse")
}

func (r Rules) files(tool string, files []string) (Finding, bool) {
	m := r.matcher(0)
	remove := anyOf(toolWords(tool), "delete", "remove")
	for _, f := range files {
		w := word{text: f}
		if remove {
			m.removes([]word{w}, false, []word{w})
		}
		m.writesTo(w, []word{w})
		if m.found != nil {
			return *m.found, true
		}
	}
	return Finding{}, false
}

// matcher judges a text of that size.
func (r Rules) matcher(size int) *matcher {
	return &matcher{
		shell: newShell(size), rules: r, programs: programs(), cwd: r.root(),
		functions: map[string]bool{},
	}
}

func (r Rules) root() string {
	if r.Root == "" {
		return "/workspace"
	}
	return path.Clean(r.Root)
}

// finding is what a rule says.
type finding struct {
	pattern, why string
	danger       Danger
	operation    Operation
}

// matcher judges the commands of one text.
type matcher struct {
	*shell

	rules     Rules
	found     *Finding
	programs  map[string][]rule
	cwd       string   // "" when it is not known
	outer     []string // working folders around subshells
	contained bool     // files are a container's own
	functions map[string]bool
}

// report keeps the first finding that the level forbids.
func (m *matcher) report(f finding, words []word) {
	f.operation = cmp.Or(f.operation, Destructive)
	if m.found != nil || !m.rules.Level.forbids(f.operation, f.danger) {
		return
	}
	m.found = &Finding{
		Operation: f.operation, Pattern: f.pattern, Why: f.why, Danger: f.danger, Level: m.rules.Level,
		Command: cut(shown(words), 200),
	}
}

// shown is a command for people: short enough to read.
func shown(words []word) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.text)
		if b.Len() > 400 {
			break
		}
	}
	return b.String()
}

// cut makes text one line of at most n bytes.
func cut(text string, n int) string {
	if len(text) > 2*n {
		text = text[:2*n]
	}
	text = strings.Map(func(c rune) rune {
		switch {
		case c < ' ' || c == 0x7f:
			return ' '
		case c == utf8.RuneError:
			return '?'
		}
		return c
	}, text)
	return fault.Cut(strings.Join(strings.Fields(text), " "), n-len("…"))
}

// run judges a text, in a working folder of its own.
func (m *matcher) run(text string, depth int) {
	if m.found != nil {
		return
	}
	from := len(m.out)
	m.read(text, depth)
	commands := m.out[from:]
	for _, c := range commands {
		if m.found != nil {
			return
		}
		m.command(c, depth)
	}
}

func (m *matcher) command(c *command, depth int) {
	switch {
	case c.mark == '(':
		m.outer = append(m.outer, m.cwd)
		return
	case c.mark == ')':
		if n := len(m.outer); n > 0 {
			m.cwd, m.outer = m.outer[n-1], m.outer[:n-1]
		}
		return
	case c.defines != "":
		m.functions[c.defines] = true
		return
	}
	m.redirects(c)
	if len(c.words) == 0 {
		return
	}
	name := c.words[0].text
	if m.functions[name] && c.from != nil && len(c.from.words) > 0 && c.from.words[0].text == name {
		m.report(finding{pattern: "fork-bomb", why: "starts processes without end", danger: High}, c.words)
	}
	m.words(c, c.words, depth)
}

// words judges a command without its redirections. The name may be one that
// runs the words after it.
func (m *matcher) words(c *command, words []word, depth int) {
	if m.found != nil || len(words) == 0 {
		return
	}
	if depth > maxDepth || !m.pay(1) {
		m.tangled = true
		return
	}
	one := &call{name: synonym(baseName(words[0].text)), args: words[1:], words: words, cmd: c, depth: depth}
	m.refuseUnread(one, words[0])
	if one.name != "git" { // it has options before its verb, which its rule knows
		m.services(one)
	}
	for _, judge := range m.programs[one.name] {
		if m.found == nil {
			judge(m, one)
		}
	}
	if m.found == nil {
		m.unwrap(one)
	}
}

// baseName is a program's name without folder, and without Windows' ending.
func baseName(s string) string {
	if i := strings.LastIndexAny(s, `/\`); i >= 0 {
		s = s[i+1:]
	}
	if len(s) > 4 && strings.EqualFold(s[len(s)-4:], ".exe") {
		s = s[:len(s)-4]
	}
	return s
}

// call is a command that a rule judges.
type call struct {
	name  string
	args  []word
	words []word
	cmd   *command
	depth int
}

func (c *call) has(short byte, long string) bool { return has(c.args, short, long) }

func (c *call) operands() []word { return operands(c.args) }

// verb is the first operand, "" when there is none.
func (c *call) verb() string {
	for _, a := range c.args {
		if len(a.text) < 2 || a.text[0] != '-' {
			return a.text
		}
	}
	return ""
}

// mentions says whether an argument is one of the texts.
func (c *call) mentions(of ...string) bool {
	return slices.ContainsFunc(c.args, func(a word) bool { return slices.Contains(of, a.text) })
}

// high reports a finding of the call.
func (m *matcher) high(c *call, pattern, why string) {
	m.report(finding{pattern: pattern, why: why, danger: High}, c.words)
}
