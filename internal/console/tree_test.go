package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/failure"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// treeOf is a tree of the named steps, in which what is written happens: start,
// say, wait, and how it ends. Each takes a second.
func treeOf(t *testing.T, steps string, story ...string) (*stepTree, time.Time) {
	t.Helper()
	tree, now := &stepTree{}, noon
	for _, id := range strings.Fields(steps) {
		tree.row(id)
	}
	for _, line := range story {
		now = now.Add(time.Second)
		word := strings.SplitN(line, " ", 3)
		n := engine.Notice{At: now, Step: &engine.StepNotice{Step: word[0], Try: 1, Elapsed: time.Second}}
		switch word[1] {
		case "start":
			n.Kind = engine.StepStarted
		case "try":
			n.Kind, n.Step.Try = engine.StepStarted, 2
		case "says":
			n.Kind, n.Step.Line = engine.StepOutput, word[2]
		case "waits":
			n.Kind, n.Step.Try = engine.StepWaits, 2
		case "again":
			tree.again()
			continue
		default:
			n.Kind, n.Step.Status = engine.StepEnded, word[1]
			if word[1] == "failure" {
				n.Step.Failure = &failure.Analysis{Summary: word[2]}
			} else if len(word) > 2 {
				n.Step.Why = word[2]
			}
		}
		tree.notice(n)
	}
	return tree, now
}

func TestStepTree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		steps  string
		story  []string
		width  int
		height int
		want   string
	}{
		{"fetch build test", []string{"fetch start", "fetch says 12 files", "fetch success", "build start", "build says cc\tmain.c \x1b[31mred\x1b[0m"}, 60, 20, `
  ✓ fetch      1.0s  12 files
  ● build        1s  cc main.c [31mred[0m
  ○ test`},
		{"fetch build", []string{"fetch start", "fetch failure no route to host", "fetch waits", "fetch try", "build skipped a step that it needs failed"}, 60, 20, `
  ● fetch        1s  try 2
  – build            skipped: a step that it needs failed`},
		{"fetch build", []string{"fetch start", "fetch success", "build start", "build failure broken", "- again", "build start", "fetch kept"}, 60, 20, `
  ✓ fetch      1.0s
  ● build        1s`},
		{"fetch", []string{"fetch kept", "lint kept optional, and failed before"}, 60, 20, `
  ✓ fetch            done before
  ✗ lint             optional, and failed before`},
		{"all next", []string{"all/one start", "all/one/deep start", "all/two start", "next start"}, 60, 20, `
  ● all          3s
  ●   one        3s
  ●     deep     2s
  ●   two        1s
  ● next         0s`},
		{"abcdefghijklmnopqrstuvwxyz 中文系統中文系統", []string{"中文系統中文系統 start", "中文系統中文系統 says 系統系統系統系統系統系統系統"}, 30, 20, `
  ○ abcdefghijk…
  ● 中文系統中…      1s  系統…`},
		{"a b c d e f g h", []string{"a start", "a success", "b start", "b success", "c start", "c failure no", "d start"}, 40, 5, `
  ✓ b          1.0s
  ✗ c          1.0s  no
  ● d            0s
  ○ e
    and ✓ 1  ○ 3`},
	} {
		tree, now := treeOf(t, c.steps, c.story...)
		lines := tree.lines(now, c.width, c.height)
		if got := "\n" + strings.Join(lines, "\n"); got != c.want {
			t.Errorf("%s: got%s\nwant%s", c.story, got, c.want)
		}
		for _, l := range lines {
			if ansi.StringWidth(l) > c.width {
				t.Errorf("%q is wider than %d", l, c.width)
			}
		}
	}
}

// Whatever the size of the terminal, the block fits into it.
func TestStepTreeFits(t *testing.T) {
	t.Parallel()
	var story []string
	steps := ""
	for i := range 300 {
		steps += fmt.Sprintf("step-with-a-name-%d ", i)
		if i < 100 {
			story = append(story, fmt.Sprintf("step-with-a-name-%d start", i))
		}
		if i < 90 {
			story = append(story, fmt.Sprintf("step-with-a-name-%d success", i))
		}
	}
	tree, now := treeOf(t, steps, story...)
	for height := 1; height < 40; height++ {
		for _, width := range []int{1, 2, 5, 20, 80, 300} {
			lines := tree.lines(now, width, height)
			if len(lines) > max(height, 2) {
				t.Errorf("%d lines in %d", len(lines), height)
			}
			for _, l := range lines {
				if ansi.StringWidth(l) > width {
					t.Errorf("%q is wider than %d", l, width)
				}
			}
		}
	}
	shown := strings.Join(tree.lines(now, 80, 20), "\n")
	for _, want := range []string{"● step-with-a-name-90 ", "● step-with-a-name-99 ", "✓ step-with-a-name-89 ", "○ step-with-a-name-100", "and ✓ "} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is not among\n%s", want, shown)
		}
	}
}

// Tokens of agents that work side by side add up.
func TestStepTreeTokens(t *testing.T) {
	t.Parallel()
	tree, _ := treeOf(t, "a b", "a start", "b start")
	tree.row("a").take(agent.Event{Kind: agent.UsageSeen, Usage: agent.Usage{Input: 1000}, Cumulative: true})
	tree.row("b").take(agent.Event{Kind: agent.UsageSeen, Usage: agent.Usage{Output: 500}})
	tree.row("b").take(agent.Event{Kind: agent.UsageSeen, Usage: agent.Usage{Output: 500}})
	tree.row("b").take(agent.Event{Kind: agent.CostSeen, Cost: 20_000})
	tree.row("b").take(agent.Event{Kind: agent.ToolStart, Tool: "edit", Files: []string{"a.go"}})
	s := &Screen{tree: tree, title: "iteration 1/3", began: noon}
	if got, want := s.liveTitle(noon.Add(5*time.Second)), "  iteration 1/3 · 5s · 0/2 steps · 2.0k tokens · $0.02"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := tree.row("b").said; got != "edit a.go" {
		t.Errorf("%q", got)
	}
}

// A block that was drawn is found again, also when the terminal became narrower.
func TestStepTreeOver(t *testing.T) {
	t.Parallel()
	tree := &block{widths: []int{40, 80, 10}}
	for width, want := range map[int]string{80: "\r\x1b[2A", 79: "\r\x1b[3A", 40: "\r\x1b[3A", 10: "\r\x1b[12A"} {
		if got := tree.over(width); got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
	if got := (&block{}).over(80); got != "\r" {
		t.Errorf("nothing drawn: %q", got)
	}
}
