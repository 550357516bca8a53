package merge

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
)

// deadly stands in for git and is killed once, at its nth command: before it,
// after it, or while it moves a ref and has the locks; with pawl, if asked. It
// waits less than pawl asks for locks, so that the test is over soon.
const deadly = `#!/bin/sh
kill=false
case "$DEADLY_HOW $*" in
before*|after*|locked*update-ref*)
	echo >> "$DEADLY/count"
	[ "$(wc -l < "$DEADLY/count")" -ge "$DEADLY_AT" ] && mkdir "$DEADLY/done" 2>/dev/null && kill=true ;;
esac
n=$#
while [ $n -gt 0 ]; do
	a=$1; shift; n=$((n - 1))
	case $a in
	core.*Timeout=10000) a=${a%10000}300 ;;
	core.hooksPath=/dev/null) $kill && [ "$DEADLY_HOW" = locked ] && a=core.hooksPath=$DEADLY ;;
	esac
	set -- "$@" "$a"
done
export PATH="$DEADLY_PATH"
if ! $kill; then exec git "$@"; fi
[ "$DEADLY_HOW" = before ] || git "$@"
[ "$DEADLY_PAWL" = no ] || kill -9 $PPID
kill -9 $$
`

// hook is run by git when it has the locks of the refs that it is to move.
const hook = "#!/bin/sh\n[ \"$1\" = prepared ] && kill -9 $PPID\nexit 0\n"

// killStep is how many commands of git lie between two kills: each landing with
// one takes a second.
var killStep = flag.Int("kill-step", 5, "kill git at every `N`th command of a landing")

// TestGitIsKilled kills git at the commands of a landing, and whenever it has
// locked refs.
func TestGitIsKilled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ how, pawl string }{{"before", "no"}, {"after", "yes"}, {"locked", "no"}, {"locked", "yes"}} {
		t.Run(tt.how+", pawl too: "+tt.pawl, func(t *testing.T) {
			t.Parallel()
			step, kills, least := *killStep, 0, 2
			if tt.how == "locked" {
				step, least = 1, 1 // refs of pawl's own are moved without git
			}
			for gitIsKilled(t, 1+kills*step, tt.how, tt.pawl) {
				kills++
			}
			if kills < least && !t.Failed() {
				t.Errorf("git was killed %d times: the test tests nothing", kills)
			}
		})
	}
}

// gitIsKilled lands two tasks, and reports whether git was killed meanwhile.
func gitIsKilled(t *testing.T, n int, how, pawl string) bool {
	r := newRig(t)
	base := r.git("rev-parse", "main")
	q := r.queue()
	cases, err := r.store.AddCases(t.Context(), []board.Draft{{Case: board.Case{Type: board.Task, Title: "X"}}, {Case: board.Case{Type: board.Task, Title: "Y"}}}, board.Person, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for i, commit := range r.many(len(cases)) {
		r.add(q, cases[i].ID, commit, cases[i].Title)
	}
	r.write("b.txt", "edited\n")
	dir := folder(t)
	for name, text := range map[string]string{"git": deadly, "reference-transaction": hook} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("killed %s command %d", how, n)
	path := os.Getenv("PATH")
	run := func() bool {
		cmd := exec.Command(exe, landCommand, r.dir, r.state, "", "never", "")
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+path, "DEADLY="+dir, "DEADLY_PATH="+path, "DEADLY_HOW="+how, "DEADLY_PAWL="+pawl, fmt.Sprint("DEADLY_AT=", n))
		out, err := cmd.CombinedOutput()
		if err != nil && pawl == "no" && !strings.Contains(string(out), "git") {
			t.Errorf("%s: %v\n%s", at, err, out)
		}
		return err == nil
	}
	for tries := 0; tries < 3 && !run(); tries++ {
		continue
	}
	run() // the next pawl has nothing to land, and leaves nothing behind
	for _, c := range cases {
		if s := r.status(c.ID); s != board.Done {
			t.Errorf("%s: %s is %s: %v", at, c.ID, s, r.left())
		}
	}
	if got := r.git("status", "--porcelain"); got != " M b.txt" {
		t.Errorf("%s: the checkout: %q", at, got)
	}
	_ = filepath.WalkDir(filepath.Join(r.dir, ".git"), func(path string, _ os.DirEntry, _ error) error {
		if strings.HasSuffix(path, ".lock") {
			t.Errorf("%s: %s is left", at, path)
		}
		return nil
	})
	r.git("fsck", "--strict")
	r.audit(base)
	_, err = os.Stat(filepath.Join(dir, "done"))
	return err == nil && !t.Failed()
}
