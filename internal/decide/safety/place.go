package safety

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// place is where a path is, as far as its text tells.
type place int

const (
	unknown   place = iota
	inside          // in the workspace
	wholeTree       // the workspace itself
	gitFolder       // the repository's own data
	temporary
	cache
	agentState // folders of the home folder that agents and tools keep for themselves
	outside    // anywhere else
)

// target is a path that was resolved.
type target struct {
	place   place
	path    string
	climbed bool // it leaves the workspace by "..": true only if commands start at its root
}

// resolve says where a word leads as a path. A pattern for everything in a
// folder stands for the folder.
func (m *matcher) resolve(text string) target {
	text = strings.ReplaceAll(text, "//", "/")
	climbs := strings.HasPrefix(text, "..")
	for _, tail := range []string{"/{*,.*}", "/**/*", "/**", "/*", "/.*", "/.[!.]*", "/.[^.]*", "/?*"} {
		if cut, ok := strings.CutSuffix(text, tail); ok {
			text = cut + "/"
			break
		}
	}
	switch text {
	case "*", ".*", "**", "?*", ".[!.]*", ".[^.]*", "**/*":
		text = "."
	}
	abs, ok := m.absolute(text)
	if !ok {
		return target{place: unknown, path: text}
	}
	t := m.locate(path.Clean(abs))
	t.climbed = climbs && t.place == outside
	return t
}

// absolute makes a path of a word; false when that cannot be known.
func (m *matcher) absolute(text string) (string, bool) {
	home := cmp.Or(m.rules.Home, "/home/user")
	switch {
	case text == "~" || strings.HasPrefix(text, "~/"):
		return home + text[1:], true
	case strings.HasPrefix(text, "~"):
		return "/home-of/" + text[1:], true
	case strings.HasPrefix(text, "/"):
		return text, true
	case !strings.HasPrefix(text, "$"):
		if m.cwd == "" {
			return "", false
		}
		return m.cwd + "/" + text, true
	}
	name, rest, _ := strings.Cut(text, "/")
	switch strings.TrimPrefix(name[1:], "+") {
	case "HOME":
		return home + "/" + rest, true
	case "PWD", "CLAUDE_PROJECT_DIR", "GITHUB_WORKSPACE", "WORKSPACE":
		if m.cwd == "" {
			return "", false
		}
		return m.cwd + "/" + rest, true
	case "TMPDIR", "TMP", "TEMP", "RUNNER_TEMP":
		return "/tmp/sub/" + rest, true
	}
	// An empty variable leaves what follows it.
	whole := rest == "" || rest == "*"
	if whole && isName(name[1:]) && len(text) > len(name) {
		return "/", true
	}
	return "", false
}

// locate says where an absolute, clean path is.
func (m *matcher) locate(p string) target {
	root := m.rules.root()
	switch {
	case p == root:
		return target{place: wholeTree, path: p}
	case below(p, root):
		if rest := p[len(root)+1:]; rest == ".git" || gitData(rest) {
			return target{place: gitFolder, path: p}
		}
		return target{place: inside, path: p}
	case below(root, p):
		return target{place: outside, path: p}
	}
	home := cmp.Or(m.rules.Home, "/home/user")
	if below(p, home) {
		return target{place: atHome(p[len(home)+1:]), path: p}
	}
	if p == home || below(home, p) {
		return target{place: outside, path: p}
	}
	if belowOne(p, list("temporary")) {
		return target{place: temporary, path: p}
	}
	if below(p, "/var/lib/apt/lists") || below(p, "/var/cache/apt") || p == "/var/lib/apt/lists" || p == "/var/cache/apt" {
		return target{place: cache, path: p}
	}
	return target{place: outside, path: p}
}

// atHome says what a path in the home folder is, by the part below it.
func atHome(rest string) place {
	if belowOne(rest, list("cache")) || slices.Contains(list("cache"), rest) {
		return cache
	}
	if agentFolder(rest) {
		return agentState
	}
	return outside
}

