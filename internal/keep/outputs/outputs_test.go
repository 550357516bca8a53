package outputs_test

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/outputs"
	"github.com/pawl-dev/pawl/internal/keep/spool"
)

// desk is a machine that drives a run, and one that looks on.
type desk struct {
	*testing.T
	runs, given string
	shared      *outputs.Folder
	copier      *outputs.Copier
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{T: t, runs: t.TempDir(), given: t.TempDir()}
	d.shared = &outputs.Folder{Path: d.given, Board: "board"}
	d.copier = outputs.NewCopier(filepath.Join(d.runs, "run1"), d.shared, "run1")
	return d
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) write(name, text string) {
	d.Helper()
	path := filepath.Join(d.runs, "run1", name)
	d.must(os.MkdirAll(filepath.Dir(path), 0o700))
	d.must(os.WriteFile(path, []byte(text), 0o600))
}

func (d *desk) copy() {
	d.Helper()
	d.must(d.copier.Copy(false))
}

// read is what the other machine reads of a stream.
func (d *desk) read(dir, name string) (string, error) {
	dir, below, _ := strings.Cut(dir, "/")
	root, err := outputs.Open(filepath.Join(d.given, "nothing here"), d.shared, "run1", dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	folder, err := root.OpenRoot(filepath.Join(".", below))
	if err != nil {
		return "", err
	}
	defer func() { _ = folder.Close() }()
	f, err := spool.Open(folder, name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(f)
	return string(text), err
}

func (d *desk) sees(dir, name, want string) {
	d.Helper()
	if got, err := d.read(dir, name); err != nil || got != want {
		d.Errorf("%s of %s is %.80q (%v), not %.80q", name, dir, got, err, want)
	}
}

func (d *desk) misses(dir, name string) {
	d.Helper()
	if got, err := d.read(dir, name); err == nil {
		d.Errorf("%s of %s is there: %.80q", name, dir, got)
	}
}

// What a run prints is seen elsewhere as it grows, also where the middle of it is left
// out, where an attempt is kept aside, and where another process goes on with the run.
func TestOutputTravels(t *testing.T) {
	d := newDesk(t)
	d.write("1/begun.json", `{"attempt": 1, "at": "2026-01-02T03:04:05Z", "job": {"env": ["KEY=secret"]}}`)
	d.write("1/agent.out", "one ")
	d.copy()
	d.sees("1", "agent.out", "one ")
	d.sees("1", "begun.json", `{"attempt":1,"at":"2026-01-02T03:04:05Z"}`)
	d.write("1/agent.out", "one two")
	d.write("1/steps/build.1/step.out", "built")
	d.write("1/agent.result.json", `{"elapsed": 5, "exit": {"code": 0}, "stdout": {"head": "one two"}}`)
	d.copy()
	d.sees("1", "agent.out", "one two")
	d.sees("1/steps/build.1", "step.out", "built")
	d.sees("1", "agent.result.json", `{"elapsed":5,"exit":{"code":0}}`)

	d.must(os.Mkdir(d.runs+"/run1/1/1", 0o700))
	for _, name := range []string{"agent.out", "begun.json", "agent.result.json"} {
		d.must(os.Rename(d.runs+"/run1/1/"+name, d.runs+"/run1/1/1/"+name))
	}
	d.write("1/begun.json", `{"attempt": 2}`)
	d.write("1/agent.out", "again, and longer than before")
	d.copier = outputs.NewCopier(filepath.Join(d.runs, "run1"), d.shared, "run1")
	d.copy()
	d.sees("1/1", "agent.out", "one two")
	d.sees("1", "agent.out", "again, and longer than before")
	d.misses("1", "agent.result.json")

	long := spool.NewWriter(d.runs+"/run1/2/agent.out", 1000)
	for i := range 300 {
		_, _ = fmt.Fprintf(long, "line %d\n", i)
		if i%20 == 0 {
			d.copy()
		}
	}
	d.must(long.Close())
	d.copy()
	f, err := spool.OpenFile(d.runs + "/run1/2/agent.out")
	d.must(err)
	defer func() { _ = f.Close() }()
	want, err := io.ReadAll(f)
	d.must(err)
	d.sees("2", "agent.out", string(want))
}

// Evidence is seen elsewhere as it is, also a report in JSON; what is none stays. A step of its name is a step.
func TestEvidenceTravels(t *testing.T) {
	d := newDesk(t)
	d.write("1/evidence/gate-1.report.json", `{"at": "home", "cases": 3}`)
	d.write("1/evidence/agent.page.sh", "rm -rf /")
	d.write("1/steps/evidence/step.out", "built")
	d.write("1/steps/evidence/notes.txt", "for the step")
	d.copy()
	d.sees("1/evidence", "gate-1.report.json", `{"at": "home", "cases": 3}`)
	d.sees("1/steps/evidence", "step.out", "built")
	d.misses("1/evidence", "agent.page.sh")
	d.misses("1/steps/evidence", "notes.txt")
}

// What pawl keeps for itself does not leave the machine.
func TestOwnFilesStay(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"1/caches/agent.out", "1/tools/agent.out", "1/key.pem", "1/.agent.out", "pinned", "1/settings.json"} {
		d.write(name, "secret")
	}
	d.must(os.Symlink("/etc/hostname", d.runs+"/run1/1/agent.out"))
	d.copy()
	d.must(filepath.WalkDir(d.given, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			t.Errorf("%s was copied", path)
		}
		return err
	}))
}

