// Package attemptdir is what lies in the folder of one attempt at an iteration: the files of
// its agent, of its gates and of its review, how its job was begun, and the messages that
// its agent gets while it works. After a crash the next engine finds it again there.
package attemptdir

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Folder is where the files of one attempt are: runs/<run>/<n>/. An attempt
// that a limit of the provider cut off moves to runs/<run>/<n>/<attempt>/.
type Folder struct {
	Dir     string
	attempt int
}

// In is that of an attempt in the folder of its run.
func In(runDir string, iteration, attempt int) Folder {
	return Folder{filepath.Join(runDir, strconv.Itoa(iteration)), attempt}
}

// PromptFile has the prompt of the iteration's agent.
func (p Folder) PromptFile() string { return filepath.Join(p.Dir, "prompt.md") }

// AgentFiles begins the names of the files of the agent's job.
func (p Folder) AgentFiles() string { return filepath.Join(p.Dir, "agent") }

// BegunFile says how the agent's job was begun.
func (p Folder) BegunFile() string { return filepath.Join(p.Dir, "begun.json") }

// ReviewFiles begins the names of the files of a try of the review.
func (p Folder) ReviewFiles(try int) string {
	if try > 1 {
		return filepath.Join(p.Dir, fmt.Sprintf("review-%d", try))
	}
	return filepath.Join(p.Dir, "review")
}

// ReviewPromptFile has the prompt of a try of the review.
func (p Folder) ReviewPromptFile(try int) string { return p.ReviewFiles(try) + ".prompt.md" }

// ReviewBegunFile says how the job of a try of the review was begun.
func (p Folder) ReviewBegunFile(try int) string { return p.ReviewFiles(try) + ".begun.json" }

// ToolsFolder is shared with pawl's tools of the agent.
func (p Folder) ToolsFolder() string { return filepath.Join(p.Dir, "tools") }

// CachesFolder gets what gates write to their caches and temporary files.
func (p Folder) CachesFolder() string { return filepath.Join(p.Dir, "caches") }

// LeftFolder gets the evidence that the agent leaves.
func (p Folder) LeftFolder() string { return filepath.Join(p.Dir, "caches", "agent") }

// ShownFolder gets the evidence that gate n, from 0, leaves.
func (p Folder) ShownFolder(n int) string {
	return filepath.Join(p.CachesFolder(), filepath.Base(p.GateFiles(n)))
}

// EvidenceFolder keeps what evidence was left.
func (p Folder) EvidenceFolder() string { return filepath.Join(p.Dir, "evidence") }

// GateFiles begins the names of the files of gate n, from 0.
func (p Folder) GateFiles(n int) string {
	return filepath.Join(p.Dir, fmt.Sprintf("gate-%d", n+1))
}

// Begun is what must be known to go on with an attempt after a crash: it is
// written before the agent is started.
type Begun struct {
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

// BegunFileOf returns the path of the file that records how the job of a command was begun.
func (p Folder) BegunFileOf(c loop.Command) string {
	if c.Kind == loop.RunReview {
		return p.ReviewBegunFile(c.Review)
	}
	return p.BegunFile()
}

// Write keeps how an attempt, or a try of its review, was begun.
func (b Begun) Write(path string) error {
	if err := files.ReplaceJSON(path, b, false); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// ReadBegun reads what [Begun.Write] wrote; false when this attempt was not begun.
func (p Folder) ReadBegun(path string) (Begun, bool) {
	b, ok := LoadBegun(path)
	return b, ok && b.Attempt == p.attempt
}

// WasBegun is true when the attempt of a command was begun in the folder of its run here.
func WasBegun(runDir string, c loop.Command) bool {
	p := In(runDir, c.Iteration, c.Attempt)
	_, ok := p.ReadBegun(p.BegunFile())
	return ok
}

// ReadBegun reads from the folder of an iteration which attempt was begun there, and when.
func ReadBegun(dir *os.Root) (attempt int, at time.Time, ok bool) {
	var b Begun
	data, err := dir.ReadFile("begun.json")
	ok = err == nil && json.Unmarshal(data, &b) == nil
	return b.Attempt, b.At, ok
}

// LoadBegun reads a file that [Begun.Write] wrote.
func LoadBegun(path string) (b Begun, ok bool) {
	ok = files.ReadJSON(path, &b) == nil
	return b, ok
}

// Open makes the folder. The files of an attempt before this one that a crash
// left in the way are kept aside.
func (p Folder) Open() error {
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the folder of the iteration: %w", err)
	}
	if b, ok := LoadBegun(p.BegunFile()); ok && b.Attempt > 0 && b.Attempt != p.attempt {
		return Folder{p.Dir, b.Attempt}.KeepAside()
	}
	return nil
}

// KeepAside moves the attempt's files into a folder of its own.
func (p Folder) KeepAside() error {
	to := filepath.Join(p.Dir, strconv.Itoa(p.attempt))
	entries, err := os.ReadDir(p.Dir)
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
		if err := os.Rename(filepath.Join(p.Dir, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return fmt.Errorf("cannot keep the files of an attempt: %v", err)
		}
	}
	return nil
}

// LastChange is the latest change of any of the attempt's files.
func (p Folder) LastChange() time.Time {
	var last time.Time
	_ = filepath.WalkDir(p.Dir, func(_ string, e fs.DirEntry, err error) error {
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

// JobOf names the agent's job of a command.
func JobOf(c loop.Command) string {
	switch c.Kind {
	case loop.Run:
		return JobID(c)
	case loop.RunReview:
		return ReviewID(c)
	}
	return ""
}

// ReviewID names the reviewer's job: each try has its own.
func ReviewID(c loop.Command) string {
	id := JobID(c) + "/review"
	if c.Review > 1 {
		id += fmt.Sprintf("/%d", c.Review)
	}
	return id
}

// JobID names the author's job of an attempt in its run.
func JobID(c loop.Command) string { return fmt.Sprintf("%d.%d", c.Iteration, c.Attempt) }
