package cli

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/serve"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/git"
)

// The repository of the demo, and a home in which git knows who commits.
//
//go:embed all:demo
var demoFiles embed.FS

// demoStory are the command lines of the demo, each below its heading.
var demoStory = []struct {
	heading string
	lines   [][]string
}{
	{"1. One run. The agent says that it is done while a test is red: not done.", [][]string{
		{"run", "build", "-v"},
		{"show", "build", "--diff"},
	}},
	{"2. A board of three tasks, each with a check of its own. Two agents at once.", [][]string{
		{"case", "add", "Leave out dashes at both ends", "--verify", `test "$(sh slug.sh -Hi-)" = hi`},
		{"case", "add", "Read the title from stdin", "--needs", "1", "--verify", "echo Hi | sh slug.sh | grep hi"},
		{"case", "add", "Show an example in README.md", "--verify", "grep slug.sh README.md"},
		{"autopilot"},
		{"case", "list", "--all"},
	}},
}

// demo is one showing of the story, in a folder that is removed at its end.
type demo struct {
	app     command.App // lives in the folder, and sees nothing of the person's settings
	folder  string
	signals chan os.Signal
}

func demoCommand(a *command.App) *cobra.Command {
	var keep, web bool
	cmd := command.Plain("demo", "Watch pawl work: an agent repairs a script, then two work on a board of three tasks",
		func(ctx context.Context) error { return showDemo(ctx, a, keep, web) })
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the scratch folder")
	cmd.Flags().BoolVar(&web, "web", false, "also show it in the browser, until Ctrl+C")
	return cmd
}

func showDemo(ctx context.Context, a *command.App, keep, web bool) (err error) {
	for _, program := range []string{"sh", "git"} {
		if _, err := a.LookPath(program); err != nil {
			return fault.Of(fault.Failed, fmt.Errorf("the demo needs %s, which is not on your PATH", program)).
				Hint("Install %s and run it again", program)
		}
	}
	scratch, err := os.MkdirTemp("", "pawl-demo-")
	if err != nil {
		return fmt.Errorf("cannot make a scratch folder: %v", err)
	}
	defer func() {
		switch gone := keep || os.RemoveAll(scratch) == nil; {
		case !gone:
			a.Say("Warning: the scratch folder cannot be removed: %s", scratch)
		case err != nil && !keep:
			a.Say("\nThe demo is over, and its folder is removed: the commands above no longer work.")
		}
	}()
	d := &demo{app: *a, folder: scratch, signals: make(chan os.Signal, 1)}
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	signal.Notify(d.signals, slices.DeleteFunc(ends, signal.Ignored)...)
	defer signal.Stop(d.signals)
	play := d.playStory
	if web {
		play = d.playInBrowser
	}
	if err := d.prepareFolder(ctx, web); err != nil {
		return fmt.Errorf("cannot prepare the demo: %w", err)
	}
	a.Say("A shell script with a bug is in %s.\n"+
		"A scripted agent plays a coding agent. All the rest is real: git, checks,\n"+
		"private clones, the loop. Nothing is sent anywhere.", d.app.Dir)
	if err := play(ctx); err != nil {
		return err
	}
	program := programName(a)
	if keep {
		a.Say("\nThe folder stays. To look around in it:\n  cd %s\n  XDG_STATE_HOME=%s %s show build",
			fault.QuoteShell(d.app.Dir), fault.QuoteShell(filepath.Join(scratch, "state")), program)
	}
	a.Say("\nIn a repository of your own:\n"+
		"  %[1]s init     # finds the checks of the project, and writes pawl.yaml\n"+
		"  %[1]s doctor   # is an agent here? are the checks green?\n"+
		"  %[1]s run build \"what is to be done\" -n 5", program)
	return nil
}

// programName starts this program in a shell: a path where it is not on the PATH.
func programName(a *command.App) string {
	_, err := a.LookPath("pawl")
	exe, unknown := os.Executable()
	if err == nil || unknown != nil {
		return "pawl"
	}
	return fault.QuoteShell(exe)
}

// prepareFolder makes the repository. Of the person's environment the demo keeps what it needs
// to find programs and to print.
func (d *demo) prepareFolder(ctx context.Context, web bool) error {
	app := &d.app
	app.Dir, app.File, app.Stdin = filepath.Join(d.folder, "slug"), "", strings.NewReader("")
	env := []string{"HOME=" + filepath.Join(d.folder, "home"), "XDG_STATE_HOME=" + filepath.Join(d.folder, "state"),
		"TMPDIR=" + filepath.Dir(d.folder), "GOPROXY=off"}
	for _, name := range []string{"PATH", "TERM", "NO_COLOR", "COLUMNS", "LANG", "LC_ALL", "TZ"} {
		if value := app.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	app.Env = env
	files, err := fs.Sub(demoFiles, "demo")
	if err == nil {
		err = os.CopyFS(d.folder, files)
	}
	if err == nil && web {
		err = slowAgent(filepath.Join(app.Dir, "agent.yaml"))
	}
	if err != nil {
		return err
	}
	return git.Init(ctx, app.Dir, "slug.sh, with a bug")
}

// slowAgent gives each turn of the scripted agent some seconds, so that one can follow.
func slowAgent(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, bytes.ReplaceAll(text, []byte("sleep: 0s"), []byte("sleep: 3s")), 0o644)
}

// playStory runs the command lines. It ends at the first that fails, and when a person ends it.
func (d *demo) playStory(ctx context.Context) error {
	for _, chapter := range demoStory {
		d.app.Say("\n%s", chapter.heading)
		for _, line := range chapter.lines {
			if len(d.signals) > 0 {
				return command.ExitWith(command.ExitInterrupted)
			}
			if err := d.runCommandLine(ctx, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// runCommandLine shows one command line, and runs it in the scratch folder.
func (d *demo) runCommandLine(ctx context.Context, line []string) error {
	var shown strings.Builder
	for _, word := range line {
		shown.WriteString(" " + fault.QuoteShell(word))
	}
	d.app.Say("\n$ pawl%s", shown.String())
	app := d.app
	root := buildCommands(&app)
	// The new command line began with the flags' defaults.
	app.Dir, app.Color, app.Quiet, app.JSON = d.app.Dir, d.app.Color, d.app.Quiet, d.app.JSON
	root.SetArgs(line)
	return root.ExecuteContext(ctx)
}

// playInBrowser serves the pages while the story plays, and afterwards until Ctrl+C.
func (d *demo) playInBrowser(ctx context.Context) error {
	db, root, err := d.app.Store(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it is removed with the folder
	return serve.Beside(ctx, &d.app, db, root, func() error {
		if err := d.playStory(ctx); err != nil {
			return err
		}
		d.app.Say("\nThe address above shows all of it. Ctrl+C ends the demo.")
		<-d.signals
		return nil
	})
}