// The folder that is given away for a while is not made here, and what is missing is
// copied when it is back.
func TestCatchesUp(t *testing.T) {
	d := newDesk(t)
	away := d.given + ".away"
	for n := range 5 {
		d.write(fmt.Sprintf("%d/agent.out", n+1), "one")
	}
	d.must(os.Rename(d.given, away))
	if err := d.copier.Copy(true); err == nil {
		t.Error("it was copied to a folder that does not exist")
	}
	if _, err := os.Stat(d.given); err == nil {
		t.Error("the folder was made")
	}
	d.must(os.Rename(away, d.given))
	d.must(d.copier.Copy(true))
	for n := range 5 {
		d.sees(fmt.Sprint(n+1), "agent.out", "one")
	}
	d.must(os.RemoveAll(filepath.Join(d.given, "board")))
	d.write("5/agent.out", "one two")
	if err := d.copier.Copy(true); err == nil {
		t.Error("the end of a file was copied into an empty folder")
	}
	d.must(d.copier.Copy(true))
	d.sees("5", "agent.out", "one two")
}

// Folders are for whom the given folder is for.
func TestModes(t *testing.T) {
	d := newDesk(t)
	d.must(os.Chmod(d.given, 0o770|os.ModeSetgid))
	d.write("1/agent.out", "one")
	d.write("1/begun.json", "{}")
	d.copy()
	for name, want := range map[string]fs.FileMode{
		"": 0o770, "run1": 0o770, "run1/1": 0o770, "run1/1/agent.out": 0o660, "run1/1/begun.json": 0o660,
	} {
		info, err := os.Stat(filepath.Join(d.given, "board", name))
		d.must(err)
		if info.Mode().Perm() != want {
			t.Errorf("%q has the mode %v, not %v", name, info.Mode(), want)
		}
	}
}

