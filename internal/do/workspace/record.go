package workspace

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
)

const (
	runPrefix    = "refs/pawl/runs/"
	skippedLimit = 1000 // skipped paths that the commit names
	titleLimit   = 200  // bytes of a snapshot's first line
)

func snapshotRef(run string, n int, attempt string) string {
	ref := runPrefix + run + "/" + strconv.Itoa(n)
	if attempt != "" {
		ref += "-" + attempt
	}
	return ref
}

// commitMessage is the text of the snapshot's commit. Its last paragraph is read
// back by [parseSnapshotRef]; names are quoted, so no path can look like another line.
func (s Snapshot) commitMessage(title string) string {
	var b strings.Builder
	title = strings.Join(strings.Fields(strings.ReplaceAll(title, "\x00", " ")), " ")
	if len(title) > titleLimit {
		title = strings.ToValidUTF8(title[:titleLimit], "")
	}
	fmt.Fprintf(&b, "%s\n\nPawl-Run: %s\nPawl-Iteration: %d\n", title, s.Run, s.N)
	if s.Attempt != "" {
		fmt.Fprintf(&b, "Pawl-Attempt: %s\n", s.Attempt)
	}
	if s.Head != "" {
		fmt.Fprintf(&b, "Pawl-Head: %s\n", s.Head)
	}
	if s.Branch != "" {
		fmt.Fprintf(&b, "Pawl-Branch: %s\n", strconv.QuoteToASCII(s.Branch))
	}
	for _, p := range s.Skipped[:min(len(s.Skipped), skippedLimit)] {
		fmt.Fprintf(&b, "Pawl-Skipped: %s\n", strconv.QuoteToASCII(p))
	}
	return b.String()
}

// parseSnapshotRef reads a snapshot from its ref. Run, number and attempt come from the
// ref's name, because two names may share a commit.
func parseSnapshotRef(ref git.Ref) (Snapshot, bool) {
	s := Snapshot{Ref: ref.Name, Commit: ref.Commit, Tree: ref.Tree, When: ref.When}
	if name, ok := strings.CutPrefix(ref.Name, runPrefix); ok {
		run, rest, _ := strings.Cut(name, "/")
		num, attempt, _ := strings.Cut(rest, "-")
		n, err := strconv.Atoi(num)
		if err != nil {
			return Snapshot{}, false
		}
		s.Run, s.N, s.Attempt = run, n, attempt
	}
	text := strings.TrimRight(ref.Message, "\n")
	if i := strings.LastIndex(text, "\n\n"); i >= 0 {
		text = text[i+2:]
	}
	for line := range strings.SplitSeq(text, "\n") {
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "Pawl-Run":
			s.Run = cmp.Or(s.Run, value)
		case "Pawl-Head":
			s.Head = value
		case "Pawl-Branch":
			s.Branch = unquoteValue(value)
		case "Pawl-Skipped":
			s.Skipped = append(s.Skipped, unquoteValue(value))
		}
	}
	return s, true
}

func unquoteValue(v string) string {
	if s, err := strconv.Unquote(v); err == nil {
		return s
	}
	return v
}

// Snapshots lists the kept snapshots of a run by number, an iteration's
// attempts before its own.
func (c *objects) Snapshots(ctx context.Context, run string) ([]Snapshot, error) {
	if !validName(run) {
		return nil, fmt.Errorf("cannot list the snapshots of %q: it is no run id", run)
	}
	return c.listSnapshots(ctx, runPrefix+run+"/")
}

func (c *objects) listSnapshots(ctx context.Context, prefix string) ([]Snapshot, error) {
	refs, err := c.Store.Refs(ctx, prefix)
	if err != nil {
		return nil, err
	}
	all := lists.Pick(refs, parseSnapshotRef)
	slices.SortFunc(all, func(a, b Snapshot) int {
		own := func(s Snapshot) int { return min(len(s.Attempt), 1) }
		return cmp.Or(cmp.Compare(a.N, b.N), -cmp.Compare(own(a), own(b)), cmp.Compare(a.Attempt, b.Attempt))
	})
	return all, nil
}

// Keep says which snapshots of a run stay. The zero value keeps none.
type Keep struct {
	First int   // this many with the lowest numbers
	Last  int   // this many with the highest numbers
	Best  []int // these
}

// Prune drops the refs of a run's other snapshots and returns their number.
// Their objects go when git collects. Attempts stay with their iteration.
func (c *Checkout) Prune(ctx context.Context, run string, keep Keep) (int, error) {
	all, err := c.Snapshots(ctx, run)
	if err != nil {
		return 0, err
	}
	drop := lists.Each(keep.surplusOf(all), func(s Snapshot) git.Ref { return git.Ref{Name: s.Ref, Commit: s.Commit} })
	return len(drop), c.Store.DeleteRefs(ctx, drop)
}

// surplusOf are the snapshots that do not stay.
func (k Keep) surplusOf(all []Snapshot) []Snapshot {
	numbers := lists.Distinct(lists.Each(all, func(s Snapshot) int { return s.N }))
	return slices.DeleteFunc(slices.Clone(all), func(s Snapshot) bool {
		i, _ := slices.BinarySearch(numbers, s.N)
		return i < k.First || i >= len(numbers)-k.Last || slices.Contains(k.Best, s.N)
	})
}

// Forget drops everything that is kept for a run: snapshots and private state.
func (c *Checkout) Forget(ctx context.Context, run string) error {
	if err := c.forgetRun(ctx, run); err != nil {
		return fmt.Errorf("cannot drop the snapshots of run %s: %w", run, err)
	}
	return nil
}

func (c *Checkout) forgetRun(ctx context.Context, run string) error {
	r, err := c.openSession(ctx, run)
	if err != nil {
		return err
	}
	defer r.closeSession()
	if err := c.Store.DropRefs(ctx, runPrefix+run+"/", treePrefix+run+"/"); err != nil {
		return err
	}
	*r.mem = memory{}
	return os.RemoveAll(r.dir)
}
