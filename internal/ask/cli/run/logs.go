package run

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	flow "github.com/pawl-dev/pawl/internal/do/workflow/run"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/spool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

func logsCommand(a *command.App) *cobra.Command {
	var follow, raw, reviewed, stderr bool
	iteration, step, gate := 0, "", ""
	cmd := command.Leaf("logs RUN", "Show what a run does and did; -f follows it, -i N prints the output of an agent",
		command.ExactlyOne("a run or a procedure", command.SeeRuns), func(ctx context.Context, args []string) error {
			if iteration == 0 && step == "" && gate == "" && !stderr {
				return a.WithOperator(ctx, func(p *action.Operator) error {
					s := &story{a: a, p: p, raw: raw || a.JSON, reads: map[string]int64{}, seen: map[string]string{}}
					return s.printLogs(ctx, args[0], follow)
				})
			}
			return a.WithRun(ctx, args[0], func(p *action.Operator, r store.Run) error {
				switch {
				case r.Kind == "workflow", step != "":
					return stepOutput(ctx, a, p.Store, r, step, iteration)
				case gate != "":
					return gateOutput(ctx, a, p.Store, r, gate, iteration)
				}
				return iterationOutput(a, p.Store, r, cmp.Or(iteration, r.Iteration), reviewed, stderr)
			})
		})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "follow the run until it ends")
	cmd.Flags().BoolVar(&raw, "raw", false, "print the journal, one event per line")
	cmd.Flags().BoolVar(&reviewed, "review", false, "with -i: the raw output of its review instead")
	cmd.Flags().BoolVar(&stderr, "stderr", false, "print what the agent wrote on stderr, last or in iteration -i")
	cmd.Flags().IntVarP(&iteration, "iteration", "i", 0, "print the raw output of the agent in iteration `N`")
	cmd.Flags().StringVar(&gate, "gate", "", "print the output of the gate `NAME`, last or in iteration -i")
	cmd.Flags().StringVar(&step, "step", "", "print the raw output of the step `ID` of a workflow")
	return cmd
}

// printLogs prints the logs of a run. With follow it waits for one that has not begun,
// and refuses a name that no run can ever have here.
func (s *story) printLogs(ctx context.Context, arg string, follow bool) error {
	name := s.a.RunName(arg)
	mayBegin := command.LooksLikeFile(arg) && files.IsFile(s.a.InDir(arg)) || s.canHaveRun(ctx, name)
	_, err := command.FindRun(ctx, s.p.Store, s.p.Root, name)
	if errors.Is(err, store.ErrNotFound) && follow && mayBegin {
		s.a.Say("%s has no run yet. Waiting for it to start.", name)
		return s.printStory(ctx, name, true, true)
	}
	return s.printStory(ctx, name, follow, false)
}

func printEvent(a *command.App, e journal.Event) {
	if a.JSON {
		_ = a.JSONLine(e) // it always encodes
		return
	}
	a.Result("%s %s %s\n", e.At.Local().Format("2006-01-02 15:04:05"), e.Kind, e.Data)
}

// eventText is the part of an event's data that a person reads.
func eventText(e journal.Event) string {
	data := decodeData[struct {
		Text, Why, Name, Option string
		Choice                  int
	}](e)
	if data.Choice != 0 {
		data.Text = strings.TrimSuffix(fmt.Sprintf("%d. %s; %s", data.Choice, data.Option, data.Text), "; ")
	}
	for _, t := range []string{data.Text, data.Why, data.Name} {
		if t != "" {
			return ": " + report.Line(t, 200)
		}
	}
	return ""
}

