package checklog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/internal/keep/checklog"
)

func open(t *testing.T, root string) *checklog.Store {
	t.Helper()
	s, err := checklog.Open(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each of many at once finds what the others wrote: none is lost.
func TestConcurrentAttempts(t *testing.T) {
	root := t.TempDir()
	const n = 20
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			s, err := checklog.Open(t.Context(), root)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			l, err := s.Load("task-003")
			if err == nil {
				err = s.Save(l.Add(checklog.Attempt{Round: 1, Iteration: i + 1}))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s := open(t, root)
	defer s.Close()
	l, err := s.Load("task-003")
	if err != nil || len(l.Attempts) != n {
		t.Errorf("%d attempts of %d, %v", len(l.Attempts), n, err)
	}
	left, _ := filepath.Glob(filepath.Join(checklog.Dir(root), ".new-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAdd(t *testing.T) {
	var l checklog.Log
	for i := range 101 {
		l = l.Add(checklog.Attempt{Round: 1, Iteration: i + 1})
	}
	if len(l.Attempts) != 100 || l.Attempts[0].Iteration != 2 {
		t.Errorf("kept %d, from %d", len(l.Attempts), l.Attempts[0].Iteration)
	}
	again := l.Add(checklog.Attempt{Round: 1, Iteration: 101, Summary: "corrected"})
	if len(again.Attempts) != 100 || again.Attempts[99].Summary != "corrected" {
		t.Errorf("the same attempt again: %d, %+v", len(again.Attempts), again.Attempts[99])
	}
	if l.Attempts[99].Summary != "" {
		t.Error("Add changed the log before it")
	}
	if round := l.Add(checklog.Attempt{Round: 2, Iteration: 101}); round.Attempts[98].Round != 1 {
		t.Errorf("a new round replaced the attempt before: %+v", round.Attempts[98:])
	}
}

// Ids that make the same file name are different tasks, and no id leaves the
// folder.
func TestTaskIDs(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	defer s.Close()
	ids := []string{"a/b", "a:b", "A/B", "../../etc/passwd", "ü", "", strings.Repeat("x", 5000)}
	for i, id := range ids {
		if err := s.Save(checklog.Log{Task: id, Base: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i, id := range ids {
		if l, err := s.Load(id); err != nil || l.Base != fmt.Sprint(i) {
			t.Errorf("%.20q: %+v, %v", id, l, err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(checklog.Dir(root), "*.json"))
	if len(files) != len(ids) {
		t.Errorf("%d files for %d ids: %v", len(files), len(ids), files)
	}
	if gone, err := s.Forget("a/b"); !gone || err != nil {
		t.Errorf("forget: %v, %v", gone, err)
	}
	if gone, err := s.Forget("a/b"); gone || err != nil {
		t.Errorf("forget again: %v, %v", gone, err)
	}
}

// A file that cannot be read is kept beside, and the task begins anew.
func TestCorrupt(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	defer s.Close()
	if err := s.Save(checklog.Log{Task: "t"}); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(checklog.Dir(root), "t-*.json"))
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := s.Load("t")
	if !errors.Is(err, checklog.ErrCorrupt) || l.Task != "t" || len(l.Attempts) != 0 {
		t.Errorf("%+v, %v", l, err)
	}
	kept, _ := filepath.Glob(filepath.Join(checklog.Dir(root), "*.corrupt-*"))
	if len(kept) != 1 {
		t.Errorf("kept aside: %v", kept)
	}
	if l, err := s.Load("t"); err != nil || l.Task != "t" {
		t.Errorf("after that: %+v, %v", l, err)
	}
}
