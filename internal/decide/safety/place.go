package safety

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// placeOf says where a word leads as a path, as far as its text tells: one of the
// places that commands.txt names; "" is not known. A pattern for everything in a
// folder stands for the folder.
func (s *shell) placeOf(text string) string {
	if s.contained || text == "" || strings.ContainsRune("-:", rune(text[0])) {
		return ""
	}
	abs, ok := s.absolute(wholeFolder(strings.ReplaceAll(text, "//", "/")))
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

// absolute makes a path of a word; false when that cannot be known.
func (s *shell) absolute(text string) (string, bool) {
	first, rest, _ := strings.Cut(text, "/")
	base := s.cwd
	switch strings.Replace(first, "$+", "$", 1) {
	case "":
		return text, true
	case "~", "$HOME":
		base = s.home()
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

func (s *shell) home() string { return cmp.Or(s.rules.Home, "/home/user") }

// placeOfPath says where an absolute, clean path is.
func (s *shell) placeOfPath(p string) string {
	root, home := s.rules.root(), s.home()
	switch {
	case beginsWith(p, list("device")):
		return "device"
	case slices.Contains(list("stream"), p), beginsWith(p, list("streams")):
		return "stream"
	case p == root:
		return "workspace"
	case isBelow(p, root):
		switch rest := p[len(root)+1:]; {
		case rest == ".git", isWithinOne(rest, list("git data")):
			return "git"
		case isSecretFile(path.Base(p)):
			return "env"
		}
		return "inside"
	case isBelow(root, p), p == home, isBelow(home, p):
		return "outside"
	case isBelow(p, home):
		rest := p[len(home)+1:]
		if isWithinOne(rest, list("cache")) || isBelowOne(rest, list("agent folder")) {
			return "temporary"
		}
	case isBelowOne(p, list("temporary")):
		return "temporary"
	case slices.Contains(list("temporary"), p):
		return "shared"
	}
	return "outside"
}

// isBelow is true for what is in a folder, not for the folder itself.
func isBelow(p, folder string) bool {
	if folder == "/" {
		return len(p) > 1
	}
	return len(p) > len(folder) && p[len(folder)] == '/' && p[:len(folder)] == folder
}

func isBelowOne(p string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return isBelow(p, folder) })
}

// isWithinOne is true for the folders themselves, too.
func isWithinOne(p string, folders []string) bool {
	return slices.Contains(folders, p) || isBelowOne(p, folders)
}

func beginsWith(s string, beginnings []string) bool {
	return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(s, b) })
}

// isSecretFile is true for .env and its kin, which are rarely in git.
func isSecretFile(base string) bool {
	isEnv := base == ".env" || strings.HasPrefix(base, ".env.")
	return isEnv && !holdsOne(base, []string{"example", "sample", "template", "dist", "test"})
}
