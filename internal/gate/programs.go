package gate

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// builtins are words of the shell that are no programs, or stand before one.
var builtins = strings.Fields(`! : [ [[ break cd command continue echo eval exec exit export false hash local printf pwd
	read readonly return set shift test time times trap true type ulimit umask unset wait if then else elif fi for while
	until do done case esac in function { }`)

// uncertain is what makes it impossible to know from its text which programs a
// command needs, or where they are looked for.
var uncertain = lazy.Regexp(
	"`|\\$\\(|<<|\\bPATH=|\\beval\\b|\\balias\\b|\\(\\)|(^|[;&|\\n]\\s*)(source|\\.|if|for|while|case|until)\\s")

var assignment = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*=`)

// Programs are the names of the programs that a command needs for certain and that
// are looked for in PATH. Of a command that is not plain none is known.
func Programs(command string) []string {
	if uncertain().MatchString(command) {
		return nil
	}
	certain, _, _ := strings.Cut(command, "||")
	var found []string
	for _, simple := range simples(certain) {
		for _, word := range strings.Fields(simple) {
			if assignment().MatchString(word) {
				continue
			}
			plain := !strings.ContainsAny(word, `/$"'\*?{}()<>#&`+"~")
			if plain && !slices.Contains(builtins, word) && !slices.Contains(found, word) {
				found = append(found, word)
			}
			break
		}
	}
	return found
}

// simples cuts a text at what separates commands, outside of quotes.
func simples(text string) []string {
	var out []string
	var quote rune
	start := 0
	for i, c := range text {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '&' && i > 0 && text[i-1] == '>': // 2>&1
		case strings.ContainsRune(";|&\n", c):
			out = append(out, text[start:i])
			start = i + 1
		}
	}
	return append(out, text[start:])
}
