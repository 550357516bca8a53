package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// place is where the files of one attempt are: runs/<run>/<n>/. An attempt
// that a limit of the provider cut off moves to runs/<run>/<n>/<attempt>/.
type place struct {
	dir     string
	attempt int
}

func (s *session) place(iteration, attempt int) place {
	return place{filepath.Join(s.runDir, strconv.Itoa(iteration)), attempt}
}

func (p place) prompt() string { return filepath.Join(p.dir, "prompt.md") }
func (p place) agent() string  { return filepath.Join(p.dir, "agent") }
func (p place) begun() string  { return filepath.Join(p.dir, "begun.json") }
func (p place) review(try int) string {
	if try > 1 {
		return filepath.Join(p.dir, fmt.Sprintf("review-%d", try))
	}
	return filepath.Join(p.dir, "review")
}
func (p place) reviewPrompt(try int) string { return p.review(try) + ".prompt.md" }
func (p place) reviewBegun(try int) string  { return p.review(try) + ".begun.json" }
func (p place) tools() string               { return filepath.Join(p.dir, "tools") }
func (p place) caches() string              { return filepath.Join(p.dir, "caches") }
func (p place) gate(n int) string {
	return filepath.Join(p.dir, fmt.Sprintf("gate-%d", n+1))
}

// begun is what must be known to go on with an attempt after a crash: it is
// written before the agent is started.
type begun struct {
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
	// Since is when the session began that works on it, and Worked how long those
	// before did; of iterations by steps.
	Since      time.Time      `json:"since,omitzero"`
	Worked     time.Duration  `json:"worked,omitempty"`
	Job        supervisor.Job `json:"job"`
	TreeBefore string         `json:"tree_before,omitempty"`
	HeadBefore string         `json:"head_before,omitempty"`
	// BranchBefore is what a review is put back to.
	BranchBefore string `json:"branch_before,omitempty"`
	// Messages are the control rows whose texts are in the prompt.
	Messages []int64  `json:"messages,omitempty"`
	Said     []string `json:"said,omitempty"` // their texts
	// Later is how many of them, the last ones, were left while the agent worked.
	Later int `json:"later,omitempty"`
}

// begunBy is where it is kept how the job of a command was begun.
func (p place) begunBy(c loop.Command) string {
	if c.Kind == loop.RunReview {
		return p.reviewBegun(c.Review)
	}
	return p.begun()
}

// write keeps how an attempt, or a try of its review, was begun; read reads it,
// false when this attempt was not.
func (b begun) write(path string) error { return writeFile(path, encode(b)) }

func (p place) read(path string) (begun, bool) {
	b, ok := readBegun(path)
	return b, ok && b.Attempt == p.attempt
}

// Begun is true when the attempt of a command was begun in the folder of its run here.
func Begun(runDir string, c loop.Command) bool {
	p := place{dir: filepath.Join(runDir, strconv.Itoa(c.Iteration)), attempt: c.Attempt}
	_, ok := p.read(p.begun())
	return ok
}

// ReadBegun reads from the folder of an iteration which attempt was begun there, and when.
func ReadBegun(dir *os.Root) (attempt int, at time.Time, ok bool) {
	var b begun
	data, err := dir.ReadFile("begun.json")
	ok = err == nil && json.Unmarshal(data, &b) == nil
	return b.Attempt, b.At, ok
}

func readBegun(path string) (b begun, ok bool) {
	ok = files.ReadJSON(path, &b) == nil
	return b, ok
}

// open makes the folder. The files of an attempt before this one that a crash
// left in the way are kept aside.
func (p place) open() error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the folder of the iteration: %w", err)
	}
	if b, ok := readBegun(p.begun()); ok && b.Attempt > 0 && b.Attempt != p.attempt {
		return place{p.dir, b.Attempt}.keepAside()
	}
	return nil
}

// keepAside moves the attempt's files into a folder of its own.
func (p place) keepAside() error {
	to := filepath.Join(p.dir, strconv.Itoa(p.attempt))
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return fmt.Errorf("cannot keep the files of an attempt: %v", err)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("cannot keep the files of an attempt: %v", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		if err := os.Rename(filepath.Join(p.dir, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return fmt.Errorf("cannot keep the files of an attempt: %v", err)
		}
	}
	return nil
}

// newest is the latest change of any of the attempt's files.
func (p place) newest() time.Time {
	var last time.Time
	_ = filepath.WalkDir(p.dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // what cannot be read tells nothing
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		return nil
	})
	return last
}

func writeFile(path string, data []byte) error {
	if err := files.Replace(path, data, 0o600, false); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// maxSettings is the size in bytes over which a program's settings are not read.
const maxSettings = 1 << 20

// writeSettings writes the files that a program needs before its start, where they
// are not there as they should be. They lie below stateDir in a folder of the agent's,
// which may have put links there. later are those that only the supervisor can
// write, who knows the gateway's address.
func writeSettings(stateDir string, settings []agent.File) (later []agent.File, err error) {
	for _, f := range settings {
		if strings.Contains(f.Content, agent.GatewayAddress) {
			later = append(later, f)
			continue
		}
		name, err := filepath.Rel(stateDir, f.Path)
		if err == nil {
			if old, rerr := files.ReadBelow(stateDir, name, maxSettings); rerr == nil && string(old) == f.Content {
				continue
			}
			err = files.ReplaceBelow(stateDir, name, []byte(f.Content), 0o600, false)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot write the agent's settings: %w", err)
		}
	}
	return later, nil
}

// unwritable is true for an error of a disk that is full or read-only.
func unwritable(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, fs.ErrPermission} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
