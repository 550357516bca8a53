package git

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/do/git/command"
)

// describeBorrowed returns the parts of a .git with what r has checked out, its branches and tags,
// and the author of its commits.
func (r *Repo) describeBorrowed(ctx context.Context) (made, error) {
	head, err := r.Head(ctx)
	if err != nil {
		return made{}, err
	}
	refs, err := command.Run(ctx, r.NewCall("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads",
		"refs/tags", "refs/remotes"))
	if err != nil {
		return made{}, err
	}
	settings, err := r.Config(ctx)
	if err != nil {
		return made{}, err
	}
	m := made{refs: packedHead + string(refs), head: head.Commit}
	if head.Branch != "" {
		m.head = "ref: " + head.Branch
	}
	m.config, err = r.agentConfig(ctx, settings)
	return m, err
}

// TakeHeld copies what the trees or commits want need and have does not, from the
// objects of other into r's, through a file in dir. It takes no refs. Each object
// is checked as for a fetch with transfer.fsckObjects, names of paths too; with a
// broken one nothing is stored. An empty have is nothing. No gc removes the objects
// until done is called, which is never nil.
func (r *Repo) TakeHeld(ctx context.Context, other *Repo, dir, have string, want ...string) (done func(), err error) {
	return r.takeObjects(ctx, other.NewCall(), dir, have, want)
}

func (r *Repo) takeObjects(ctx context.Context, pack call, dir, have string, want []string) (done func(), err error) {
	return takePackInto(ctx, r.NewCall, r, pack, dir, have, want)
}

// takePackInto is [Repo.TakeHeld] by calls that store into the objects of r.
func takePackInto(ctx context.Context, calls func(...string) call, r *Repo, pack call, dir, have string, want []string,
) (done func(), err error) {
	done = func() {}
	f, err := os.CreateTemp(dir, "pack-*")
	if err != nil {
		return done, fmt.Errorf("cannot bring the work into the repository: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	pack.Args = []string{"pack-objects", "-q", "--revs", "--stdout", "--delta-base-offset"}
	pack.Stdin = reachable(have, want)
	pack.Into = f
	if _, err := command.Run(ctx, pack); err != nil {
		return done, fmt.Errorf("cannot read the work: %w", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return done, err
	}
	return r.storePack(ctx, calls, f)
}

const (
	keepNote = "pawl"    // what is in a file that keeps a pack
	keepFor  = time.Hour // after that the ref is not made any more
)

// storePack keeps the objects of a pack as a pack. A gc of the user's, which may run at any time
// and remove at once what no ref leads to, leaves it alone while there is a file that keeps it:
// until done is called.
func (r *Repo) storePack(ctx context.Context, calls func(...string) call, pack io.ReadSeeker) (done func(), err error) {
	done = func() {}
	head := make([]byte, 12)
	if _, err := io.ReadFull(pack, head); err != nil || string(head[:4]) != "PACK" {
		return done, fmt.Errorf("cannot read the work: it is no pack: %v", err)
	}
	if binary.BigEndian.Uint32(head[8:]) == 0 {
		return done, nil
	}
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return done, err
	}
	r.dropKeeps()
	keep := calls("index-pack", "--stdin", "--strict", "--fix-thin", "--keep="+keepNote)
	keep.Stdin = pack
	out, err := command.Run(ctx, keep)
	if err != nil {
		return done, fmt.Errorf("cannot store the work in the repository: %w", err)
	}
	_, name, kept := strings.Cut(strings.TrimSpace(string(out)), "keep\t")
	if !kept || !r.isObjectID(name) {
		return done, nil // the same pack is kept by another
	}
	return func() { _ = os.Remove(filepath.Join(r.Objects, "pack", "pack-"+name+".keep")) }, nil // else dropKeeps
}

// dropKeeps removes what keeps packs since a pawl was killed before a ref led to them.
func (r *Repo) dropKeeps() {
	all, _ := filepath.Glob(filepath.Join(r.Objects, "pack", "pack-*.keep")) // the pattern is right
	for _, name := range all {
		data, err := os.ReadFile(name)
		if err != nil || strings.TrimSpace(string(data)) != keepNote {
			continue
		}
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > keepFor {
			_ = os.Remove(name) // the next one tries again
		}
	}
}
