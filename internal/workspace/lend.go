package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/git"
)

// lentStore is the file that has the path of an object store that is lent.
const lentStore = "store"

// Lend makes folders that processes of agents and gates see in the place of the
// repository's object stores, those of submodules too, and says what is to be shown
// where. They read the stores, and what they add is brought in by [Checkout.Accept].
func (c *Checkout) Lend(ctx context.Context) ([]View, error) {
	var views []View
	for _, store := range c.stores(ctx) {
		sum := sha256.Sum256([]byte(store))
		dir := filepath.Join(c.lentDir(), hex.EncodeToString(sum[:8]))
		in := intake(dir, store)
		if err := in.Prepare(); err != nil {
			return nil, err
		}
		// Last: what has it is whole.
		if err := files.Replace(filepath.Join(dir, lentStore), []byte(store), 0o600, false); err != nil {
			return nil, fmt.Errorf("cannot lend an object store: %w", err)
		}
		views = append(views, View{From: in.New, To: store}, View{From: store, To: in.Lent, ReadOnly: true})
	}
	return views, nil
}

// Accept brings what was added to the folders of [Checkout.Lend] into the object
// stores, and names what was left out because it is not what its name says. It costs
// next to nothing when there is nothing.
func (c *Checkout) Accept(ctx context.Context) (bad []string, err error) {
	entries, err := os.ReadDir(c.lentDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		dir := filepath.Join(c.lentDir(), e.Name())
		store, rerr := files.ReadBelow(dir, lentStore, textLimit)
		if errors.Is(rerr, fs.ErrNotExist) {
			continue // it is being made
		}
		if rerr != nil {
			err = errors.Join(err, rerr)
			continue
		}
		in := intake(dir, string(store))
		more, aerr := c.Repo.Accept(ctx, in)
		for _, name := range more {
			bad = append(bad, c.shown(lead{in.Store, name}))
		}
		err = errors.Join(err, aerr)
	}
	return bad, err
}

// BadObjects says for a person what [Checkout.Accept] left out.
func BadObjects(bad []string) string {
	if len(bad) == 1 {
		return "git's object " + bad[0] + " is not what its name says, and was not taken into the repository"
	}
	return fmt.Sprintf("%d of git's objects are not what their names say, and were not taken into the repository, "+
		"first: %s", len(bad), bad[0])
}

func (c *Checkout) lentDir() string { return filepath.Join(c.stateDir, "objects") }

func intake(dir, store string) git.Intake {
	return git.Intake{Store: store, New: filepath.Join(dir, "new"), Lent: filepath.Join(dir, "lent")}
}

// stores are the object stores of the repository, of its submodules, and of the nested
// repositories that its index names.
func (c *Checkout) stores(ctx context.Context) []string {
	all := []string{c.Repo.Objects}
	_, nested := c.Leads(ctx)
	for _, dir := range append(c.Modules(), nested...) {
		store := filepath.Join(dir, "objects")
		if info, err := os.Lstat(store); err == nil && info.IsDir() { // what a link leads to is not shown
			all = append(all, store)
		}
	}
	return all
}
