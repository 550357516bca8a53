package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// This file prints the line of a crontab that starts pawl at certain times.

// scheduled are the commands that make sense without a person.
var scheduled = []string{"autopilot", "gc", "queue", "resume", "run", "sprint"}

func whenAndWhat(_ *cobra.Command, args []string) error {
	if len(args) < 2 {
		return command.Usage("pawl schedule needs a time and a command of pawl").
			Hint("Such as: pawl schedule \"daily 02:00\" autopilot")
	}
	return nil
}

func scheduleCommand(a *command.App) *cobra.Command {
	var cmd *cobra.Command
	cmd = command.Leaf("schedule WHEN COMMAND [ARG…]",
		"Print the line of a crontab that starts a command of pawl at certain times", whenAndWhat,
		func(_ context.Context, args []string) error {
			if err := session.NotInside(a); err != nil {
				return err
			}
			t, err := timerOf(a, args)
			if err == nil {
				err = checkLine(a, cmd.Root(), t.root, args[1:])
			}
			if err != nil {
				return err
			}
			a.Result("%s\n", t.crontab())
			a.Say("Nothing starts yet. Add the line to your crontab: (crontab -l; %s) | crontab -", typedLine(a, args))
			t.sayKeys(a)
			return nil
		})
	_ = cmd.Flags().Bool("cron", false, "what it does anyway")
	_ = cmd.Flags().MarkHidden("cron") // it had to be said when there were other lines
	cmd.Flags().SetInterspersed(false) // flags behind COMMAND are its own
	return cmd
}

// checkLine refuses a command line that the command would refuse when it starts.
func checkLine(a *command.App, root *cobra.Command, project string, line []string) error {
	own := *a // flags of the line are not those of this command
	defer func() { *a = own }()
	a.Dir, a.Stdin, a.Stdout = project, strings.NewReader(""), io.Discard
	if a.File != "" {
		file, err := filepath.Abs(own.InDir(own.File))
		if err != nil {
			return err
		}
		a.File = file
	}
	cmd, rest, err := root.Find(line)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return cmd.FlagErrorFunc()(cmd, err)
	}
	args := cmd.Flags().Args()
	if cmd.HasSubCommands() && len(args) > 0 {
		return command.UnknownCommand(cmd, args[0])
	}
	err = cmd.ValidateArgs(args)
	if err == nil {
		err = root.PersistentPreRunE(cmd, args)
	}
	if check := a.Checks[cmd]; err == nil && check != nil {
		err = check(args)
	}
	return err
}

// typedLine is what a person types to have the line printed again.
func typedLine(a *command.App, args []string) string {
	words := []string{"pawl"}
	if a.Dir != "" {
		words = append(words, "-C", a.Dir)
	}
	if a.File != "" {
		words = append(words, "--config", a.File)
	}
	words = append(append(words, "schedule"), args...)
	for i, word := range words {
		words[i] = quoteShell(word)
	}
	return strings.Join(words, " ")
}

// moments are the forms of WHEN, without "every".
var moments = lazy.Regexp(`^(?:(hourly|hour)|(\d+) ?min(?:ute)?s?|(?:(daily|day|night|weekdays?|` +
	`mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?) )?(?:at )?(\d{1,2}):(\d\d))$`)

var days = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// readWhen gives the five fields of a crontab for WHEN; false where it cannot be read.
func readWhen(text string) (string, bool) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	m := moments().FindStringSubmatch(strings.TrimPrefix(text, "every "))
	if m == nil {
		return "", false
	}
	if m[1] != "" {
		return "0 * * * *", true
	}
	if m[2] != "" {
		n, err := strconv.Atoi(m[2])
		if err != nil || n < 5 || n > 30 || 60%n != 0 {
			return "", false
		}
		return fmt.Sprintf("*/%d * * * *", n), true
	}
	at, err := time.Parse("15:04", m[4]+":"+m[5])
	if err != nil {
		return "", false
	}
	day := "*"
	if strings.HasPrefix(m[3], "weekday") {
		day = "1-5"
	} else if i := slices.Index(days, m[3][:min(3, len(m[3]))]); i >= 0 && m[3] != "" {
		day = strconv.Itoa(i)
	}
	return fmt.Sprintf("%d %d * * %s", at.Minute(), at.Hour(), day), true
}

