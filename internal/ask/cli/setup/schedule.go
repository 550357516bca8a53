package setup

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
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
		"Print a crontab line that runs a pawl command at certain times", whenAndWhat,
		func(_ context.Context, args []string) error {
			if err := session.NotInside(a); err != nil {
				return err
			}
			t, err := readTimer(a, args)
			if err == nil {
				err = checkLine(a, cmd.Root(), t.root, args[1:])
			}
			if err != nil {
				return err
			}
			a.Result("%s\n", t.crontabLine())
			a.Say("Nothing is scheduled yet. Add it to your crontab: (crontab -l; %s) | crontab -", repeatLine(a, args))
			if len(t.keys) > 0 {
				a.Say("Note: %s is set here, and not for cron. Write it above the line, as NAME=value, or set gateway.keys.",
					strings.Join(t.keys, ", "))
			}
			return nil
		})
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
	err = cmd.ValidateArgs(args)
	if err == nil {
		err = root.PersistentPreRunE(cmd, args)
	}
	if check := a.Checks[cmd]; err == nil && check != nil {
		err = check(args)
	}
	return err
}

// repeatLine returns the command that prints the line again, quoted for a shell.
func repeatLine(a *command.App, args []string) string {
	words := []string{"pawl"}
	if a.Dir != "" {
		words = append(words, "-C", a.Dir)
	}
	if a.File != "" {
		words = append(words, "--config", a.File)
	}
	words = append(append(words, "schedule"), args...)
	return strings.Join(lists.Each(words, fault.QuoteShell), " ")
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
	at   string   // the five fields of a crontab
	root string   // the project's
	line []string // the command line: pawl, and its arguments
	env  []string // K=V that it needs and that hold no secret
	keys []string // names of the keys that are set now
}

func readTimer(a *command.App, args []string) (timer, error) {
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
	t := timer{at: at, root: root, line: []string{exe, "-C", root}}
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
		if name, value, _ := strings.Cut(kv, "="); strings.HasSuffix(name, "_API_KEY") && value != "" {
			t.keys = append(t.keys, name)
		}
	}
	for _, text := range slices.Concat(t.line, t.env) {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return timer{}, command.Usage("a crontab cannot hold %q: it has a control character", text)
		}
	}
	return t, nil
}

// crontabLine returns the line of a crontab, in which a percent sign is special.
func (t timer) crontabLine() string {
	words := []string{t.at, "exec env"}
	words = append(words, lists.Each(slices.Concat(t.env, t.line), fault.QuoteShell)...)
	return strings.ReplaceAll(strings.Join(words, " "), "%", `\%`)
}
