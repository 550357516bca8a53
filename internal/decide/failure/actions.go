package failure

import (
	"cmp"

	"github.com/pawl-dev/pawl/internal/decide/failure/printed"

	_ "embed"
	"encoding/json"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// actions.json

// advice has possible actions of a person or an agent; see actions.json.
type advice struct {
	Words   []string // of lines whose class says too little
	Actions []string
	Own     string
}

//go:embed actions.json
var adviceFile []byte

// advices are by class, and by class and form ("dependency/own").
var advices = sync.OnceValue(func() (table struct {
	About   string
	Classes map[string]advice
	Lines   []advice
}) {
	if err := json.Unmarshal(adviceFile, &table); err != nil {
		panic("actions.json: " + err.Error()) // a test reads it
	}
	return table
})

var unnamed = lazy.Regexp(`\{(.*?)\}`)

// adviceFormOf is the form of a failure that has advice of its own; "" for the class's.
func adviceFormOf(c Class, k Kind, source, subject string) string {
	switch {
	case c == MissingCommand && k == Work && strings.Contains(subject, "/"):
		return "path"
	case c == MissingCommand && k == Work:
		return "package"
	case c == Dependency && (strings.HasPrefix(subject, ".") || strings.HasPrefix(subject, "/")):
		return "own"
	case c == QuotaExhausted && k == Transient:
		return "waits"
	case c == ResourceExhausted:
		return subject
	case c == Permission && source == "agent":
		return "agent"
	case c == GitState && subject != "":
		return "lock"
	case c == Crash && k == Transient:
		return "outside"
	case c == Timeout && k != Transient:
		return "final"
	}
	return ""
}

// actionsFor lists what to do, most useful first. subject is what the failure
// is about, "" when it is not known.
func actionsFor(v verdict, k Kind, source, subject string, t printed.Text) []string {
	table, said := advices(), ""
	if v.line >= 0 {
		said = words.Small(t.LineAt(v.line))
	}
	for _, l := range table.Lines {
		if words.HasAny(said, l.Words) {
			return l.Actions
		}
	}
	a, known := table.Classes[string(v.class)+"/"+adviceFormOf(v.class, k, source, subject)]
	if !known {
		a = table.Classes[string(v.class)]
	}
	var acts []string
	for _, text := range a.Actions {
		acts = append(acts, unnamed().ReplaceAllStringFunc(text, func(other string) string {
			return cmp.Or(subject, strings.Trim(other, "{}"))
		}))
	}
	if a.Own != "" && source != "log" && source != "" { // a log has no agent or configuration behind it
		acts = append(acts, a.Own)
	}
	return acts
}

// subjectOf finds what a failure is about in the line that decided.
func subjectOf(c Class, l string) string {
	switch c {
	case MissingCommand:
		return missingCommand(l)
	case PortConflict:
		return portInLine(l)
	case ResourceExhausted:
		return resourceOf(l)
	case Dependency:
		return quotedAfter(l, "module named", "find module", "cannot find package", "resolve",
			"no matching package named",
			"no such module", "crate for", "locate package", "could not find gem", "required module provides package")
	case GitState:
		if at := quotedAfter(l, "unable to create"); strings.HasSuffix(at, ".lock") {
			return at
		}
	case Permission:
		return quotedAfter(l, "permission denied", "permission denied,", "access", "open", "mkdir", "unlink", "scandir",
			"create directory", "read-only file system:")
	default:
	}
	return ""
}

// missingCommand: "sh: 1: jest: not found", "spawn wrangler ENOENT",
// `exec: "x": executable file not found`, "No such file or directory: 'x'".
func missingCommand(l string) string {
	if name := quotedAfter(l, "exec:", "no such file or directory:", "unable to locate executable file:",
		"corresponding to"); name != "" {
		return name
	}
	if i := strings.Index(l, "spawn "); i >= 0 {
		return nameOrNothing(strings.Fields(l[i+6:] + " .")[0])
	}
	for _, end := range []string{": command not found", ": not found", ": No such file", " : commande introuvable",
		": commande introuvable", ": orden no encontrada", ": Befehl nicht gefunden", ": 未找到命令"} {
		if i := strings.Index(l, end); i > 0 {
			head := strings.TrimRight(l[:i], " ")
			return nameOrNothing(head[strings.LastIndexAny(head, " :")+1:])
		}
	}
	return ""
}

// portInLine: "address already in use :::3000", "Bind for 0.0.0.0:5432 failed",
// "listen tcp 127.0.0.1:8080: bind: …", "port 3000 is in use".
func portInLine(l string) string {
	for at := range len(l) {
		named := l[at] == ' ' && at >= 4 && strings.EqualFold(l[at-4:at], "port")
		if l[at] != ':' && !named {
			continue
		}
		n, end := words.Number(l, at+1)
		if end < len(l) && strings.ContainsAny(l[end:end+1], ".") {
			continue
		}
		goesOn := end < len(l) && words.IsWord(l[end])
		if n >= 80 && n < 65536 && !goesOn {
			return "port " + l[at+1:end]
		}
	}
	return ""
}

func resourceOf(l string) string {
	l = words.Small(l)
	switch {
	case words.HasAny(l, []string{"space", "enospc", "disk", "edquot", "quota", "speicherplatz", "磁盘"}) &&
		!words.HasAny(l, []string{"heap space", "watchers"}):
		return "disk"
	case words.HasAny(l, []string{"memory", "heap", "oom", "bad_alloc", "enomem", "metaspace"}):
		return "memory"
	case words.HasAny(l, []string{"open files", "emfile", "enfile", "connection", "clients", "thread", "process", "fork",
		"watchers", "temporarily", "error 24"}):
		return "descriptors"
	}
	return ""
}

// quotedAfter returns what stands in quotes behind one of the list (small
// letters), "" when nothing does.
func quotedAfter(l string, list ...string) string {
	small := words.Small(l)
	for _, w := range list {
		i := strings.Index(small, w)
		if i < 0 {
			continue
		}
		rest := strings.TrimLeft(l[i+len(w):], " :,")
		for _, q := range []string{"''", `""`, "``", "‘’", "`'"} {
			open := []rune(q)
			after, ok := strings.CutPrefix(rest, string(open[0]))
			if !ok {
				continue
			}
			if end := strings.Index(after, string(open[1])); end > 0 && end < 200 {
				return after[:end]
			}
		}
	}
	return ""
}

// nameOrNothing returns s if it is the name of a command or a path, else "".
func nameOrNothing(s string) string {
	s = strings.Trim(s, "'\"`")
	if s == "" || len(s) > 100 || strings.ContainsAny(s, "(){}<>|;&$") {
		return ""
	}
	return s
}

// kindOfFailure says who has to act. Transient is narrower than [Transient]: a quota
// that resets at a known time is waited for, but a retry within minutes does
// not pass.
func kindOfFailure(e Evidence, c Class, f flag, waits bool) (kind Kind, transient bool) {
	if f&machine != 0 {
		return Permanent, false
	}
	switch c {
	case Timeout, RateLimit, Network, ServiceUnavailable, PortConflict:
		if f&final != 0 {
			return Work, false
		}
		return Transient, true
	case QuotaExhausted:
		if waits {
			return Transient, false
		}
		return Permanent, false
	case MissingCommand:
		if f&ours != 0 {
			return Work, false
		}
		return Permanent, false
	case Auth, LimitExceeded:
		return Permanent, false
	case Permission, Dependency:
		if atStart := c == Permission || e.CutOff; e.Source == "agent" && atStart { // it did not get to its work
			return Permanent, false
		}
		return Work, false
	case Validation:
		if e.Source == "agent" && f&setup != 0 {
			return Permanent, false
		}
		return Work, false
	default:
	}
	if f&retries != 0 {
		return Transient, true
	}
	return Work, false
}

// ownerOfMissing returns the flag of the part that lacks something. A path is the repository's, and
// so is a program that a package's script starts; a full disk and a folder of the system are the machine's.
func ownerOfMissing(e Evidence, h *hits, v verdict, subject string) flag {
	c, line := v.class, v.line
	switch {
	case c == ResourceExhausted && subject == "disk",
		c == Permission && deniedInSystem().MatchString(h.t.All):
		return machine
	case c != MissingCommand || e.Source == "agent":
		return 0
	case strings.Contains(subject, "/") && !onMachine().MatchString(subject), h.namesPackageProgram(line):
		return ours
	}
	return 0
}

// namesPackageProgram reports whether a program of the project's own packages is missing: the shell
// of npm, yarn or bundler names it, and no script of the project.
func (h *hits) namesPackageProgram(line int) bool {
	inScript := line >= 0 && scriptLine().MatchString(h.t.LineAt(line))
	return !inScript && packageScript().MatchString(h.t.All)
}

var (
	// scriptLine begins what a shell says about a line of a script.
	scriptLine = lazy.Regexp(`^\S+\.\w+: (?:line )?\d+: `)
	// onMachine begins the paths of programs that are installed.
	onMachine = lazy.Regexp(`^/(?:usr|bin|sbin|opt|nix|snap|lib)/`)
	// deniedInSystem is a refusal of a path that only an administrator of the machine writes.
	deniedInSystem = lazy.Regexp(`(?i)(?:denied|eacces|not permitted)[^\n]*[\s'"(]/(?:usr|opt|etc|boot|Library)/` +
		`|[\s'"(]/(?:usr|opt|etc|boot|Library)/\S*: (?:permission denied|operation not permitted)`)
	// packageScript is what npm, yarn and bundler say when they run a script or a
	// program of the project's own packages.
	packageScript = lazy.Regexp(`(?m)^> \S+@\S+ \S+$|^yarn run v|^bundler: command not found`)
)

// severityOf grades a failure for the run: critical stops it until a person
// acts, high throws away what the iteration did, medium is work to repair, low
// passes by itself or is a matter of form. How often it came back is the
// caller's to add.
func severityOf(c Class, k Kind) Severity {
	switch {
	case k == Permanent:
		return Critical
	case c == Crash && k == Work, c == Tampering, c == LimitExceeded, c == ResourceExhausted &&
		k == Work, c == MergeConflict:
		return High
	case c == Lint:
		return Low
	case c == QuotaExhausted:
		return Medium
	case k == Transient:
		return Low
	}
	return Medium
}
