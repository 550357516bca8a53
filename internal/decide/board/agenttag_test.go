package board

import (
	"slices"
	"testing"
)

// A person's tag names the agent of a task; a label of an issue does not.
func TestTheAgentOfATaskIsAPersonsChoice(t *testing.T) {
	c := Case{Tags: []string{"ui", "agent:codex"}}
	if got := c.Agent(); got != "codex" {
		t.Errorf("agent %q", got)
	}
	i := Issue{Number: 7, Title: "Slow", Labels: []string{"bug", "agent:dear", "agent: dear"}}
	c = i.Case()
	if c.Agent() != "" || !c.HasTag("bug") {
		t.Errorf("of an issue %v", c.Tags)
	}
}

// No label of an issue becomes a tag that pawl acts on; one without a meaning is a tag.
func TestLabelsOfAnIssueDoNothing(t *testing.T) {
	i := Issue{Number: 7, Title: "Slow", Labels: []string{"race:other+mine", "RACE: 5", "pick:best", "Policy:controlled",
		"race:5", "repairs_target", "Repairs_Target", "repair\u017f_target", "critical", "Quick-Win", "bug", "critical-path", "area:race:3"}}
	c := i.Case()
	if want := []string{"area:race:3", "bug", "critical-path"}; !slices.Equal(c.Tags, want) {
		t.Errorf("the tags are %q, want %q", c.Tags, want)
	}
}

// The same holds for the labels of the machines that may work on it.
func TestTheMachinesOfATaskAreAPersonsChoice(t *testing.T) {
	c := Case{Tags: []string{"needs:GPU", "needs:", "ui", "needs:arm", "needs:gpu"}}
	if got := c.Labels(); !slices.Equal(got, []string{"arm", "gpu"}) {
		t.Errorf("it needs %q", got)
	}
	if c.Fits([]string{"gpu"}) || !c.Fits([]string{"arm", "big", "gpu"}) {
		t.Error("it fits other machines")
	}
	i := Issue{Number: 7, Title: "Slow", Labels: []string{"bug", "needs:gpu", "Needs: gpu"}}
	if c = i.Case(); len(c.Labels()) != 0 || !c.HasTag("bug") {
		t.Errorf("of an issue %v", c.Tags)
	}
}
