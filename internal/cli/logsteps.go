package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/sqlite"
	flow "github.com/pawl-dev/pawl/internal/workflow/run"
)

// stepOutput prints what the steps of a workflow printed: of one step, as it
// was; of all, each line with its step in front. iteration 0 is the newest
// execution of each.
func (a *app) stepOutput(ctx context.Context, st *sqlite.Store, r sqlite.Run, step string, iteration int) error {
	rows, err := st.Steps(ctx, r.ID)
	if err != nil {
		return err
	}
	var list []sqlite.StepRun
	at := map[string]int{}
	for _, row := range rows {
		if step != "" && row.Step != step || iteration > 0 && row.Iteration != iteration {
			continue
		}
		if i, ok := at[row.Step]; ok && iteration == 0 {
			list[i] = row
			continue
		}
		at[row.Step] = len(list)
		list = append(list, row)
	}
	if len(list) == 0 {
		return usage("run %s has no such step", r.ID).Hint("See its steps: pawl show %s", r.ID)
	}
	for _, row := range list {
		files, err := flow.Files(row)
		if err != nil {
			return err
		}
		prefix := row.Step + " | "
		if step != "" {
			prefix = ""
		}
		for _, end := range []string{".out", ".err"} {
			if err := a.copyLines(files+end, prefix); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyLines prints a file, each line with a prefix. One that is not there is empty.
func (a *app) copyLines(path, prefix string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the output: %v", err)
	}
	defer f.Close()
	if prefix == "" {
		_, err = io.Copy(a.stdout, f)
		return err
	}
	r := bufio.NewReaderSize(f, 64<<10)
	for begins := true; ; {
		part, more, err := r.ReadLine()
		if err != nil {
			return nil // the end
		}
		if begins {
			a.result("%s", prefix)
		}
		if _, err := a.stdout.Write(part); err != nil {
			return err
		}
		if begins = !more; begins {
			a.result("\n")
		}
	}
}

// stepText is an event of a step in words.
func stepText(e journal.Event) string {
	var st journal.Step
	if json.Unmarshal(e.Data, &st) != nil {
		return ""
	}
	text := " " + st.Step
	if st.Alternate > 0 {
		text += fmt.Sprintf(" (alternative %d)", st.Alternate)
	}
	if st.Try > 1 {
		text += fmt.Sprintf(" (try %d)", st.Try)
	}
	if e.Kind == journal.StepEnded {
		text += fmt.Sprintf(" %s (%s)", st.Status, loop.Duration(st.Elapsed))
		if st.Summary != "" {
			text += ": " + report.Line(st.Summary, 200)
		}
	}
	return text
}
