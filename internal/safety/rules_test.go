package safety

import (
	"os"
	"strings"
	"testing"
)

var home = Rules{Level: Normal, Root: "/home/ann/work/app", Home: "/home/ann"}

// lines reads a data file: a command a line, ↵ for a newline.
func lines(t testing.TB, name string) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "# ") && !strings.Contains(line, "only a comment") {
			continue
		}
		out = append(out, strings.ReplaceAll(line, "↵", "\n"))
	}
	return out
}

// Of what agents do all day at most two commands may be stopped.
func TestOrdinaryCommands(t *testing.T) {
	t.Parallel()
	stopped, all := 0, lines(t, "ordinary.txt")
	for _, c := range all {
		if f, ok := home.Command(c); ok {
			stopped++
			t.Logf("stopped: %s: %s", strings.ReplaceAll(c, "\n", "↵"), f.Reason())
		}
	}
	t.Logf("%d of %d ordinary commands stopped", stopped, len(all))
	if len(all) < 200 || stopped > 2 {
		t.Errorf("%d of %d ordinary commands are stopped", stopped, len(all))
	}
}

func TestDestructiveCommands(t *testing.T) {
	t.Parallel()
	all := lines(t, "destructive.txt")
	for _, c := range all {
		f, ok := home.Command(c)
		if !ok {
			t.Errorf("not found: %s", strings.ReplaceAll(c, "\n", "↵"))
			continue
		}
		if f.Pattern == "" || f.Pattern == "tangled" || f.Why == "" || f.Command == "" || f.Level != Normal {
			t.Errorf("%s: %+v", c, f)
		}
		if _, ok := (Rules{Level: Permissive, Root: home.Root}).Command(c); ok {
			t.Errorf("permissive stops %s", c)
		}
		strict := home
		strict.Level = Paranoid
		if _, ok := strict.Command(c); !ok {
			t.Errorf("paranoid allows %s", c)
		}
	}
	t.Logf("%d destructive commands", len(all))
	if len(all) < 120 {
		t.Errorf("only %d commands", len(all))
	}
}
