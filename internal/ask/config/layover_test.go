package config

import (
	"strings"
	"testing"
)

// The keys of one file take the place of those of another; order, comments and empty lines stay.
func TestLayOver(t *testing.T) {
	t.Parallel()
	const base = `# The project.
agent: claude # the usual one

# How it is checked.
verification:
  # Fast ones first.
  commands:
    - {name: unit, command: "go test ./..."}
    - make lint

loop:
  max_iterations: 5 # enough

agents: {mine: {command: [sh, agent.sh]}}
`
	got, err := LayOver([]byte(base), []byte(`agent: codex
loop: {max_iterations: 8, max_cost: 2}
agents:
  other: {command: [sh, other.sh]}
red_first: require
`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `# The project.
agent: codex # the usual one

# How it is checked.
verification:
  # Fast ones first.
  commands:
    - {name: unit, command: "go test ./..."}
    - make lint

loop:
  max_iterations: 8 # enough
  max_cost: 2

agents: {mine: {command: [sh, agent.sh]}, other: {command: [sh, other.sh]}}
red_first: require
`
	if string(got) != want {
		t.Errorf("got:\n%s", got)
	}
	const loose = `# pawl, for us


agent:   claude      # the usual one


#   Gates.
verification:
    commands:
      -   go test ./...      # all of them

      -  make lint   # and this

loop:
    max_iterations:   5    # enough
    timeout:  1h     # at most



agents: {mine:   {command: [sh,   agent.sh]}}   # ours
#  the end`
	got, err = LayOver([]byte(loose), []byte("loop: {max_iterations: 8, max_cost: 2}\nred_first: require\n"))
	wantLoose := strings.Replace(loose, "    max_iterations:   5    # enough", "    max_iterations: 8 # enough", 1)
	wantLoose = strings.Replace(wantLoose, "# at most\n", "# at most\n    max_cost: 2\n", 1)
	wantLoose += "\nred_first: require\n"
	if err != nil || string(got) != wantLoose {
		t.Errorf("%v, got:\n%s", err, got)
	}
	got, err = LayOver([]byte("a: 1\n\n\n\nloop:\n\n\n  timeout: 1h\n\n\n# one\n\nb: x  y\n"), []byte("loop: {timeout: 2h}\nb: x y\n"))
	if want := "a: 1\n\n\n\nloop:\n\n\n  timeout: 2h\n\n\n# one\n\nb: x y\n"; err != nil || string(got) != want {
		t.Errorf("%v, %q", err, got)
	}
	for _, c := range [][2]string{{"", "agent: codex\n"}, {"# nothing yet\n", "agent: codex\n"}} {
		got, err := LayOver([]byte(c[0]), []byte(c[1]))
		if err != nil || string(got) != c[0]+c[1] {
			t.Errorf("%q: %q, %v", c, got, err)
		}
	}
	if _, err := LayOver([]byte("agent: ["), []byte("agent: x\n")); err == nil {
		t.Error("a broken file was taken")
	}
}
