package failure

import (
	"cmp"
	"strings"
)

// advice is what a person or an agent could do about a class of failure.
// "{x}" stands for what the failure is about, or for x where that is not known.
type advice struct {
	actions []string
	own     string // what pawl's own configuration can do
}

var advices = map[Class]advice{
	Auth: {actions: []string{
		"Check the credentials: log in again, or set the key that the message names.",
		"Check that the account may do this.",
	}},
	MissingCommand: {
		actions: []string{"Install {the command that the message names}, or correct PATH."},
		own:     "Change the command in pawl.yaml.",
	},
	QuotaExhausted: {
		actions: []string{"Buy credits or change the plan.", "Use another key or provider."},
		own:     "Use another agent: agents.fallback.",
	},
	RateLimit: {actions: []string{"Wait and try again.", "Send less at the same time."}},
	ServiceUnavailable: {actions: []string{
		"Wait and try again: the service answers with an error of its own.",
		"Look at its status page.",
	}},
	Network: {actions: []string{
		"Try again.",
		"Check that {the address} is right and can be reached from here (DNS, proxy, firewall, is it running?).",
	}},
	Timeout: {
		actions: []string{"Find what hangs or is slow.", "Give it a longer timeout."},
		own:     "Raise iteration_timeout or the gate's timeout, if it needs longer.",
	},
	PortConflict: {
		actions: []string{"Use a free port instead of {this one}.", "End the process that holds it, if it is your own."},
		own:     "Take ports from PAWL_PORT_BASE, which differs for every run.",
	},
	ResourceExhausted: {actions: []string{"Free disk, memory or file descriptors.", "Run less at the same time."}},
	ContextLength:     {actions: []string{"Give less context, or split the task."}},
	Permission: {actions: []string{
		"Correct owner and mode of {the file that the message names}, or work elsewhere.",
	}},
	Validation:  {actions: []string{"Correct the option, input or configuration that the message names."}},
	TestFailure: {actions: []string{"Repair the code until the failing tests pass; do not weaken the tests."}},
	CompileError: {actions: []string{
		"Repair the first error; later ones often follow from it.",
	}},
	Lint:          {actions: []string{"Repair what the check reports."}},
	Dependency:    {actions: []string{"Declare and install {what is missing}, or correct its version."}},
	MergeConflict: {actions: []string{"Resolve the conflict so that both sides keep their intent."}},
	GitState:      {actions: []string{"Bring the repository into the state that the message asks for."}},
	Crash: {actions: []string{
		"Find the cause at the first frame of the project's own code.",
		"If it was killed from outside: try again, and look at the machine's memory.",
	}},
	NoProgress:    {actions: []string{"Answer the question, or make the task more exact."}},
	Tampering:     {actions: []string{"Put the protected files back as they were."}},
	LimitExceeded: {actions: []string{"Raise the limit, or split the task."}},
	RefusedByModel: {
		actions: []string{
			"Go about the task another way: the model refused to answer. Say what the work is for, " +
				"and leave out what it may object to.",
		},
		own: "Use another model or agent, if it refuses again: agents.fallback.",
	},
	OutputLimit: {actions: []string{
		"Write in smaller pieces: the answer was cut off at the longest that the model may write. " +
			"Change one function or a few lines at a time instead of writing whole files.",
	}},
	EmptyAnswer: {actions: []string{
		"Take the next small step and say what you did: the model's last answer was empty.",
	}},
	MalformedAnswer: {
		actions: []string{
			"Call one tool at a time, with short arguments in plain JSON: the model's last answer could not be read.",
		},
		own: "If each answer is so, look at what stands between pawl and the provider: a proxy, a base URL.",
	},
	Unknown: {actions: []string{"Run the failing command by itself, with more output: this one names no cause."}},
}

// resourceActions are what to do about a resource that is used up.
func resourceActions(subject string) []string {
	switch subject {
	case "disk":
		return []string{
			"Look what fills the disk (df -h, then du -xhd2 / | sort -h), and delete it: build outputs, caches, images.",
		}
	case "memory":
		return []string{"Give it more memory, or raise its own heap limit.", "Run less at the same time."}
	case "descriptors":
		return []string{
			"Run less at the same time.",
			"Raise the limit (ulimit -n, ulimit -u, connections of the pool).",
		}
	}
	return nil
}

// particular are the actions for lines whose class says too little.
var particular = []struct {
	words   []string
	actions []string
}{
	{[]string{"externally-managed-environment", "externally managed"}, []string{
		"Make a virtual environment in the workspace (python3 -m venv .venv) and install there.",
	}},
	{[]string{"docker daemon", "docker.sock"}, []string{
		"Start Docker: its daemon does not run here, or this user may not reach it.",
	}},
	{[]string{"x509:", "certificate"}, []string{
		"Let this machine trust the server's certificate (ca-certificates, SSL_CERT_FILE, NODE_EXTRA_CA_CERTS), " +
			"or correct the address.",
		"Look whether a proxy puts its own certificate in between, and whether the clock is right.",
	}},
}

var unnamed = onUse(`\{(.*?)\}`)

