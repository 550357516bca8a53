package workspace

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/files"
)

// A ref below refs/replace makes git read another object in the place of the one that
// is its name: the user's history is then what an agent says. Pawl's own git heeds
// none, and new ones are undone.

const (
	replaceRefs = "refs/replace/"
	replaceHead = "ref id\n" // the first line of their list: they were looked for
	packedLimit = 64 << 20   // bytes of the file with many refs
)

// replacing lists them, with what they are at. Git is asked only where there may be
// some.
func (c *Checkout) replacing(ctx context.Context) (string, error) {
	_, loose := os.Lstat(filepath.Join(c.Repo.Common, replaceRefs))
	_, tables := os.Lstat(filepath.Join(c.Repo.Common, "reftable"))
	packed, err := files.ReadBelow(c.Repo.Common, "packed-refs", packedLimit)
	known := err == nil || os.IsNotExist(err)
	if known && loose != nil && tables != nil && !bytes.Contains(packed, []byte(" "+replaceRefs)) {
		return replaceHead, nil
	}
	refs, err := c.Repo.RefIDs(ctx, replaceRefs)
	return replaceHead + refs, err
}

// undoReplacing makes these refs what they were, and names those that were not.
func (c *Checkout) undoReplacing(ctx context.Context, before string) (undone []string, err error) {
	now, err := c.replacing(ctx)
	if err != nil || now == before || before == "" {
		return nil, err
	}
	was, is := refsIn(before), refsIn(now)
	all := maps.Clone(is)
	maps.Copy(all, was)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if was[name] == is[name] {
			continue
		}
		if err := c.Repo.PutRef(ctx, name, was[name]); err != nil {
			return undone, err
		}
		undone = append(undone, c.shown(lead{c.Repo.Common, name}))
	}
	return undone, nil
}

func refsIn(text string) map[string]string {
	refs := map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(text, replaceHead)) {
		name, id, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		refs[name] = id
	}
	return refs
}
