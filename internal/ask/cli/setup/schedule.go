package setup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
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
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// This file starts pawl at certain times, by the timers that the machine has.

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
	var cron, install bool
	var cmd *cobra.Command
	cmd = command.Leaf("schedule WHEN COMMAND [ARG…]", "Start a command of pawl at certain times", whenAndWhat,
		func(ctx context.Context, args []string) error {
			if err := session.NotInside(a); err != nil {
				return err
			}
			t, err := timerOf(a, args)
			if err == nil {
				err = checkLine(a, cmd.Root(), t.root, args[1:])
			}
			switch {
			case err != nil:
				return err
			case cron && install:
				return command.Usage("--install is for systemd").Hint("Add the line by hand: crontab -e")
			case cron:
				a.Result("%s\n", t.crontab())
			case install:
				return t.install(ctx, a)
			default:
				a.Result("# %s.timer\n%s\n# %s.service\n%s", t.name, t.timer(), t.name, t.service())
				a.Say("Nothing is installed yet. Install it: %s", installLine(a, args))
			}
			t.sayKeys(a)
			return nil
		})
	cmd.Flags().BoolVar(&cron, "cron", false, "print a line for crontab -e")
	cmd.Flags().BoolVar(&install, "install", false, "install and start the timer for this user (systemd)")
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

// installLine is what a person types to install what is printed.
func installLine(a *command.App, args []string) string {
	words := []string{"pawl"}
	if a.Dir != "" {
		words = append(words, "-C", a.Dir)
	}
	if a.File != "" {
		words = append(words, "--config", a.File)
	}
	words = append(append(words, "schedule", "--install"), args...)
	for i, word := range words {
		words[i] = quoteShell(word)
	}
	return strings.Join(words, " ")
}

// moment is when something starts, in both languages.
type moment struct{ systemd, cron string }

// moments are the forms of WHEN, without "every".
var moments = lazy.Regexp(`^(?:(hourly|hour)|(\d+) ?min(?:ute)?s?|(?:(daily|day|night|weekdays?|` +
	`mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?) )?(?:at )?(\d{1,2}):(\d\d))$`)

var days = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// readWhen understands WHEN; false is that nobody can.
func readWhen(text string) (moment, bool) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	m := moments().FindStringSubmatch(strings.TrimPrefix(text, "every "))
	if m == nil {
		return moment{}, false
	}
	if m[1] != "" {
		return moment{"*-*-* *:00:00", "0 * * * *"}, true
	}
	if m[2] != "" {
		n, err := strconv.Atoi(m[2])
		if err != nil || n < 5 || n > 30 || 60%n != 0 {
			return moment{}, false
		}
		return moment{fmt.Sprintf("*-*-* *:00/%d:00", n), fmt.Sprintf("*/%d * * * *", n)}, true
	}
	at, err := time.Parse("15:04", m[4]+":"+m[5])
	if err != nil {
		return moment{}, false
	}
	name, day := "", "*"
	if strings.HasPrefix(m[3], "weekday") {
		name, day = "Mon..Fri ", "1-5"
	} else if i := slices.Index(days, m[3][:min(3, len(m[3]))]); i >= 0 && m[3] != "" {
		name, day = strings.ToUpper(days[i][:1])+days[i][1:]+" ", strconv.Itoa(i)
	}
	return moment{name + "*-*-* " + at.Format("15:04") + ":00",
		fmt.Sprintf("%d %d * * %s", at.Minute(), at.Hour(), day)}, true
}

// timer is one command at certain times.
type timer struct {
	moment
	name   string   // of the units
	root   string   // the project's
	line   []string // the command line: pawl, and its arguments
	about  string   // the command, for people
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
	t := timer{moment: at, root: root, line: []string{exe, "-C", root},
		config: cmp.Or(a.Getenv("XDG_CONFIG_HOME"), filepath.Join(a.Getenv("HOME"), ".config"))}
	if a.File != "" {
		file, err := filepath.Abs(a.InDir(a.File))
		if err != nil {
			return timer{}, err
		}
		t.line = append(t.line, "--config", file)
	}
	t.line = append(t.line, args[1:]...)
	t.about = strings.Join(t.line[3:], " ") + " in " + root
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
			return timer{}, command.Usage("a timer cannot hold %q: it has a control character", text)
		}
	}
	if _, err := readEnvFile(t.keyFile()); err != nil {
		return timer{}, err
	}
	sum := sha256.Sum256([]byte(strings.Join(append(slices.Clone(t.line), at.cron), "\x00")))
	t.name = "pawl-" + args[1] + "-" + hex.EncodeToString(sum[:4])
	return t, nil
}

