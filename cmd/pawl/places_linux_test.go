package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/files"
)

// The story of testdata/places/story.sh is told in each place that this machine can make. It works
// there, or the first command says what is missing. The table of docs/install.md is made of it.

var (
	placesAll   = flag.Bool("places-all", false, "tell the story in every place, and print what it came to")
	placesTable = flag.Bool("places-table", false, "write the table of docs/install.md anew")
)

// workPlace is one that somebody works in.
type workPlace struct {
	name string
	make string // commands of the shell that make it, in the repository, before the story
	in   string // a command line, for the shell, that starts its last arguments in the place
	root bool   // it is root's; any other is that of a user without an entry in passwd
	says string // the story ends with this, as a regular expression; "" works
	// short: the place is tried by every run of the tests.
	short bool
}

// placeRow is a line of the table.
type placeRow struct {
	where, more string
	places      []workPlace
}

// verdict of a row: all of its places have the same.
func (r placeRow) verdict() string {
	verdict := "works"
	switch says := r.places[0].says; {
	case strings.HasPrefix(says, "refused"):
		verdict = "refused"
	case strings.HasPrefix(says, "runs"):
		verdict = "runs work, the board is refused"
	}
	return verdict + r.more
}

func TestPlaces(t *testing.T) {
	if testing.Short() {
		t.Skip("stories take seconds")
	}
	if !*placesAll {
		t.Parallel()
	}
	base := placesFolder(t)
	for _, row := range placeRows {
		for _, p := range row.places {
			if !p.short && !*placesAll {
				continue
			}
			t.Run(p.name, func(t *testing.T) {
				if !*placesAll {
					t.Parallel() // in the long form one alone shows what it says
				}
				verdict := p.tellStory(t, base)
				if want := "^" + orWorks(p.says); !regexp.MustCompile(want).MatchString(verdict) {
					t.Errorf("in the place %q the story ends with\n%s\nand not with %s", p.name, verdict, want)
				}
				if *placesAll {
					t.Logf("%s: %s", p.name, verdict)
				}
			})
		}
	}
}

func orWorks(says string) string {
	if says == "" {
		return "works$"
	}
	return says
}

// placesFolder has the program, and room for places, where any user may go and no box may write.
func placesFolder(t *testing.T) string {
	t.Helper()
	base, err := outsideFolder()
	if os.Getuid() == 0 { // and not in a home folder that is root's alone
		base, err = os.MkdirTemp("/var/cache", "pawl-places-") //nolint:usetesting // as above
	}
	if err == nil {
		err = os.Chmod(base, 0o755) //nolint:gosec // as above
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(base) // what root made in a place is root's
		}
	})
	exe, err := os.Executable()
	if err == nil && *placesAll { // the program itself starts four times as fast as the tests'
		exe = filepath.Join(base, "built")
		err = exec.CommandContext(t.Context(), "go", "build", "-o", exe, ".").Run()
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"pawl": exe, "story.sh": "../../testdata/places/story.sh"} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = files.Replace(filepath.Join(base, name), data, 0o755, false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return base
}

// tellStory makes the place and returns the verdict.
func (p workPlace) tellStory(t *testing.T, base string) string {
	t.Helper()
	isRoot := os.Getuid() == 0
	if !isRoot && (p.root || p.in != "") {
		t.Skip("root makes this place")
	}
	at := filepath.Join(base, strings.ReplaceAll(p.name, " ", "-"))
	err := os.Mkdir(at, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(at, "place.sh"), []byte(p.make), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	line := `exec sh "$STORY"`
	if isRoot && !p.root {
		const user = 54321
		if err := os.Chown(at, user, user); err != nil {
			t.Fatal(err)
		}
		line = fmt.Sprintf(`exec setpriv --reuid %d --regid %d --clear-groups sh "$STORY"`, user, user)
	}
	if p.in != "" {
		line = p.in + " sh -c '" + line + "'"
	}
	// A story that hangs is ended by its own limits; this one is for what makes its place.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-c", line)
	c.Dir = at
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TZ=UTC", "GIT_CONFIG_NOSYSTEM=1", "AT=" + at, "OUT=" + at + "/out",
		"PLACE=" + at + "/place.sh", "PAWL=" + base + "/pawl", "STORY=" + base + "/story.sh", "GOPROXY=off",
	}
	var out, messages bytes.Buffer
	c.Stdout, c.Stderr = &out, &messages
	if err := c.Run(); err != nil {
		t.Logf("%v: %s", err, messages.String())
	}
	told := strings.TrimSpace(out.String())
	lines := strings.Split(told, "\n")
	if verdict := lines[len(lines)-1]; verdict != "" {
		return verdict
	}
	return "no verdict: " + messages.String()
}

// The table of docs/install.md is that of the places.
func TestPlacesTable(t *testing.T) {
	const doc, head = "../../docs/install.md", "| where | what happens |\n|---|---|\n"
	data, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	before, after, ok := strings.Cut(string(data), head)
	if !ok {
		t.Fatal("docs/install.md has no table of places")
	}
	want := ""
	for _, r := range placeRows {
		for _, p := range r.places {
			if (placeRow{places: []workPlace{p}}).verdict() != (placeRow{places: r.places}).verdict() {
				t.Errorf("the places of %q end in different ways", r.where)
			}
		}
		want += "| " + r.where + " | " + r.verdict() + " |\n"
	}
	i := strings.Index(after, "\n\n") + 1
	if after[:i] == want {
		return
	}
	if !*placesTable {
		t.Fatal("the table of docs/install.md is another: go test ./cmd/pawl -run TestPlacesTable -places-table")
	}
	if err := os.WriteFile(doc, []byte(before+head+want+after[i:]), 0o644); err != nil {
		t.Fatal(err)
	}
}
