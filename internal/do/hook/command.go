package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// program is one command to run about an event.
type program struct {
	args    []string
	timeout time.Duration
	env     []string
	box     *sandbox.Policy
	left    []string // folders that the PATH lacks
}

const (
	// lease is how long a command runs on when pawl is gone.
	lease = 10 * time.Second
	// keptOutput and mostOutput are bytes of one stream: what is kept while it
	// runs, and with what it is ended.
	keptOutput = 256 << 10
	mostOutput = 64 << 20
	// shownOutput is how much of it goes into the log.
	shownOutput = 2000
	// abandoned is the age at which a folder that a killed pawl left is taken away.
	abandoned = time.Hour
	// markName is the variable that finds what a command left when its
	// supervisor was killed.
	markName = "PAWL_HOOK"
)

// runProgram runs p under a supervisor of its own, with the event on stdin, in the
// environment and nothing left afterwards. output is the end of what it
// printed.
func (r *Runner) runProgram(ctx context.Context, p program, e Event) (output string, err error) {
	if ctx.Err() != nil {
		return "", errors.New("not started: pawl ends")
	}
	dir, err := r.makeFolder(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	input, err := json.Marshal(e)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "event.json"), append(input, '\n'), 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("cannot write the event: %v", err)
	}
	id := filepath.Base(dir)
	client, err := supervisor.Start(ctx, supervisor.Options{
		RunDir: dir, Exe: r.o.Exe, Args: r.o.Args, Lease: lease, Run: id, Mark: markName + "=" + id,
		Unboxed: p.box == nil,
	})
	if err != nil {
		return "", err
	}
	at, env := r.o.Root, append(programEnviron(p.env, e), "PAWL_ROOT="+r.o.Root)
	if p.box == nil { // an agent may have written what lies in the project
		at = filepath.Join(dir, "here")
		if err := os.Mkdir(at, 0o700); err != nil {
			return "", fmt.Errorf("cannot make a folder for the command: %v", err)
		}
	}
	res, err := client.Run(ctx, supervisor.Job{
		ID: "1", Files: filepath.Join(dir, "command"), Args: p.args, Dir: at, Env: env,
		Stdin: filepath.Join(dir, "event.json"), Merge: true, Box: p.box,
		Limits: supervisor.Limits{Wall: p.timeout, Grace: r.o.Grace, Output: keptOutput, Printed: mostOutput},
	}, nil)
	if cerr := client.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", err
	}
	output = cmp.Or(res.Stdout.Tail, res.Stdout.Head)
	output = makePrintable(lastBytes(output, shownOutput), shownOutput)
	err = errorOfResult(res, p.timeout, output)
	if only := r.programLeftOut(p, output); res.Exit.Code == notFound && only != "" {
		err = fmt.Errorf("%v; %s", err, only)
	}
	return output, err
}

// notFound is the exit status of a shell that did not find a program.
const notFound = 127

// programLeftOut says which program that a shell did not find is in a folder that is left
// out of the PATH; "" for none.
func (r *Runner) programLeftOut(p program, output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for _, word := range strings.Fields(lines[len(lines)-1]) {
		name := strings.Trim(word, ":'\"`")
		if name == "" || strings.Contains(name, "/") {
			continue
		}
		for _, folder := range p.left {
			path := filepath.Join(folder, name)
			if !filepath.IsAbs(path) {
				path = filepath.Join(r.o.Root, path)
			}
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return fmt.Sprintf("%s is found only in %s, where an agent may put programs: write its full path, or "+
					"let the sandbox hold the command (sandbox: true)", name, makePrintable(folder, 200))
			}
		}
	}
	return ""
}

// programEnviron is inherited with the event's variables instead of those that pawl
// itself may have been started with.
func programEnviron(inherited []string, e Event) []string {
	event := e.eventVariables()
	own := slices.DeleteFunc(slices.Clone(inherited), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		of := func(v variable) bool { return v.name == name }
		return name == "PAWL_ITERATION" || name == markName || slices.ContainsFunc(event, of)
	})
	for _, v := range event {
		if v.value != "" {
			own = append(own, v.name+"="+makePrintable(v.value, maxVariable))
		}
	}
	return own
}

// errorOfResult is nil for a command that went well.
func errorOfResult(res supervisor.Result, timeout time.Duration, output string) error {
	last := ""
	if lines := strings.Split(strings.TrimSpace(output), "\n"); lines[len(lines)-1] != "" {
		last = ": " + makePrintable(lines[len(lines)-1], 200)
	}
	switch {
	case res.Error != "":
		return errors.New(res.Error)
	case res.Exit.Ended == loop.EndedTimeout:
		return fmt.Errorf("ended after its time limit of %s%s", timeout, last)
	case res.Exit.Ended == loop.EndedOutput:
		return fmt.Errorf("ended because it printed more than %d MiB", mostOutput>>20)
	case res.Exit.Ended == loop.EndedStop:
		return errors.New("ended because pawl ends")
	case res.Exit.Ended != loop.NotEnded:
		return fmt.Errorf("ended (%s)%s", res.Exit.Ended, last)
	case res.Exit.Signal != "":
		return fmt.Errorf("ended by %s%s", res.Exit.Signal, last)
	case res.Exit.Code != 0:
		return fmt.Errorf("exit status %d%s", res.Exit.Code, last)
	}
	return nil
}

// makeFolder makes a folder for one command, and takes away once what pawls that
// were killed left.
func (r *Runner) makeFolder(ctx context.Context) (string, error) {
	if err := os.MkdirAll(r.o.Dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make the folder of hooks: %v", err)
	}
	r.tidy.Do(func() { r.clearAbandoned(ctx) })
	dir, err := os.MkdirTemp(r.o.Dir, "hook-")
	if err != nil {
		return "", fmt.Errorf("cannot make the folder of a hook: %v", err)
	}
	return dir, nil
}

// clearAbandoned takes away the folders of commands that are over. Another pawl's command
// may take long: one that has a supervisor is at work.
func (r *Runner) clearAbandoned(ctx context.Context) {
	entries, _ := os.ReadDir(r.o.Dir)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() || time.Since(info.ModTime()) <= abandoned {
			continue
		}
		dir := filepath.Join(r.o.Dir, entry.Name())
		if _, err := supervisor.Probe(ctx, dir); errors.Is(err, supervisor.ErrGone) {
			_ = os.RemoveAll(dir)
		}
	}
}

func lastBytes(s string, most int) string { return s[max(0, len(s)-most):] }

// NoDesktop is the reason why no notification is shown.
const NoDesktop = "cannot show a desktop notification: neither notify-send nor osascript is installed"

// showOnDesktop shows e with the program that this machine has. What it shows goes
// in as arguments, never as part of a script.
func (r *Runner) showOnDesktop(ctx context.Context, timeout time.Duration, e Event) (string, error) {
	args := desktopCommand(e, filepath.Base(DesktopProgram(r.o.Whole)))
	if args == nil {
		return "", errors.New(NoDesktop)
	}
	return r.runProgram(ctx, program{args: args, timeout: timeout, env: r.o.Whole}, e)
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