// iterationOutput prints what an iteration's agent wrote, as it was.
func iterationOutput(a *command.App, st *store.Store, r store.Run, n int, reviewed, stderr bool) error {
	dir, err := a.Outputs(st, r, n)
	if errors.Is(err, fs.ErrNotExist) {
		if n <= r.Iteration {
			return errorNoOutput(st, r, n)
		}
		return command.Usage("run %s has no iteration %d", r.ID, n)
	}
	if err != nil {
		return fmt.Errorf("cannot read the output: %v", err)
	}
	defer func() { _ = dir.Close() }()
	name, who := "agent.out", "agent"
	if reviewed {
		name, who = lastReview(dir), "reviewer"
	}
	where := ""
	if stderr {
		name, where = strings.TrimSuffix(name, ".out")+".err", " on stderr"
	}
	f, err := spool.Open(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		a.Say("The %s of iteration %d printed nothing%s.", who, n, where)
		if beside := strings.TrimSuffix(name, ".out") + ".err"; !stderr {
			if _, err := dir.Stat(beside); err == nil {
				a.Say("See its stderr: pawl logs %s -i %d --stderr", r.ID, n)
			}
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the output: %v", err)
	}
	defer f.Close()
	_, err = io.Copy(console.Plain(a.Stdout), f)
	return err
}

// errorNoOutput explains on which machine the output of an iteration is, or why it is
// lost.
func errorNoOutput(st *store.Store, r store.Run, n int) error {
	e := command.Usage("the output of iteration %d of run %s is not on this machine", n, r.ID)
	if here, err := os.Hostname(); err != nil || !slices.Contains([]string{"", here}, r.Owner.Host) {
		e = e.Hint("It is on %s: run this there", r.Owner.Host)
	}
	if st.OutputsFolder() == nil {
		return e.Hint("To see the runs of other machines, share what they print: cluster.files (docs/cluster.md)")
	}
	return e.Hint("It was removed, or was never copied to cluster.files")
}

// gateOutput prints what a gate printed in an iteration; in 0 the last one in
// which it ran.
func gateOutput(ctx context.Context, a *command.App, st *store.Store, r store.Run, name string, iteration int) error {
	records, err := st.Iterations(ctx, r.ID)
	if err != nil {
		return err
	}
	var known []string
	for _, rec := range slices.Backward(records) {
		for i, g := range rec.Gates {
			known = lists.Union(known, g.Name)
			other := iteration > 0 && iteration != rec.Number
			if other || g.Name != name || g.Status == loop.GateNotRun {
				continue
			}
			err := withIterationFolder(a, st, r, rec.Number, func(dir *os.Root) error {
				return copyLines(a, dir, fmt.Sprintf("gate-%d.out", i+1), "")
			})
			if errors.Is(err, fs.ErrNotExist) {
				a.Say("The output of gate %s in iteration %d is not kept here.", name, rec.Number)
				return nil
			}
			return err
		}
	}
	where := "in any iteration"
	if iteration > 0 {
		where = fmt.Sprintf("in iteration %d", iteration)
	}
	switch {
	case len(known) == 0:
		return command.Usage("no gate has run in run %s yet", r.ID)
	case !slices.Contains(known, name):
		return command.Usage("run %s has no gate %q", r.ID, name).Hint("Its gates: %s", strings.Join(known, ", "))
	}
	return command.Usage("gate %q did not run %s of run %s", name, where, r.ID)
}

// lastReview is the output of the last review of an iteration.
func lastReview(dir *os.Root) string {
	name := "review.out"
	for try := 2; fileExists(dir, fmt.Sprintf("review-%d.begun.json", try)); try++ {
		name = fmt.Sprintf("review-%d.out", try)
	}
	return name
}

// stepOutput prints what the steps of a workflow printed: of one step, as it
// was; of all, each line with its step in front. iteration 0 is the newest
// execution of each.
func stepOutput(ctx context.Context, a *command.App, st *store.Store, r store.Run, step string, iteration int) error {
	rows, err := st.Steps(ctx, r.ID)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(rows, func(row store.StepRun) bool {
		return row.Step != cmp.Or(step, row.Step) || row.Iteration != cmp.Or(iteration, row.Iteration)
	})
	if iteration == 0 {
		list = newestExecutions(list, func(row store.StepRun) string { return row.Step })
	}
	if len(list) == 0 {
		return command.Usage("run %s has no such step", r.ID).Hint("See its steps: pawl show %s", r.ID)
	}
	for _, row := range list {
		files, err := flow.Files(row)
		if err != nil {
			return err
		}
		if files == "" {
			continue
		}
		prefix := row.Step + " | "
		if step != "" {
			prefix = ""
		}
		err = withIterationFolder(a, st, r, row.Iteration, func(dir *os.Root) error {
			return errors.Join(copyLines(a, dir, files+".out", prefix), copyLines(a, dir, files+".err", prefix))
		})
		if errors.Is(err, fs.ErrNotExist) {
			return errorNoOutput(st, r, row.Iteration)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withIterationFolder opens the folder of an iteration for do; [fs.ErrNotExist] where there is none.
func withIterationFolder(a *command.App, st *store.Store, r store.Run, n int, do func(*os.Root) error) error {
	dir, err := a.Outputs(st, r, n)
	if err != nil {
		return fmt.Errorf("cannot read the output: %w", err)
	}
	defer func() { _ = dir.Close() }()
	return do(dir)
}

// copyLines prints a file, each line with a prefix. One that is not there is empty.
func copyLines(a *command.App, dir *os.Root, name, prefix string) error {
	f, err := spool.Open(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the output: %v", err)
	}
	defer f.Close()
	if prefix == "" {
		_, err = io.Copy(console.Plain(a.Stdout), f)
		return err
	}
	r := bufio.NewReaderSize(f, 64<<10)
	out := console.Plain(a.Stdout)
	for begins := true; ; {
		part, more, err := r.ReadLine()
		if err != nil {
			return nil // the end
		}
		if begins {
			part = append([]byte(prefix), part...)
		}
		if _, err := out.Write(part); err != nil {
			return err
		}
		if begins = !more; begins {
			_, _ = io.WriteString(out, "\n") // the next write says what is wrong
		}
	}
}
