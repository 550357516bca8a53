package pool

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// The refs of tasks have the same names in each board, so a repository has one board. Another
// one is that of a linked work tree, or of a person or container with another home folder.

// boardFile is where a repository has the note of its board.
const boardFile = "pawl-board.json"

// boardNote says whose the refs of tasks are. What is stored outlives the code: names must
// not change.
type boardNote struct {
	ID    string `json:"id"`
	Git   string `json:"git"`   // the git directory, so that a copy of it is another one
	State string `json:"state"` // where the board is kept, for people
	Host  string `json:"host"`  // there
}

// ClaimBoard makes the board of these workspaces that of the repository. It refuses where the
// repository has another.
func (p *rows) ClaimBoard() error {
	mine := boardNote{State: p.o.StateDir}
	mine.Host, _ = os.Hostname()
	var err error
	if mine.Git, err = files.Identity(p.repo.Common); err == nil {
		mine.ID, err = p.boardIdentity()
	}
	if err != nil {
		return fmt.Errorf("cannot tell which board this is: %w", err)
	}
	path, is := filepath.Join(p.repo.Common, boardFile), boardNote{}
	err = files.ReadJSON(path, &is)
	switch {
	case err == nil && is == mine:
		return nil
	case err == nil && is.Git == mine.Git && is.ID != mine.ID:
		return fault.Refuse("the repository already has a board, in %s on %s; two would overwrite each "+
			"other's work", is.State, is.Host).
			Hint("Use that one: work where it was created, with the same XDG_STATE_HOME or HOME").
			Hint("Or give this one a repository of its own: git clone").
			Hint("Or, if the other is gone for good: rm %s", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot tell which board the repository has: %w", err)
	}
	if err := files.ReplaceJSON(path, mine, true); err != nil {
		return fmt.Errorf("cannot record the board of the repository: %w", err)
	}
	return nil
}

// boardIdentity tells the board from any other: the name of one that is shared, or what was made up
// for the state folder.
func (p *rows) boardIdentity() (string, error) {
	if shared := p.o.Store.BoardName(); shared != "" {
		return "shared " + shared, nil
	}
	err := files.MakeBelow(p.o.StateDir, "board", []byte(rand.Text()))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	id, err := os.ReadFile(filepath.Join(p.o.StateDir, "board"))
	return strings.TrimSpace(string(id)), err
}