// actionsFor lists what to do, most useful first. subject is what the failure
// is about, "" when it is not known.
func actionsFor(v verdict, k Kind, source, subject string, t text) []string {
	c := v.class
	a := advices[c]
	byAgent := source == "agent"
	said := ""
	if v.line >= 0 {
		said = smallLetters(t.line(v.line))
	}
	for _, p := range particular {
		if holdsAny(said, p.words) {
			return p.actions
		}
	}
	path := strings.HasPrefix(subject, ".") || strings.Contains(subject, "/")
	ownModule := strings.HasPrefix(subject, ".") || strings.HasPrefix(subject, "/")
	switch {
	case c == MissingCommand && k == Work && path:
		a.actions, a.own = []string{"Write {it}, or correct the path: it belongs to the repository."}, ""
	case c == MissingCommand && k == Work:
		a.actions = []string{"Install the project's own packages (npm ci, bundle install); declare {it} if they lack it."}
		a.own = ""
	case c == Dependency && ownModule:
		a.actions = []string{"Write {it}, or correct the path of the import."}
	case c == QuotaExhausted && k == Transient:
		a.actions = []string{"Wait until the limit resets."}
	case c == ResourceExhausted && subject != "":
		if a.actions = resourceActions(subject); subject == "disk" {
			a.own = "Let `pawl gc` remove what pawl keeps of finished runs."
		}
	case c == Permission && byAgent:
		a.actions = []string{"Allow the tool or the folder in the agent's configuration."}
		a.own = "Choose another safety level, if the agent may do this."
	case c == GitState && subject != "":
		a.actions = []string{"Wait for the other git process. If none runs, remove {it}."}
	case c == Timeout && k != Transient:
		a.own = ""
	}
	var acts []string
	for _, text := range a.actions {
		acts = append(acts, unnamed().ReplaceAllStringFunc(text, func(other string) string {
			return cmp.Or(subject, strings.Trim(other, "{}"))
		}))
	}
	if a.own != "" && source != "log" && source != "" { // else nobody's agent or configuration is at work
		acts = append(acts, a.own)
	}
	return acts
}

// subjectOf finds what a failure is about in the line that decided.
func subjectOf(c Class, l string) string {
	switch c {
	case MissingCommand:
		return missingCommand(l)
	case PortConflict:
		return portIn(l)
	case ResourceExhausted:
		return resourceOf(l)
	case Dependency:
		return quotedAfter(l, "module named", "find module", "cannot find package", "resolve", "no matching package named",
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
		return nameOnly(strings.Fields(l[i+6:] + " .")[0])
	}
	for _, end := range []string{": command not found", ": not found", ": No such file", " : commande introuvable",
		": commande introuvable", ": orden no encontrada", ": Befehl nicht gefunden", ": 未找到命令"} {
		if i := strings.Index(l, end); i > 0 {
			head := strings.TrimRight(l[:i], " ")
			return nameOnly(head[strings.LastIndexAny(head, " :")+1:])
		}
	}
	return ""
}

// portIn: "address already in use :::3000", "Bind for 0.0.0.0:5432 failed",
// "listen tcp 127.0.0.1:8080: bind: …", "port 3000 is in use".
func portIn(l string) string {
	for at := range len(l) {
		named := l[at] == ' ' && at >= 4 && strings.EqualFold(l[at-4:at], "port")
		if l[at] != ':' && !named {
			continue
		}
		n, end := number(l, at+1)
		if end < len(l) && strings.ContainsAny(l[end:end+1], ".") {
			continue
		}
		goesOn := end < len(l) && wordByte(l[end])
		if n >= 80 && n < 65536 && !goesOn {
			return "port " + l[at+1:end]
		}
	}
	return ""
}

func resourceOf(l string) string {
	l = smallLetters(l)
	switch {
	case holdsAny(l, []string{"space", "enospc", "disk", "edquot", "quota", "speicherplatz", "磁盘"}) &&
		!holdsAny(l, []string{"heap space", "watchers"}):
		return "disk"
	case holdsAny(l, []string{"memory", "heap", "oom", "bad_alloc", "enomem", "metaspace"}):
		return "memory"
	case holdsAny(l, []string{"open files", "emfile", "enfile", "connection", "clients", "thread", "process", "fork",
		"watchers", "temporarily", "error 24"}):
		return "descriptors"
	}
	return ""
}

// quotedAfter returns what stands in quotes behind one of the words (small
// letters), "" when nothing does.
func quotedAfter(l string, words ...string) string {
	small := smallLetters(l)
	for _, w := range words {
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
		if j := strings.IndexAny(rest, "'\""); j >= 0 && j < 40 { // "permission denied, open '/etc/x'"
			if end := strings.IndexByte(rest[j+1:], rest[j]); end > 0 && end < 200 {
				return rest[j+1 : j+1+end]
			}
		}
	}
	return ""
}

// nameOnly returns s if it is the name of a command or a path, else "".
func nameOnly(s string) string {
	s = strings.Trim(s, "'\"`")
	if s == "" || len(s) > 100 || strings.ContainsAny(s, "(){}<>|;&$") {
		return ""
	}
	return s
}