// timer is one command at certain times.
type timer struct {
	at     string   // the five fields of a crontab
	root   string   // the project's
	line   []string // the command line: pawl, and its arguments
	env    []string // K=V that it needs and that hold no secret
	config string   // the user's folder of configurations
	keys   []string // names of the keys that are set now
}

func timerOf(a *command.App, args []string) (timer, error) {
	at, ok := readWhen(args[0])
	if !ok {
		return timer{}, command.Usage("cannot read %q as a time", args[0]).
			Hint("Write: \"every night 02:00\", \"weekdays 18:30\", \"monday 09:00\", hourly, \"every 15 minutes\"")
	}
	if !slices.Contains(scheduled, args[1]) {
		return timer{}, command.Usage("%q cannot be scheduled: it needs a person, or does nothing by itself", args[1]).
			Hint("Schedule one of: %s", strings.Join(scheduled, ", "))
	}
	root, err := a.Root()
	if err != nil {
		return timer{}, err
	}
	exe, err := os.Executable()
	if err != nil {
		return timer{}, fmt.Errorf("cannot find pawl's own program: %v", err)
	}
	t := timer{at: at, root: root, line: []string{exe, "-C", root},
		config: cmp.Or(a.Getenv("XDG_CONFIG_HOME"), filepath.Join(a.Getenv("HOME"), ".config"))}
	if a.File != "" {
		file, err := filepath.Abs(a.InDir(a.File))
		if err != nil {
			return timer{}, err
		}
		t.line = append(t.line, "--config", file)
	}
	t.line = append(t.line, args[1:]...)
	for _, name := range []string{"PATH", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		if v := a.Getenv(name); v != "" {
			t.env = append(t.env, name+"="+v)
		}
	}
	for _, kv := range a.Env {
		if name, _, _ := strings.Cut(kv, "="); strings.HasSuffix(name, "_API_KEY") {
			t.keys = append(t.keys, name)
		}
	}
	for _, text := range append(t.words(), t.env...) {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return timer{}, command.Usage("a crontab cannot hold %q: it has a control character", text)
		}
	}
	if _, err := readEnvFile(t.keyFile()); err != nil {
		return timer{}, err
	}
	return t, nil
}

func (t timer) keyFile() string { return filepath.Join(t.config, "pawl", "env") }

// words are the command line with the file of keys, which pawl reads itself, so that it means
// the same everywhere.
func (t timer) words() []string {
	return append([]string{t.line[0], withEnv, t.keyFile()}, t.line[1:]...)
}

// crontab is the line of a crontab, in which a percent sign is special.
func (t timer) crontab() string {
	words := []string{t.at, "exec env"}
	for _, word := range append(slices.Clone(t.env), t.words()...) {
		words = append(words, quoteShell(word))
	}
	return strings.ReplaceAll(strings.Join(words, " "), "%", `\%`)
}

// quoteShell quotes a word for a shell, where it needs that.
func quoteShell(word string) string {
	plain := strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@") == ""
	if plain && word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// sayKeys names the keys that the command will not have.
func (t timer) sayKeys(a *command.App) {
	if _, err := os.Stat(t.keyFile()); err != nil && len(t.keys) > 0 {
		a.Say("Note: %s is set here, and not for cron. Write it into %s (chmod 600), or set gateway.keys.",
			strings.Join(t.keys, ", "), t.keyFile())
	}
}

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

// parseEnv reads lines NAME=VALUE: # and ; begin a comment at the start of a line, a value may be in quotes,
// in which nothing is special; nothing is ever evaluated. A line that is none of these is named by its number.
func parseEnv(text string) (env []string, bad int) {
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		whole := found && envName().MatchString(name) && !strings.ContainsRune(value, 0)
		if quote := value[:min(1, len(value))]; quote == `"` || quote == "'" {
			inside, ends := strings.CutSuffix(value[1:], quote)
			whole, value = whole && ends && !strings.Contains(inside, quote), inside
		}
		if !whole {
			return nil, i + 1
		}
		env = append(env, name+"="+value)
	}
	return env, 0
}
