package run

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

func TestTheFileOfOutputs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want map[string]string
		err  string
	}{
		{"", map[string]string{}, ""},
		{"a=1\nb=x=y\n", map[string]string{"a": "1", "b": "x=y"}, ""},
		{"a=1\r\n\r\na=2\r\n", map[string]string{"a": "2"}, ""},
		{"a<<END\none\ntwo=2\nEND\nb=\n", map[string]string{"a": "one\ntwo=2", "b": ""}, ""},
		{"a=b<<c\n", map[string]string{"a": "b<<c"}, ""},
		{"a<<END\none\n", nil, `there is no line "END"`},
		{"nonsense\n", nil, "line 1 of the outputs"},
		{"=1\n", nil, "line 1 of the outputs"},
	} {
		got, err := parseOutputs(c.text)
		if c.err == "" && (err != nil || !maps.Equal(got, c.want)) {
			t.Errorf("%q: %v, %v", c.text, got, err)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}

func FuzzOutputs(f *testing.F) {
	f.Add("a=1\nb<<X\ny\nX\n")
	f.Add("<<\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		out, err := parseOutputs(text)
		if (out == nil) != (err != nil) {
			t.Errorf("%q: %v, %v", text, out, err)
		}
		for name := range out {
			if strings.TrimSpace(name) == "" {
				t.Errorf("%q: an output without a name", text)
			}
		}
	})
}

// A file of outputs that is no file, or too long, is refused and not read.
func TestOutputsThatAreNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/dev/zero", link); err != nil {
		t.Fatal(err)
	}
	if _, err := readOutputs(link); err == nil {
		t.Error("a link to a device was read")
	}
	if out, err := readOutputs(filepath.Join(dir, "missing")); out != nil || err != nil {
		t.Errorf("no file: %v, %v", out, err)
	}
}

func TestOutputIsCutAndLosesItsLastLineEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("one\ntwo\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, cut := outputOf(path, supervisor.Stream{Bytes: 9}); text != "one\ntwo" || cut {
		t.Errorf("%q, %v", text, cut)
	}
	if text, cut := outputOf(path+"-gone", supervisor.Stream{Bytes: 100, Head: "head"}); text != "head" || !cut {
		t.Errorf("without its file: %q, %v", text, cut)
	}
	if err := os.WriteFile(path, make([]byte, maxOutput+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, cut := outputOf(path, supervisor.Stream{Bytes: maxOutput + 1}); len(text) != maxOutput || !cut {
		t.Errorf("%d bytes, %v", len(text), cut)
	}
}

// Lines are shown when they are whole, the last one at the end.
func TestOutputIsShownLineByLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var shown []string
	left := 100
	tl := &tail{path: path, left: &left, show: func(line string) { shown = append(shown, line) }}
	for _, step := range []struct {
		write string
		last  bool
		want  []string
	}{
		{"one\ntw", false, []string{"one"}},
		{"o\r\n", false, []string{"one", "two"}},
		{"three", true, []string{"one", "two", "three"}},
		{strings.Repeat("x", 200) + "\n", true, []string{"one", "two", "three"}},
	} {
		if _, err := f.WriteString(step.write); err != nil {
			t.Fatal(err)
		}
		if tl.showNewLines(step.last); !slices.Equal(shown, step.want) {
			t.Errorf("after %q: %q", step.write, shown)
		}
	}
	if left >= 0 {
		t.Error("nobody is told that there was more")
	}
}

func TestFoldersOfStepsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, id := range []string{"build", "a/b", "a_b", "a b", "test (linux, 1)", "../x", strings.Repeat("long", 30), strings.Repeat("long", 31)} {
		s := folderName(id)
		if other, taken := seen[s]; taken || strings.ContainsAny(s, "/. ") {
			t.Errorf("%q has the folder %q of %q", id, s, other)
		}
		seen[s] = id
	}
}

// Agents side by side share what is left, and end together at the limit.
func TestTheBudgetIsShared(t *testing.T) {
	t.Parallel()
	b := newBudget(loop.CommandLimits{Cost: 1_000_000, Calls: loop.NoLimit}, usage{Cost: 100_000})
	b.beginAgent("one", agent.NewCollector())
	b.beginAgent("two", agent.NewCollector())
	spend := func(step string, usd loop.MicroUSD) loop.Ended {
		return b.countEvent(step, agent.Event{Kind: agent.CostSeen, Cost: usd})
	}
	if e := spend("one", 500_000); e != loop.NotEnded {
		t.Errorf("under the limit: %s", e)
	}
	if l, ended := b.limitsLeft(); l.Cost != 400_000 || l.Calls != loop.NoLimit || l.Tokens != nil || ended != loop.NotEnded {
		t.Errorf("left %+v, %q", l, ended)
	}
	if e := spend("two", 500_000); e != loop.EndedCost {
		t.Errorf("over the limit: %q", e)
	}
	b.endAgent("one", usage{Cost: 500_000})
	if e := b.endAgent("two", usage{Cost: 500_000}); e != loop.EndedCost {
		t.Errorf("one that ended by itself over the limit: %q", e)
	}
	if l, ended := b.limitsLeft(); l.Cost != 0 || ended != loop.EndedCost {
		t.Errorf("left %+v, %q", l, ended)
	}
}

// Tokens are shared as money is.
func TestTokensAreShared(t *testing.T) {
	t.Parallel()
	most := int64(1000)
	b := newBudget(loop.CommandLimits{Cost: loop.NoLimit, Calls: loop.NoLimit, Tokens: &most}, usage{TokensIn: 100, TokensOut: 50})
	for _, step := range []string{"one", "two"} {
		b.beginAgent(step, agent.NewCollector())
	}
	use := func(step string) loop.Ended {
		return b.countEvent(step, agent.Event{Kind: agent.UsageSeen, Usage: agent.Usage{Input: 400, CacheRead: 20, Output: 30}})
	}
	if e := use("one"); e != loop.NotEnded {
		t.Errorf("under the limit: %s", e)
	}
	if l, ended := b.limitsLeft(); *l.Tokens != 400 || ended != loop.NotEnded {
		t.Errorf("left %d, %q", *l.Tokens, ended)
	}
	if e := use("two"); e != loop.EndedTokens {
		t.Errorf("over the limit: %q", e)
	}
	if l, ended := b.limitsLeft(); *l.Tokens != 0 || ended != loop.EndedTokens {
		t.Errorf("left %d, %q", *l.Tokens, ended)
	}
}