func (t timer) keyFile() string { return filepath.Join(t.config, "pawl", "env") }

func (t timer) timer() string {
	return fmt.Sprintf("[Unit]\n%s\n\n[Timer]\nOnCalendar=%s\n\n[Install]\nWantedBy=timers.target\n",
		t.described(), t.systemd)
}

// words are the command line with the file of keys, which pawl reads itself, so that it means
// the same everywhere.
func (t timer) words() []string {
	return append([]string{t.line[0], withEnv, t.keyFile()}, t.line[1:]...)
}

// described is a line of a unit that says what it does.
func (t timer) described() string {
	return "Description=pawl " + strings.ReplaceAll(t.about, "%", "%%")
}

// service ends pawl before its agents: it ends them itself, within its grace.
func (t timer) service() string {
	var line, env []string
	for _, word := range t.words() {
		line = append(line, quoteUnit(strings.ReplaceAll(word, "$", "$$")))
	}
	for _, kv := range t.env {
		env = append(env, "Environment="+quoteUnit(kv)+"\n")
	}
	return fmt.Sprintf("[Unit]\n%s\n\n[Service]\nType=oneshot\n%sExecStart=%s\nKillMode=mixed\nTimeoutStopSec=60\n",
		t.described(), strings.Join(env, ""), strings.Join(line, " "))
}

// crontab is the line of a crontab, in which a percent sign is special.
func (t timer) crontab() string {
	words := []string{t.cron, "exec env"}
	for _, word := range append(slices.Clone(t.env), t.words()...) {
		words = append(words, quoteShell(word))
	}
	return strings.ReplaceAll(strings.Join(words, " "), "%", `\%`)
}

// quoteUnit quotes a word of a unit file.
func quoteUnit(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(word) + `"`
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
		a.Say("Note: %s is set here, and not for a timer. Write it into %s (chmod 600), or set gateway.keys.",
			strings.Join(t.keys, ", "), t.keyFile())
	}
}

// install writes the units and starts the timer.
func (t timer) install(ctx context.Context, a *command.App) error {
	dir := filepath.Join(t.config, "systemd", "user")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot install the timer: %v", err)
	}
	for name, text := range map[string]string{".service": t.service(), ".timer": t.timer()} {
		if err := files.Replace(filepath.Join(dir, t.name+name), []byte(text), 0o644, false); err != nil {
			return fmt.Errorf("cannot install the timer: %v", err)
		}
	}
	const bound = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	for _, args := range [][]string{{"daemon-reload"}, {"enable", "--now", t.name + ".timer"}} {
		program, err := a.LookPath("systemctl")
		if err != nil {
			return fault.Of(fault.Failed, fmt.Errorf("systemd is not here: %v", err)).Hint("Use cron: pawl schedule --cron …")
		}
		cmd := exec.CommandContext(ctx, program, append([]string{"--user"}, args...)...)
		cmd.Env = a.Env
		if out, err := cmd.CombinedOutput(); err != nil {
			said := strings.Join(strings.Fields(string(out)), " ")
			return fault.Of(fault.Failed, fmt.Errorf("the timer is written to %s, and not started: %v: %s", dir, err, said)).
				Hint("Use cron instead: pawl schedule --cron …")
		}
	}
	a.Result("%s.timer\n", t.name)
	a.Say("It runs also when you are logged out after: loginctl enable-linger\nWhat it did:  journalctl --user -u %s\n"+
		"Remove it:    systemctl --user disable --now %s.timer", t.name, t.name)
	t.sayKeys(a)
	return nil
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
		case !plain && strings.IndexByte(`'"`, c) >= 0:
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
