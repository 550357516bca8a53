package merge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/process"
)

// A movement is what the file checkout.lock says while a target and the files of its
// work trees are moved. It is on the disk before the target moves, and goes when all
// files are moved: what a crash, a killed git or a full disk cuts off is finished by
// whoever holds the file next.
type movement struct {
	Target string `json:"target"`
	From   string `json:"from"`
	To     string `json:"to"`
	Boot   string `json:"boot"` // of the machine, when it began
}

func (m movement) write(hold *os.File) error {
	text, err := json.Marshal(m)
	if err == nil {
		_, err = hold.WriteAt(text, 0)
	}
	err = errors.Join(err, hold.Truncate(int64(len(text))))
	if err == nil {
		err = files.Sync(hold.Name(), filepath.Dir(hold.Name()))
	}
	if err != nil {
		return fmt.Errorf("cannot note where %s is moved to: %v", m.Target, err)
	}
	return nil
}

// hold locks the work trees against other pawls, and finishes what is left of an
// earlier movement. It returns warnings.
func (q *Queue) hold(ctx context.Context) (*os.File, []string, error) {
	hold, err := files.Lock(ctx, filepath.Join(q.o.Dir, "checkout.lock"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, nil, err
	}
	warnings, err := q.finish(ctx, hold)
	if err != nil {
		_ = hold.Close()
		return nil, nil, err
	}
	return hold, warnings, nil
}

// finish moves the files that an earlier movement left behind to where its target is
// now: somebody may have committed meanwhile.
func (q *Queue) finish(ctx context.Context, hold *os.File) ([]string, error) {
	var m movement
	data, err := io.ReadAll(io.NewSectionReader(hold, 0, 4096))
	if err != nil {
		return nil, fmt.Errorf("cannot read what was moved last: %v", err)
	}
	if json.Unmarshal(data, &m) != nil || m.Target == "" {
		return nil, nil // none is left, or its note was cut off before it began
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), landLimit) // not ended half way
	defer cancel()
	tip, err := q.o.Repo.Find(ctx, m.Target)
	if err != nil {
		return nil, err
	}
	moved := false
	if tip != "" {
		if moved, err = q.o.Repo.IsAncestor(ctx, m.To, tip); err != nil {
			return nil, err
		}
	}
	if !moved { // nothing but locks can be left
		tip = m.From
	}
	trees, err := q.o.Repo.Checkouts(ctx, m.Target)
	if err != nil {
		return nil, err
	}
	var moves []*git.FastForward
	defer func() {
		for _, f := range moves {
			f.End()
		}
	}()
	for _, tree := range trees {
		if busy := tree.Busy(); busy != "" && moved {
			return nil, fmt.Errorf("cannot move the files of %s to %.10s: a %s is going on there", tree.Top, tip, busy)
		}
		f, err := begin(ctx, tree, m.From, tip, hold)
		if err != nil {
			return nil, err
		}
		f.PowerLost = m.Boot != process.Boot()
		moves = append(moves, f)
	}
	if !moved {
		return nil, hold.Truncate(0)
	}
	return q.moveFiles(ctx, trees, moves, hold)
}
