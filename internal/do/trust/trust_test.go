package trust

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

type stage struct {
	*testing.T
	state, root string
	self        process.Identity
}

func newStage(t *testing.T) *stage {
	t.Helper()
	t.Parallel()
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t, t.TempDir(), t.TempDir(), self}
}

func (s *stage) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) write(text string) {
	s.Helper()
	s.check(os.WriteFile(filepath.Join(s.root, "pawl.yaml"), []byte(text), 0o600))
}

func (s *stage) now() []File { return []File{Read(s.root, filepath.Join(s.root, "pawl.yaml"))} }

// changed checks what is told of the file.
func (s *stage) changed(want bool) {
	s.Helper()
	found, err := Changed([]string{s.TempDir(), s.state}, s.now())
	s.check(err)
	if len(found) > 0 != want {
		s.Errorf("found %+v, want %v", found, want)
	}
}

// What differs when a run rests stays known, until it is put back or accepted.
func TestRun(t *testing.T) {
	s := newStage(t)
	s.write("a")
	s.check(Keep(s.state, "run", "build", s.root, s.self, s.now()))
	s.changed(false)
	s.write("b")
	s.changed(true) // while the run works
	s.check(Release(s.state, "run", s.root))
	s.changed(true)
	if kept := Kept(s.state, "run"); len(kept) != 1 || kept[0].Text != "a" {
		t.Errorf("kept %+v", kept)
	}
	s.write("c") // on top of it
	s.changed(true)
	s.write("a")
	s.changed(false)
	s.write("b")
	s.check(Accept([]string{s.state}, s.now()))
	s.changed(false)
	s.check(Release(s.state, "run", s.root))
	s.write("d")
	s.changed(false) // nobody was there but a person
	s.check(Release(s.state, "run", s.root))
}

// A run that was cut off never compared: nobody can tell who changed the file. To
// accept it ends that.
func TestCutOff(t *testing.T) {
	s := newStage(t)
	dead := s.self
	dead.Start++
	s.check(Keep(s.state, "run", "build", s.root, dead, s.now()))
	s.write("made by it")
	s.changed(true)
	s.check(Accept([]string{s.state}, s.now()))
	s.write("by a person")
	s.changed(false)
}

// While a run works, and after it was cut off, no file is believed that came to be
// since then where agents write, whatever its name. Once a person took it, only
// another change counts.
func TestLate(t *testing.T) {
	s := newStage(t)
	path := filepath.Join(s.root, "pawl.yaml")
	s.check(os.Mkdir(filepath.Join(s.state, "trust"), 0o700))
	dead := s.self
	dead.Start++
	for _, owner := range []process.Identity{s.self, dead} {
		s.write("a")
		at, err := files.Changed(path)
		s.check(err)
		r := record{Owner: owner, Files: []File{{Path: "/x"}}, Root: s.root, Since: at}
		s.check(writeRecord(filepath.Join(s.state, "trust", "run.json"), r))
		s.changed(false) // it was there before
		r.Since = at.Add(-1)
		s.check(writeRecord(filepath.Join(s.state, "trust", "run.json"), r))
		s.changed(true)
		s.check(Accept([]string{s.state}, s.now()))
		s.changed(false)
		s.write("b")
		s.changed(owner == s.self) // nobody but a person is there after a crash
		s.check(Release(s.state, "run", s.root))
		s.write("c")
		s.changed(owner == s.self)
	}
	other := t.TempDir()
	s.check(writeRecord(filepath.Join(s.state, "trust", "run.json"), record{Files: []File{{Path: "/x"}}, Root: other, Since: time.Unix(1, 0)}))
	s.changed(false) // agents write elsewhere
	s.check(Keep(s.state, "run", "build", s.root, s.self, []File{{Path: "/x"}}))
	r, err := readRecord(filepath.Join(s.state, "trust", "run.json"))
	if err != nil || !r.Since.Equal(time.Unix(1, 0)) || r.Root != s.root {
		t.Errorf("after a crash it is kept %+v, %v", r, err)
	}
}

// A session that is under way compares with what was accepted.
func TestAcceptedMeanwhile(t *testing.T) {
	s := newStage(t)
	s.write("a")
	s.check(Keep(s.state, "run", "build", s.root, s.self, s.now()))
	s.write("b")
	s.check(Accept([]string{s.state}, s.now()))
	s.write("c")
	s.changed(true)
}

// What cannot be read differs from what could.
func TestRead(t *testing.T) {
	s := newStage(t)
	s.write("a")
	s.check(Keep(s.state, "run", "build", s.root, s.self, s.now()))
	path := filepath.Join(s.root, "pawl.yaml")
	s.check(os.Remove(path))
	s.changed(true)
	s.check(os.Symlink(os.DevNull, path))
	s.changed(true)
	if f := Read("", os.DevNull); f.Why == "" {
		t.Error("a device was read")
	}
}
