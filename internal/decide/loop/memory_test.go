package loop

import (
	"fmt"
	"strings"
	"testing"
)

// The newest of what people said is kept as it was said, older ones as a line each,
// and all of it is bounded.
func TestMemoryIsBounded(t *testing.T) {
	var s State
	long := strings.Repeat("a word\n", 2000)
	for i := range 100 {
		s.addMemory(Said{Iteration: i, Question: "which?\n" + long, Text: fmt.Sprintf("answer %d\n%s", i, long)})
	}
	if len(s.Memory) != maxSaid || s.Memory[maxSaid-1].Iteration != 99 {
		t.Fatalf("%d are kept, the last of iteration %d", len(s.Memory), s.Memory[len(s.Memory)-1].Iteration)
	}
	for i, one := range s.Memory {
		whole := i >= maxSaid-maxWhole
		if lines := strings.Contains(one.Text, "\n"); lines != whole || len(one.Text) > maxSaidText || len(one.Question) > maxSaidAsked {
			t.Errorf("%d of %d: whole: %v, %d and %d bytes", i, maxSaid, lines, len(one.Text), len(one.Question))
		}
		if !strings.HasPrefix(one.Text, fmt.Sprintf("answer %d", one.Iteration)) {
			t.Errorf("the answer of iteration %d begins %.20q", one.Iteration, one.Text)
		}
	}
}

// States share what they hold: a later one must not change an earlier one's memory.
func TestMemoryIsNotShared(t *testing.T) {
	var s State
	for i := range maxWhole {
		s.addMemory(Said{Text: fmt.Sprintf("one\n%d", i)})
	}
	before := s
	s.addMemory(Said{Text: "more"})
	if before.Memory[0].Text != "one\n0" || s.Memory[0].Text != "one 0" {
		t.Errorf("before %q, after %q", before.Memory[0].Text, s.Memory[0].Text)
	}
}

// A new run of a task knows what was said in the runs before.
func TestMemoryIsInherited(t *testing.T) {
	p := &Policy{Kind: Task, MaxIterations: 3, Costs: Costs{MaxCost: NoLimit, MaxIterationCost: NoLimit, MaxIterationCalls: NoLimit}}
	s, _ := Step(State{}, Event{Kind: Started, Policy: p, Memory: []Said{{Iteration: 7, Question: "which?", Text: "this"}}})
	if len(s.Memory) != 1 || s.Memory[0] != (Said{Question: "which?", Text: "this"}) {
		t.Errorf("memory %+v", s.Memory)
	}
}
