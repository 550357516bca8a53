package safety

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// This file says what a command prints, as far as its text tells, and where
// that comes from.

// output is what a substitution becomes, as far as it is known.
func (s *shell) output(cmds []*command) string {
	if len(cmds) == 0 {
		return ""
	}
	last := cmds[len(cmds)-1]
	if text, ok := printed(last); ok {
		s.pay(len(text))
		return strings.TrimRight(text, "\n")
	}
	if len(last.words) == 0 {
		return "$()"
	}
	switch path.Base(last.words[0].text) {
	case "pwd":
		return "$PWD"
	case "mktemp":
		return "/tmp/mktemp"
	case "git":
		if last.words[len(last.words)-1].text == "--show-toplevel" {
			return "$PWD"
		}
	case "which", "command", "type", "realpath":
		if arg := last.words[len(last.words)-1].text; len(last.words) > 1 && !strings.HasPrefix(arg, "-") {
			return arg
		}
	case "docker", "podman", "nerdctl":
		if has(last.words[1:], 'q', "--quiet") && !has(last.words[1:], 'f', "--filter") {
			return "$all"
		}
	}
	if names := printedNames(last); names != nil {
		text := joined(names)
		s.pay(len(text))
		return text
	}
	return "$()"
}

// printedNames stand for the files that a command lists, as far as they are known.
func printedNames(c *command) []word {
	one := &call{name: baseName(c.words[0].text), args: c.words[1:]}
	switch one.name {
	case "find", "fd":
		return foundBy(one)
	case "git":
		if joined(one.args) == "ls-files" {
			return []word{{text: "."}}
		}
	case "ls", "dir":
		paths := one.operands()
		if len(paths) == 0 {
			return []word{{text: "*"}}
		}
		return lists.Each(paths, func(p word) word {
			if !strings.Contains(p.text, "*") {
				p.text += "/*"
			}
			return p
		})
	}
	return nil
}

// printed is what echo, printf, or cat with a here-document prints.
func printed(c *command) (string, bool) {
	if len(c.words) == 0 {
		return "", false
	}
	name := path.Base(c.words[0].text)
	if c.from != nil && name == "cat" {
		return "", false
	}
	args := texts(c.words[1:])
	switch name {
	case "echo":
		escapes := false
		for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
			escapes = escapes || strings.Contains(args[0], "e")
			args = args[1:]
		}
		text := strings.Join(args, " ")
		if escapes {
			text = unescape(text)
		}
		return text, true
	case "printf":
		return formatted(args)
	case "cat":
		return c.text, c.fed && len(args) == 0
	}
	return "", false
}

// printsUnread is true if one of the commands fetches or decodes text.
func printsUnread(cmds []*command) bool {
	return slices.ContainsFunc(cmds, func(c *command) bool {
		return slices.ContainsFunc(c.words, func(w word) bool { return w.unread }) ||
			len(c.words) > 0 && slices.Contains(list("prints unread text"), path.Base(c.words[0].text))
	})
}

var formatWidth = lazy.Regexp(`%[-0-9.+# *]+`)

// formatted is what printf prints, but for the width of what it fills in.
func formatted(args []string) (text string, ok bool) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return "", false
	}
	format, rest := formatWidth().ReplaceAllString(args[0], "%"), args[1:]
	var out strings.Builder
	for {
		one, n, err := expand.Format(&expand.Config{}, format, rest)
		out.WriteString(one)
		rest = rest[n:]
		if n == 0 || len(rest) == 0 || err != nil {
			return out.String(), true
		}
	}
}
