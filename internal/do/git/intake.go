package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Intake is an object store of the user's as agents have it. Git does not compare an
// object with its name when it reads it: whoever can write the store can change what
// every commit says. So agents read the store, and what they add goes to a folder of
// its own. [Repo.Accept] brings that into the store, checked.
type Intake struct {
	Store string // the objects of the repository, which agents cannot write
	New   string // shown in the place of the store: what agents add, and where the store is
	Lent  string // where the store is shown
}

// Prepare makes the folders. Calling it again while agents use them changes nothing.
func (in Intake) Prepare() error {
	if strings.Contains(in.Lent+in.Store, "\n") {
		return errors.New("cannot lend an object store: there is a newline in a path")
	}
	for _, dir := range []string{filepath.Join(in.New, "info"), filepath.Join(in.New, "pack"), in.Lent} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cannot lend an object store: %w", err)
		}
	}
	from := in.Lent + "\n"
	own, err := files.ReadBelow(in.Store, filepath.Join("info", "alternates"), packedLimit)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot lend an object store: %w", err)
	}
	for line := range strings.Lines(string(own)) {
		// Git would look for it beside Lent.
		line = strings.TrimSuffix(line, "\n")
		if line != "" && line[0] != '#' && line[0] != '"' && !filepath.IsAbs(line) {
			from += filepath.Join(in.Store, line) + "\n"
		}
	}
	if err := keepFile(filepath.Join(in.New, "info", "alternates"), []byte(from)); err != nil {
		return fmt.Errorf("cannot lend an object store: %w", err)
	}
	return nil
}

// Accept brings what agents added into the store, and removes it from the folder of
// what is new. What is not what its name says goes without being taken: bad are the
// names of it. An object that the store has stays as it is there. It may be called
// while agents work, and by several processes at once.
func (r *Repo) Accept(ctx context.Context, in Intake) (bad []string, err error) {
	bad, err = in.AcceptLoose(ctx)
	for _, name := range bad {
		if err == nil {
			err = files.RemoveAll(filepath.Join(in.New, name))
		}
	}
	if err == nil {
		var packs []string
		packs, err = r.acceptPacks(ctx, in)
		bad = append(bad, packs...)
	}
	if err != nil {
		return bad, fmt.Errorf("cannot take objects in: %w", err)
	}
	return bad, nil
}

// AcceptLoose is the part of [Repo.Accept] that needs no git: objects that have files
// of their own. What is bad is left where it is.
func (in Intake) AcceptLoose(ctx context.Context) (bad []string, err error) {
	dirs, err := os.ReadDir(in.New)
	if err != nil {
		return nil, err
	}
	for _, d := range dirs {
		switch {
		case !d.IsDir() && !d.Type().IsRegular(): // a link or a pipe in the place of a folder
			bad = append(bad, d.Name())
			continue
		case !d.IsDir(), len(d.Name()) != 2:
			continue // temporary, or none of single objects
		}
		entries, err := os.ReadDir(filepath.Join(in.New, d.Name()))
		if err != nil {
			return bad, err
		}
		for _, e := range entries {
			name := filepath.Join(d.Name(), e.Name())
			if hashOf(d.Name()+e.Name()) == nil {
				continue // not finished, or git does not look at it
			}
			is, err := in.acceptObject(ctx, name)
			switch {
			case errors.Is(err, fs.ErrNotExist): // another process took it
			case err != nil:
				return bad, err
			case !is:
				bad = append(bad, name)
			default:
				if err := files.RemoveBelow(in.New, name); err != nil {
					return bad, err
				}
			}
		}
	}
	return bad, nil
}

