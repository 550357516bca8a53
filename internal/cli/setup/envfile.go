package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/lazy"
)

// withEnv is the command that starts pawl with what a file of keys holds: with-env FILE ARG…
const withEnv = "with-env"

func withEnvCommand(a *command.App) *cobra.Command {
	cmd := command.Leaf(withEnv+" FILE ARG…", "Start pawl with the variables of a file", cobra.MinimumNArgs(2),
		func(_ context.Context, args []string) error {
			more, err := readEnvFile(args[0])
			if err != nil {
				return err
			}
			exe, err := os.Executable()
			if err != nil {
				return fmt.Errorf("cannot find pawl's own program: %v", err)
			}
			err = syscall.Exec(exe, append([]string{exe}, args[1:]...), slices.Concat(a.Env, more))
			return fmt.Errorf("cannot start pawl: %v", err)
		})
	cmd.Hidden = true
	cmd.DisableFlagParsing = true
	return cmd
}

// readEnvFile reads a file of keys; one that is not there holds none.
func readEnvFile(path string) ([]string, error) {
	const most = 1 << 20
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && (!info.Mode().IsRegular() || info.Size() > most):
		return nil, fault.Refuse("%s: a file of keys is a text of at most 1 MiB", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Refuse("cannot read the file of keys: %v", err)
	}
	env, line := parseEnv(string(text))
	if line > 0 {
		return nil, fault.Refuse("%s, line %d: this is no NAME=VALUE", path, line).
			Hint("Write one a line, without \"export\"; a value that begins with a quote ends with it")
	}
	return env, nil
}

var envName = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)

// parseEnv reads lines NAME=VALUE as systemd reads an EnvironmentFile: # and ; begin a comment
// at the start of a line, a value may be in quotes and then go over lines, a backslash takes a
// character as it is and joins lines; nothing is ever evaluated. A line that is none of these
// is named by its number.
func parseEnv(text string) (env []string, bad int) {
	line := 1
	for text != "" {
		first, rest, _ := strings.Cut(text, "\n")
		trimmed := strings.TrimSpace(first)
		if trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';' {
			text = rest
			line++
			continue
		}
		name, _, found := strings.Cut(first, "=")
		name = strings.TrimSpace(name)
		if !found || !envName().MatchString(name) {
			return nil, line
		}
		value, n, ok := envValue(text[strings.IndexByte(text, '=')+1:])
		if !ok || strings.ContainsRune(value, 0) {
			return nil, line
		}
		env = append(env, name+"="+value)
		read := len(text) - n
		line += strings.Count(text[:read], "\n")
		text = text[read:]
	}
	return env, 0
}

// envValue reads a value up to the end of its line. left is how many bytes follow it; false is
// that a quote has no end.
func envValue(text string) (value string, left int, ok bool) {
	var b strings.Builder
	var quote byte // 0: outside of quotes
	kept := 0      // bytes of the value that are not blanks at its end
	plain := false // a value that began without a quote: quotes in it are characters
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && quote != '\'':
			i++
			if i == len(text) {
				break
			}
			if next := text[i]; next != '\n' {
				if quote == '"' && !strings.ContainsRune("\"\\`$", rune(next)) {
					b.WriteByte('\\')
				}
				b.WriteByte(next)
				kept = b.Len()
			}
			plain = plain || quote == 0
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			b.WriteByte(c)
			kept = b.Len()
		case c == '\n':
			return b.String()[:kept], len(text) - i - 1, true
		case !plain && (c == '\'' || c == '"'):
			quote = c
		case strings.IndexByte(" \t\r", c) >= 0:
			if plain {
				b.WriteByte(c)
			}
		default:
			plain = true
			b.WriteByte(c)
			kept = b.Len()
		}
	}
	return b.String()[:kept], 0, quote == 0
}
