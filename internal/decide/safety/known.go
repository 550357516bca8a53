package safety

import (
	"path"
	"strings"

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
	switch name := path.Base(last.words[0].text); name {
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
	case "ls", "find":
		return s.listed(name, last)
	}
	return "$()"
}

// listed stands for what ls or find prints: names that rm gets, for example.
func (s *shell) listed(name string, c *command) string {
	args := operands(c.words[1:])
	if name == "find" {
		roots, filtered := foundBy(&call{name: name, args: c.words[1:]})
		if filtered {
			return "$()"
		}
		args = roots
	} else if len(args) == 0 {
		args = []word{{text: "*"}}
	}
	text := strings.Join(texts(args), " ")
	s.pay(len(text))
	return text
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
	args := lists.Each(c.words[1:], func(w word) string { return w.text })
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
		return formatted(args), len(args) > 0
	case "cat":
		return c.text, c.fed && len(args) == 0
	}
	return "", false
}

// formatted is what printf prints, near enough: text in the order of printing.
func formatted(args []string) string {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return ""
	}
	format, rest := args[0], args[1:]
	var out strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			out.WriteByte(format[i])
			continue
		}
		i++
		if format[i] == '%' {
			out.WriteByte('%')
			continue
		}
		for i < len(format)-1 && strings.IndexByte("0123456789.-+# ", format[i]) >= 0 {
			i++
		}
		if len(rest) > 0 {
			out.WriteString(rest[0])
			rest = rest[1:]
		}
	}
	for _, more := range rest {
		out.WriteString(" " + more)
	}
	return unescape(out.String())
}

// taintOf says whether commands download or decode.
func taintOf(cmds []*command) taint {
	var t taint
	for _, c := range cmds {
		t |= c.taint()
	}
	return t
}

// taint says what a command's output is, and what flows through it.
func (c *command) taint() taint {
	var t taint
	for at := range c.words {
		t |= c.words[at].taint
	}
	if len(c.words) == 0 {
		return t
	}
	args := c.words[1:]
	switch path.Base(c.words[0].text) {
	case "curl", "wget", "fetch", "lynx", "http", "https", "nc", "ncat", "aria2c", "ssh":
		return t | downloaded
	case "base64", "base32", "basenc", "openssl", "uudecode":
		if has(args, 'd', "--decode") || has(args, 'D', "") || path.Base(c.words[0].text) == "uudecode" {
			return t | decoded
		}
	case "xxd":
		if has(args, 'r', "--revert") {
			return t | decoded
		}
	case "rev", "tr", "gunzip", "zcat", "bzcat", "xzcat":
		return t | decoded
	case "gzip", "xz", "bzip2":
		if has(args, 'd', "--decompress") {
			return t | decoded
		}
	}
	return t
}