// below is true for what is in a folder, not for the folder itself.
func below(p, folder string) bool {
	if folder == "/" {
		return len(p) > 1
	}
	return len(p) > len(folder) && p[len(folder)] == '/' && p[:len(folder)] == folder
}

// gitData are the parts of .git whose loss or change cannot be repaired, or
// that make git run commands. Locks and messages are none.
func gitData(rest string) bool {
	return slices.Contains(list("git data"), rest) || belowOne(rest, list("git data"))
}

// agentFolder is true below folders of the home folder where agents keep their
// own state, which they write all day.
func agentFolder(rest string) bool {
	first, _, deep := strings.Cut(rest, "/")
	if !deep || slices.Contains(list("agent folder"), first) {
		return deep
	}
	if first != ".local" && first != ".config" {
		return false
	}
	isPart := func(name string) bool { return strings.Contains(rest, "/"+name+"/") }
	return slices.ContainsFunc(list("agent settings"), isPart)
}

// device is true for a path that is a disk or memory.
func device(p string) bool { return beginsWith(p, list("device")) }

// stream is true for the devices that everybody writes to.
func stream(p string) bool {
	return slices.Contains(list("stream"), p) || beginsWith(p, list("streams"))
}

func beginsWith(s string, beginnings []string) bool {
	return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(s, b) })
}

func belowOne(p string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return below(p, folder) })
}

// writesTo judges a file that is written, as a redirection or a tool does it.
func (m *matcher) writesTo(w word, words []word) {
	t := m.resolve(w.text)
	switch {
	case device(t.path):
		m.report(finding{pattern: "write-device", why: "overwrites a disk", danger: High}, words)
	case m.contained, stream(t.path), t.climbed:
	case t.place == gitFolder:
		m.report(finding{
			pattern: "write-git-data", why: "changes the repository's own data, hooks or configuration by hand", danger: High,
		}, words)
	case t.place == outside:
		f := finding{pattern: "write-outside", why: "writes outside of the workspace", danger: High, operation: Destructive}
		if m.rules.Level == Paranoid {
			f.operation = Writes
		}
		m.report(f, words)
	}
}

// redirects judges where a command's output goes.
func (m *matcher) redirects(c *command) {
	for _, r := range c.redirects {
		if m.found != nil {
			return
		}
		switch r.op {
		case ">", ">>", ">|", "&>", "&>>", "<>":
			m.writesTo(r.target, few(c.words, word{text: r.op}, r.target))
		case ">&":
			if !digits(r.target.text) && r.target.text != "-" {
				m.writesTo(r.target, few(c.words, word{text: r.op}, r.target))
			}
		}
	}
}

// few is the beginning of a command and what follows, for a message.
func few(words []word, more ...word) []word {
	n := min(len(words), 20)
	return append(words[:n:n], more...)
}

// removes judges files and folders that are deleted. tree is true when what
// is in folders goes too.
func (m *matcher) removes(paths []word, tree bool, words []word) {
	high := func(pattern, why string) { m.report(finding{pattern: pattern, why: why, danger: High}, words) }
	if m.contained {
		return
	}
	for _, w := range paths {
		t := m.resolve(w.text)
		switch t.place {
		case wholeTree:
			if tree {
				high("remove-workspace", "deletes the whole workspace")
			}
		case gitFolder:
			high("remove-git-data", "deletes the repository's own data")
		case outside:
			if stream(t.path) {
				continue
			}
			high("remove-outside", "deletes files outside of the workspace")
		case inside:
			if secretFile(path.Base(t.path)) {
				high("remove-secrets", "deletes a file that git does not keep")
			}
		}
	}
}

// secretFile is true for .env and its kin, which are rarely in git.
func secretFile(base string) bool {
	rest, ok := strings.CutPrefix(base, ".env")
	ends := rest == "" || rest[0] == '.'
	if !ok || !ends {
		return false
	}
	return !slices.ContainsFunc([]string{"example", "sample", "template", "dist", "test"}, func(s string) bool {
		return strings.Contains(rest, s)
	})
}