// acceptObject copies an object to the store, and reports whether it is what its name
// says. The copy is judged: nobody else can write it.
func (in Intake) acceptObject(ctx context.Context, name string) (is bool, err error) {
	f, err := files.OpenBelow(in.New, name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		return false, nil // a link, a pipe, a folder: no object
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	to := filepath.Join(in.Store, name)
	if err := os.Mkdir(filepath.Dir(to), 0o777); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // git's mode
		return false, err
	}
	temp, err := os.CreateTemp(filepath.Dir(to), "tmp_obj_") // git removes such in time
	if err != nil {
		return false, err
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	_, err = io.Copy(temp, whileIn{ctx, f})
	if err == nil {
		_, err = temp.Seek(0, io.SeekStart)
	}
	if err != nil {
		return false, err
	}
	if !isObject(whileIn{ctx, temp}, filepath.Dir(name)+filepath.Base(name)) {
		return false, ctx.Err()
	}
	if err := temp.Chmod(info.Mode().Perm()&0o444 | 0o400); err != nil {
		return false, err
	}
	if err := os.Link(temp.Name(), to); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	return true, nil
}

// maxObject is the size in bytes up to which an object may have a file of its own. Git puts
// large ones into packs: see core.bigFileThreshold, which is half of it.
const maxObject = 1 << 30

// isObject reports whether what is read is the file of the object id, and nothing more.
// Of one that unpacks to more than it says, or than maxObject, no more is read.
func isObject(from io.Reader, id string) bool {
	in := bufio.NewReader(from)
	z, err := zlib.NewReader(in)
	if err != nil {
		return false
	}
	content := bufio.NewReader(z)
	begin, _ := content.Peek(len("commit 18446744073709551615\x00")) // a small object ends before
	head, _, _ := bytes.Cut(begin, []byte{0})
	_, number, _ := strings.Cut(string(head), " ")
	size, err := strconv.ParseInt(number, 10, 64)
	if err != nil || size < 0 || size > maxObject {
		return false
	}
	h := hashOf(id)
	if _, err := io.CopyN(h, content, int64(len(head))+1+size); err != nil {
		return false
	}
	if _, err := content.ReadByte(); !errors.Is(err, io.EOF) {
		return false
	}
	_, err = in.ReadByte() // git cannot read an object with something behind it
	return errors.Is(err, io.EOF) && hex.EncodeToString(h.Sum(nil)) == id
}

// hashOf makes the hash that gave an object its name; nil when it is no such name.
func hashOf(id string) hash.Hash {
	if strings.Trim(id, "0123456789abcdef") != "" {
		return nil
	}
	for _, format := range []string{"sha1", "sha256"} {
		if h := (&Repo{Format: format}).newHash(); hex.EncodedLen(h.Size()) == len(id) {
			return h
		}
	}
	return nil
}

// acceptPacks has git read the packs and name what is in them. Indexes and all else
// that an agent may have written beside them do not count.
func (r *Repo) acceptPacks(ctx context.Context, in Intake) (bad []string, err error) {
	entries, err := os.ReadDir(filepath.Join(in.New, "pack"))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		base, finished := strings.CutSuffix(e.Name(), ".idx") // git writes it last
		if !finished {
			continue
		}
		is, err := r.acceptPack(ctx, in, filepath.Join("pack", base))
		if err != nil {
			return bad, err
		}
		if !is {
			bad = append(bad, base)
		}
		for _, other := range entries {
			if !strings.HasPrefix(other.Name(), base+".") {
				continue
			}
			if err := files.RemoveBelow(in.New, filepath.Join("pack", other.Name())); err != nil {
				return bad, err
			}
		}
	}
	return bad, nil
}

func (r *Repo) acceptPack(ctx context.Context, in Intake, base string) (is bool, err error) {
	f, err := files.OpenBelow(in.New, base+".pack")
	if err != nil {
		return errors.Is(err, fs.ErrNotExist), nil // taken by another process, or no file
	}
	defer f.Close()
	c := r.call("index-pack", "--stdin")
	// Of a partial clone: what the pack lacks is still at the remote.
	if partial, err := r.partial(ctx); err == nil && partial && isFile(in.New, base+".promisor") {
		c.args = append(c.args, "--promisor")
	}
	c.env = append(c.env, "GIT_OBJECT_DIRECTORY="+in.Store)
	c.stdin = f
	_, err = run(ctx, c)
	switch {
	case err == nil:
		return true, nil
	case exitCode(err) > 0 && !files.Full(in.Store):
		return false, nil
	}
	return false, err
}

func isFile(root, name string) bool {
	f, err := files.OpenBelow(root, name)
	if err != nil {
		return false
	}
	_ = f.Close() // nothing was written
	return true
}

// whileIn reads until ctx is done.
type whileIn struct {
	ctx  context.Context //nolint:containedctx // of one call
	from io.Reader
}

func (w whileIn) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.from.Read(p)
}
