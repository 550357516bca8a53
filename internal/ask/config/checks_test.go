package config

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
)

func TestTheForgesChecksAreAGate(t *testing.T) {
	dir := write(t, tempDir(t), map[string]string{"pawl.yaml": `verification:
  commands:
    - go test ./...
    - {name: ci, forge: checks, required: [build, test]}
`})
	c, err := Load(testOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	if g := c.Verification.Gates(); len(g) != 1 || !g[0].Required || g[0].Command != "go test ./..." {
		t.Errorf("gates that run here: %+v", g)
	}
	want := Gate{Name: "ci", Forge: "checks", Checks: []string{"build", "test"}, Timeout: quantity.Duration(time.Hour),
		When: "iteration"}
	if got := c.Verification.Checks(); !reflect.DeepEqual(got, want) {
		t.Errorf("checks: %+v, want %+v", got, want)
	}
}

// A key that takes a number or a list has what the nearest layer says, in either form.
func TestANumberOrAList(t *testing.T) {
	for _, c := range []struct {
		wide, own string
		want      []string
	}{
		{"", "autopilot: {race: 2}", []string{"", ""}},
		{"autopilot: {race: 3}", "autopilot: {race: [claude, codex]}", []string{"claude", "codex"}},
		{"autopilot: {race: [claude, codex]}", "autopilot: {race: 0}", []string{}},
	} {
		dir := write(t, tempDir(t), map[string]string{"pawl.yaml": c.own, "nobody/.config/pawl/config.yaml": c.wide})
		loaded, err := Load(testOptions(dir))
		if err != nil {
			t.Fatal(err)
		}
		if got := loaded.Autopilot.RacingAgents(); !slices.Equal(got, c.want) {
			t.Errorf("%s over %s: %q", c.own, c.wide, got)
		}
	}
}
