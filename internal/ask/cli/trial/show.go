package trial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/trial"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// output is where a report goes beside the terminal.
type output struct{ markdown, html string }

func (o *output) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.markdown, "markdown", "", "write the report to `FILE`, as Markdown; - is stdout")
	cmd.Flags().StringVar(&o.html, "html", "", "write the report to `FILE`, as a page with charts; - is stdout")
}

// checkFiles refuses a file that cannot be written before anything is paid.
func (o *output) checkFiles(a *command.App) error {
	for _, name := range lists.NonEmpty(o.markdown, o.html) {
		if info, err := os.Stat(a.InDir(name)); err == nil && info.IsDir() {
			return command.Usage("%s is a folder: name the file of the report", name)
		}
		if _, err := os.Stat(filepath.Dir(a.InDir(name))); err != nil {
			return command.Usage("the report cannot be written: %v", err)
		}
	}
	return nil
}

func (o *output) showReport(a *command.App, r trial.Report) error {
	page, err := r.HTML()
	shown := r.Markdown()
	for _, f := range []struct{ name, text string }{{o.markdown, r.Markdown()}, {o.html, page}} {
		switch {
		case f.name == "-":
			shown = f.text
		case f.name != "" && err == nil:
			err = files.Replace(a.InDir(f.name), []byte(f.text), 0o644, false)
		}
	}
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.Document(r)
	}
	a.Result("%s", shown)
	return nil
}

// lastTrial is the trial that was asked for last.
func lastTrial(ctx context.Context, a *command.App) (c *config.Config, p plan, r trial.Report, err error) {
	if c, err = a.Load(nil); err != nil {
		return c, p, r, err
	}
	b := &bench{app: a, dir: trialDir(a, c.Root)}
	err = files.ReadJSON(filepath.Join(b.dir, "last.json"), &p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, p, r, command.Usage("there is no trial here yet").Hint("Start one: pawl trial --max-cost 5")
	case err != nil:
		return c, p, r, fmt.Errorf("cannot read the last trial: %w", err)
	}
	if b.board, err = a.Database(ctx, c); err != nil {
		return c, p, r, err
	}
	made, err := b.attemptsOf(ctx, p)
	return c, p, trial.Build(p.Tasks, made, len(p.Attempts)), errors.Join(err, b.board.Close())
}

func reportCommand(a *command.App) *cobra.Command {
	var out output
	cmd := command.Plain("report", "Show the result of the last trial", func(ctx context.Context) error {
		_, _, r, err := lastTrial(ctx, a)
		if err != nil {
			return err
		}
		return out.showReport(a, r)
	})
	out.addFlags(cmd)
	return cmd
}

func applyCommand(a *command.App) *cobra.Command {
	var yes bool
	cmd := command.Plain("apply", "Propose better settings by the last trial, and write them after you confirm",
		func(ctx context.Context) error { return applyLast(ctx, a, yes) })
	cmd.Flags().BoolVar(&yes, "yes", false, "write them without a question")
	return cmd
}

func applyLast(ctx context.Context, a *command.App, yes bool) error {
	c, p, r, err := lastTrial(ctx, a)
	if err != nil {
		return err
	}
	best, why := trial.Propose(r.Attempts, trial.Variant{Agent: c.Agent, Setting: trial.AsIs})
	name := filepath.Base(c.File)
	switch {
	case a.JSON:
		err = a.Document(struct {
			trial.Proposal
			Why string `json:"why_none,omitempty"`
		}{best, why})
	case why != "":
		a.Result("Nothing is proposed: %s.\n", why)
	default:
		a.Result("Proposed for %s: %s, instead of %s.\n", name, best.Variant, best.Instead)
		for _, line := range best.Evidence {
			a.Result("  %s\n", line)
		}
	}
	onlyShown := a.JSON && !yes
	if err != nil || why != "" || onlyShown {
		return err
	}
	text, err := proposedText(c, p, best)
	if err != nil {
		return err
	}
	if !yes {
		if !a.Interactive() {
			a.Say("Write it: pawl trial apply --yes")
			return command.StatusError(command.ExitPerson)
		}
		if !command.IsYes(a.Ask("Write it to %s? [y/N] ", name)) {
			return command.StatusError(command.ExitPerson)
		}
	}
	if err := files.Replace(c.File, text, 0o644, true); err != nil {
		return fmt.Errorf("cannot write %s: %w", c.File, err)
	}
	a.Say("Written to %s. See what changed: git diff", name)
	return nil
}

// proposedText is pawl.yaml with the proposed settings, and the agent over them.
func proposedText(c *config.Config, p plan, best trial.Proposal) ([]byte, error) {
	text, err := os.ReadFile(c.File)
	if over := p.Settings[best.Setting]; over != "" && err == nil {
		text, err = config.LayOver(text, []byte(over))
	}
	if err == nil && best.Agent != c.Agent {
		text, err = config.LayOver(text, []byte("agent: "+best.Agent+"\n"))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot write the settings into %s: %w", c.Name(), err)
	}
	return text, nil
}
