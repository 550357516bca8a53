package attemptdir

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/signal"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// LayOutTools makes the folder from which pawl's tools tell an agent of its task. What an
// earlier attempt said is gone.
func (p Folder) LayOutTools(plan *runplan.Plan, iteration int) (string, error) {
	dir, task := p.ToolsFolder(), plan.Prompt.Case
	if err := files.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("cannot empty the folder of the agent's tools: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot create the folder of the agent's tools: %v", err)
	}
	b := agent.Brief{ID: task.ID, Title: task.Title, Description: task.Description, Acceptance: task.Acceptance,
		Iteration: iteration}
	b.ID = cmp.Or(b.ID, plan.Name)
	for _, g := range plan.Gates {
		if g.Origin != loop.Sealed {
			b.Gates = append(b.Gates, g.Name+": "+g.Command)
		}
	}
	path := filepath.Join(dir, agent.BriefFile)
	if err := files.ReplaceJSON(path, b, false); err != nil {
		return "", fmt.Errorf("cannot write %s: %w", path, err)
	}
	return dir, nil
}

// followUps is how many tasks an agent may propose in an iteration.
const followUps = 5

// ReadTools reads what the agent said by pawl's tools: that it is done or cannot go on, its
// progress in percent, and tasks that it proposes. Progress is -1 where it named none.
func (p Folder) ReadTools() (claim signal.Signal, progress int, proposed []agent.Said) {
	progress = -1
	text, err := files.ReadBelow(p.Dir, filepath.Join(filepath.Base(p.ToolsFolder()), agent.SaidFile), agent.SaidLimit)
	if err != nil { // it said nothing, or made of the file what it is not
		return claim, progress, nil
	}
	kinds := map[string]signal.Kind{
		agent.SaysAsk: signal.Pending, agent.SaysBlocked: signal.Blocked, agent.SaysComplete: signal.Complete,
	}
	for line := range strings.Lines(string(text)) {
		var s agent.Said
		if json.Unmarshal([]byte(line), &s) != nil {
			continue
		}
		switch kind := kinds[s.Kind]; {
		case kind != signal.None:
			claim = signal.Signal{Kind: kind, Text: strings.TrimSpace(board.Visible(s.Text))}
		case s.Kind == agent.SaysProgress && s.Percent >= 0 && s.Percent <= 100 && progress < 0:
			progress = s.Percent
		case s.Kind == agent.SaysFollowUp && strings.TrimSpace(s.Title) != "" && len(proposed) < followUps:
			proposed = append(proposed, s)
		}
	}
	return claim, progress, proposed
}
