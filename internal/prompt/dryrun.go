package prompt

import "fmt"

// DryRun is what --dry-run prints: three lines about the prompt, a blank
// line, and the prompt as the agent would get it. A budget of 0 is none.
func DryRun(p Prompt, procedure, command string, budget int) string {
	limit := "no"
	if budget > 0 {
		limit = Thousands(budget)
	}
	return fmt.Sprintf("[DRY RUN] Procedure: %s\n[DRY RUN] Would execute with: %s\n[DRY RUN] Token count: %s / %s "+
		"budget\n\n%s",
		procedure, command, Thousands(p.Tokens), limit, p.Text)
}
