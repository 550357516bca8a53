package safety

import (
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
	s := r.newShell(len(text))
	s.judgeText(text)
	if s.tangled {
		s.reportFinding(finding{"tangled", "it is nested too deeply to be read", High, Destructive}, []string{text})
	}
	if s.found == nil {
		return Finding{}, false
	}
	return *s.found, true
}

// Tool judges a tool call: what it runs, and the files it touches if the tool
// changes files. tool is the agent's name for it.
func (r Rules) Tool(tool, command string, files []string) (Finding, bool) {
	if r.Level == "" || r.Level == Permissive {
		return Finding{}, false
	}
	f, found := Finding{}, false
	if command != "" && runsShell(tool) {
		f, found = r.Command(command)
	}
	if !found && changesFiles(tool) {
		f, found = r.judgeFiles(tool, files)
	}
	if !found && r.Level == Paranoid && isWebTool(tool) {
		f, found = Finding{
			Operation: External, Pattern: "web-tool", Why: "it talks to the network",
			Danger: High, Command: tool, Level: r.Level,
		}, true
	}
	f.Tool = cutToLine(tool, 100)
	return f, found
}

var toolWord = lazy.Regexp(`[A-Z]*[a-z0-9]+|[A-Z]+`)

// toolWords are the words of a tool's name, in lower case: MultiEdit,
// str_replace_editor and write-file have two or three.
func toolWords(tool string) []string {
	return lists.Each(toolWord().FindAllString(cutToLine(tool, 200), -1), strings.ToLower)
}

func hasWord(words []string, of ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(of, w) })
}

// runsShell is false for tools whose "command" is no shell's, such as an editor's.
func runsShell(tool string) bool {
	w := toolWords(tool)
	return !hasWord(w, "edit", "editor", "replace", "write", "view", "read", "search", "grep", "glob")
}

// changesFiles reports whether a tool writes, moves or deletes files.
func changesFiles(tool string) bool {
	w := toolWords(tool)
	return !hasWord(w, "todo", "todos", "plan", "memory", "task", "tasks") && hasWord(w, namedList("changing tool")...)
}

func isWebTool(tool string) bool {
	w := toolWords(tool)
	if hasWord(w, "webfetch", "websearch", "browser") {
		return true
	}
	return hasWord(w, "web", "internet", "google") && hasWord(w, "fetch", "search", "browse")
}

func (r Rules) judgeFiles(tool string, files []string) (Finding, bool) {
	s := r.newShell(1 << 15)
	programs := []string{">"}
	if hasWord(toolWords(tool), "delete", "remove") {
		programs = []string{"rm", ">"}
	}
	for _, f := range files {
		for _, program := range programs {
			s.judgeByTable(&call{name: program, args: []string{f}, words: []string{f}, cmd: &command{}})
		}
		if s.found != nil {
			return *s.found, true
		}
	}
	return Finding{}, false
}

func (r Rules) newShell(size int) *shell {
	return &shell{
		rules: r, budget: 6*size + 1<<15, cwd: r.rootFolder(),
		vars: map[string]string{"IFS": " "}, loops: map[string]bool{}, functions: map[string]bool{},
	}
}

func (r Rules) rootFolder() string {
	if r.Root == "" {
		return "/workspace"
	}
	return path.Clean(r.Root)
}

// reportFinding keeps the first finding that the level forbids. Writes outside of the workspace
// count as destructive where other writes are free.
func (s *shell) reportFinding(f finding, words []string) {
	if f.operation == Writes && s.rules.Level != Paranoid {
		f.operation = Destructive
	}
	if s.found != nil || !s.rules.Level.forbidsOperation(f.operation, f.danger) {
		return
	}
	s.found = &Finding{
		Operation: f.operation, Pattern: f.pattern, Why: f.why, Danger: f.danger, Level: s.rules.Level,
		Command: cutToLine(shownWords(words), 200),
	}
}

// shownWords is a command for people: short enough to read.
func shownWords(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w)
		if b.Len() > 400 {
			break
		}
	}
	return b.String()
}

// cutToLine makes text one line of at most n bytes.
func cutToLine(text string, n int) string {
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
