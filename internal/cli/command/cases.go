package command

import (
	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/board"
)

// Done prints a task that an action changed: its document with --json, else a line.
func (a *App) Done(d action.Done, err error) error {
	if err != nil {
		return err
	}
	if a.JSON {
		return a.JSONLine(CaseJSON(&d.Case))
	}
	a.Say("%s", d.Text)
	return nil
}

// CaseDocument is a case as `--json` shows it.
type CaseDocument struct {
	board.Case
	Ready bool         `json:"ready"`
	Score int          `json:"score"`
	Parts []board.Part `json:"score_parts,omitempty"`
}

// CaseJSON is a case as --json shows it.
func CaseJSON(c *board.Case) CaseDocument {
	d := CaseDocument{Case: *c, Ready: c.IsReady()}
	d.Score, d.Parts = board.Score(c)
	return d
}
