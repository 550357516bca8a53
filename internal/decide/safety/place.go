package safety

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// placeOfWord returns the place, one of those that commands.txt names, to which a word leads as a path,
// as far as its text shows; "" is not known. A pattern for everything in a folder stands for the
// folder.
func (s *shell) placeOfWord(text string) string {
	if s.contained || text == "" || strings.ContainsRune("-:", rune(text[0])) {
		return ""
	}
	abs, ok := s.absolutePath(wholeFolder(strings.ReplaceAll(text, "//", "/")))
	if !ok {
		return ""
	}
	place := s.placeOfPath(path.Clean(abs))
	if place == "outside" && strings.HasPrefix(text, "..") {
		return "above"
	}
	return place
}

// wholeFolder is the folder that a pattern for everything in it stands for.
func wholeFolder(text string) string {
	for _, tail := range []string{"/{*,.*}", "/**/*", "/**", "/*", "/.*", "/.[!.]*", "/.[^.]*", "/?*"} {
		if cut, ok := strings.CutSuffix(text, tail); ok {
			return cut + "/"
		}
	}
	if slices.Contains([]string{"*", ".*", "**", "?*", ".[!.]*", ".[^.]*", "**/*"}, text) {
		return "."
	}
	return text
}

// absolutePath makes a path of a word; false when that cannot be known.
func (s *shell) absolutePath(text string) (string, bool) {
	first, rest, _ := strings.Cut(text, "/")
	base := s.cwd
	switch strings.Replace(first, "$+", "$", 1) {
	case "":
		return text, true
	case "~", "$HOME":
		base = s.homeFolder()
	case "$PWD", "$CLAUDE_PROJECT_DIR", "$GITHUB_WORKSPACE", "$WORKSPACE":
	case "$TMPDIR", "$TMP", "$TEMP", "$RUNNER_TEMP":
		base = "/tmp/sub"
	default:
		switch text[0] {
		case '~':
			return "/home-of/" + text[1:], true
		case '$': // an empty variable leaves what follows it
			return "/", rest == "" && syntax.ValidName(first[1:]) && len(text) > len(first)
		}
		rest = text
	}
	return base + "/" + rest, base != ""
}

func (s *shell) homeFolder() string { return cmp.Or(s.rules.Home, "/home/user") }

// placeOfPath returns the place of an absolute, clean path; "" is not known.
func (s *shell) placeOfPath(p string) string {
	root, home := s.rules.rootFolder(), s.homeFolder()
	switch {
	case beginsWith(p, namedList("device")):
		return "device"
	case slices.Contains(namedList("stream"), p), beginsWith(p, namedList("streams")):
		return "stream"
	case p == root:
		return "workspace"
	case isBelowFolder(p, root):
		switch rest := p[len(root)+1:]; {
		case rest == ".git", isWithinOne(rest, namedList("git data")):
			return "git"
		case isSecretFile(path.Base(p)):
			return "env"
		}
		return "inside"
	case isBelowFolder(root, p), p == home, isBelowFolder(home, p):
		return "outside"
	case isBelowFolder(p, home):
		rest := p[len(home)+1:]
		if isWithinOne(rest, namedList("cache")) || isBelowOne(rest, namedList("agent folder")) {
			return "temporary"
		}
	case isBelowOne(p, namedList("temporary")):
		return "temporary"
	case slices.Contains(namedList("temporary"), p):
		return "shared"
	}
	return "outside"
}

// isBelowFolder is false for the folder itself.
func isBelowFolder(p, folder string) bool {
	if folder == "/" {
		return len(p) > 1
	}
	return len(p) > len(folder) && p[len(folder)] == '/' && p[:len(folder)] == folder
}

func isBelowOne(p string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return isBelowFolder(p, folder) })
}

// isWithinOne counts the folders themselves, too.
func isWithinOne(p string, folders []string) bool {
	return slices.Contains(folders, p) || isBelowOne(p, folders)
}

func beginsWith(s string, beginnings []string) bool {
	return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(s, b) })
}

// isSecretFile knows .env and its variants, which are rarely in git. Examples are no secrets.
func isSecretFile(base string) bool {
	isEnv := base == ".env" || strings.HasPrefix(base, ".env.")
	return isEnv && !containsOneOf(base, []string{"example", "sample", "template", "dist", "test"})
}