// Whoever reaches the shared folder cannot have another machine read or write elsewhere,
// nor hold it up.
func TestHostileFolder(t *testing.T) {
	d := newDesk(t)
	outside := t.TempDir()
	d.must(os.MkdirAll(filepath.Join(outside, "1"), 0o700))
	d.must(os.WriteFile(outside+"/1/agent.out", []byte("secret"), 0o600))
	d.must(os.WriteFile(filepath.Join(outside, "agent.out"), []byte("secret"), 0o600))
	d.write("1/agent.out", "mine")
	link := func(to, name string) {
		t.Helper()
		d.must(os.RemoveAll(filepath.Join(d.given, name)))
		d.must(os.Symlink(to, filepath.Join(d.given, name)))
	}
	refused := func(what string) {
		t.Helper()
		d.misses("1", "agent.out")
		if err := d.copier.Copy(true); err == nil {
			t.Errorf("%s: it was copied", what)
		}
		_ = outputs.Remove(d.shared, "run1")
		if data, err := os.ReadFile(outside + "/1/agent.out"); err != nil || string(data) != "secret" {
			t.Fatalf("%s: the file outside is %q now (%v)", what, data, err)
		}
	}
	link(outside, "board")
	refused("a link for a board")
	d.must(os.MkdirAll(filepath.Join(d.given, "other", "run1", "1"), 0o700))
	d.must(os.WriteFile(d.given+"/other/run1/1/agent.out", []byte("of another board"), 0o600))
	link("other", "board")
	d.misses("1", "agent.out")
	d.must(os.Remove(filepath.Join(d.given, "board")))
	d.must(os.Mkdir(filepath.Join(d.given, "board"), 0o700))
	link(outside, "board/run1")
	refused("a link for a run")
	link("../other/run1", "board/run1")
	refused("a link to another board's run")
	d.must(os.RemoveAll(d.given + "/board/run1"))
	d.must(os.Mkdir(d.given+"/board/run1", 0o700))
	link(filepath.Join(outside, "1"), "board/run1/1")
	d.misses("1", "agent.out")
	d.copy()
	d.sees("1", "agent.out", "mine")
	if data, err := os.ReadFile(outside + "/1/agent.out"); err != nil || string(data) != "secret" {
		t.Fatalf("a link for an iteration: the file outside is %q now (%v)", data, err)
	}
	d.must(os.Remove(d.given + "/board/run1/1/agent.out"))
	link(outside+"/1/agent.out", "board/run1/1/agent.out")
	d.misses("1", "agent.out")
	d.must(os.Remove(d.given + "/board/run1/1/agent.out"))
	d.must(syscall.Mkfifo(d.given+"/board/run1/1/agent.out", 0o600))
	d.misses("1", "agent.out")
	d.must(outputs.NewCopier(filepath.Join(d.runs, "run1"), d.shared, "run1").Copy(true))
	d.sees("1", "agent.out", "mine")
	for _, run := range []string{"..", "../other/run1", strings.Repeat("../", 10) + outside} {
		if root, err := outputs.Open(d.runs, d.shared, run, "1"); err == nil {
			_ = root.Close()
			t.Errorf("run %q was opened", run)
		}
	}
}

// What an iteration left is made smaller in its place, and the other machine reads it as
// before, also one that goes on to look at it meanwhile.
func TestSettledOutput(t *testing.T) {
	d := newDesk(t)
	text := strings.Repeat("many words ", 1000)
	d.write("1/agent.out", text)
	d.write("1/steps/build.1/step.out", text)
	d.write("1/begun.json", `{"attempt": 1, "at": "2026-01-02T03:04:05Z", "job": {"env": ["`+text+`"]}}`)
	d.write("1/agent.result.json", `{"elapsed": 5, "exit": {"code": 0}, "stdout": {"head": "`+text+`"}}`)
	d.write("1/key.pem", text)
	d.copy()
	for range 2 {
		d.must(outputs.Compact(d.runs + "/run1/1"))
		d.copy()
		d.sees("1", "agent.out", text)
		d.sees("1/steps/build.1", "step.out", text)
		d.sees("1", "begun.json", `{"attempt":1,"at":"2026-01-02T03:04:05Z"}`)
	}
	for name, most := range map[string]int64{"agent.out.gz": 1000, "steps/build.1/step.out.gz": 1000, "begun.json": 100,
		"agent.result.json": 100, "key.pem": int64(len(text))} {
		if info, err := os.Stat(d.runs + "/run1/1/" + name); err != nil || info.Size() > most {
			d.Errorf("%s: %v, %v", name, info, err)
		}
	}
	d.write("1/begun.json", `{"attempt": 2}`)
	d.write("1/agent.out", "again")
	d.must(os.Remove(d.runs + "/run1/1/agent.out.gz"))
	d.copy()
	d.sees("1", "agent.out", "again")
}

// What an agent printed on another machine is not said to be gone.
func TestWhereAnOutputIs(t *testing.T) {
	t.Parallel()
	if got := outputs.ReasonGone(nil, nil); got != "no longer kept" {
		t.Errorf("here: %s", got)
	}
	if got := outputs.ReasonGone(nil, &loop.Pushed{Worker: "one-1234"}); !strings.Contains(got, "on the machine of worker one-1234") {
		t.Errorf("elsewhere: %s", got)
	}
}
