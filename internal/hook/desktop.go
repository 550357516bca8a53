package hook

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/process"
)

// NoDesktop says why nothing is shown.
const NoDesktop = "nothing is shown on the desktop: neither notify-send nor osascript is installed"

// desktop shows e with the program that this machine has. What it shows goes
// in as arguments, never as part of a script.
func (r *Runner) desktop(ctx context.Context, timeout time.Duration, e Event) (string, error) {
	args := desktopCommand(e, filepath.Base(DesktopProgram(r.o.Whole)))
	if args == nil {
		return "", errors.New(NoDesktop)
	}
	return r.run(ctx, program{args: args, timeout: timeout, env: r.o.Whole}, e)
}

// DesktopProgram is the program that shows notifications with env, or "".
func DesktopProgram(env []string) string {
	for _, name := range []string{"notify-send", "osascript"} {
		if path, err := (process.Command{Args: []string{name}, Env: env}).Resolve(); err == nil {
			return path
		}
	}
	return ""
}

// desktopCommand is the command line of a program; nil for an unknown one.
func desktopCommand(e Event, name string) []string {
	title, body, _ := strings.Cut(e.Text, "\n")
	switch name {
	case "notify-send":
		urgency := "normal"
		if e.Name == Escalation || e.Name == Error {
			urgency = "critical"
		}
		// The body may hold markup; the title may not.
		escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(body)
		return []string{name, "--app-name=pawl", "--urgency=" + urgency, "--", title, escaped}
	case "osascript":
		const display = "display notification (item 2 of argv) with title (item 1 of argv)"
		script := []string{name, "-e", "on run argv", "-e", display, "-e", "end run"}
		if body == "" {
			title, body = "pawl", title
		}
		return append(script, "--", title, body)
	}
	return nil
}
