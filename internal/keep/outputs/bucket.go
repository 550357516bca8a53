package outputs

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// Objects are those of a bucket, which nobody can add to: they are read from any place,
// and written whole. Errors are [fs.ErrNotExist] where there is no such object.
type Objects interface {
	// List calls each for all objects whose name begins with prefix, in the order of their names.
	List(ctx context.Context, prefix string, each func(Object)) error
	Read(ctx context.Context, name string, from int64) (io.ReadCloser, error)
	Write(ctx context.Context, name string, data io.Reader) error
	Remove(ctx context.Context, name string) error
	Close() error
}

// Object is one of a bucket.
type Object struct {
	Name    string
	Size    int64
	Changed time.Time // by the bucket's clock
}

// Bucket is one that all machines reach. A file is kept in parts:
//
//	BOARD/RUN/1/agent.out/K7Q2…-0        from its first byte
//	BOARD/RUN/1/agent.out/K7Q2…-16384    from its byte 16,384
//
// The letters are the file's: another one of the same name has others. A part takes up
// smaller ones before it, so that there are few. What is looked at is copied into a
// temporary folder of this process, and kept up to date while it is looked at.
type Bucket struct {
	objects Objects
	board   string
	mirror  mirror
	ctx     context.Context // of all calls, until it is closed
	stop    context.CancelFunc
}

// InBucket is what a board's machines share by a bucket.
func InBucket(objects Objects, board string) *Bucket {
	b := &Bucket{objects: objects, board: board}
	b.mirror.of, b.mirror.looks = b, map[string]*look{}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// Try writes an object, lists and reads it, and removes it.
func Try(ctx context.Context, objects Objects) error {
	name, text := "pawl-check/"+rand.Text(), "written by pawl cluster check"
	if err := objects.Write(ctx, name, strings.NewReader(text)); err != nil {
		return err
	}
	listed := false
	err := objects.List(ctx, name, func(o Object) { listed = o.Name == name })
	var read []byte
	if err == nil && listed {
		var in io.ReadCloser
		if in, err = objects.Read(ctx, name, 1); err == nil {
			read, err = io.ReadAll(in)
			err = errors.Join(err, in.Close())
		}
	}
	err = errors.Join(err, objects.Remove(ctx, name))
	if err == nil && string(read) != text[1:] {
		err = errors.New("what was written there is not found there")
	}
	return err
}

const (
	bucketEvery = 500 * time.Millisecond // how soon others see what is new; each costs a call for each file that grew
	bucketBound = 30 * time.Second       // for one call, or for a part of a file
	partMost    = 16 << 20               // bytes of a part that takes up others
)

func (b *Bucket) every() time.Duration { return bucketEvery }

func (b *Bucket) open(run, iteration string) (*os.Root, error) {
	root, err := b.mirror.open(run, iteration)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("cluster.files cannot be read (try: pawl-cluster cluster check): %w", err)
	}
	return root, err
}

func (b *Bucket) look(run, iteration string) { b.mirror.look(run, iteration) }

// Close removes what was copied here. It waits for no call.
func (b *Bucket) Close() error {
	b.stop()
	return errors.Join(b.mirror.close(), b.objects.Close())
}

func (b *Bucket) remove(run string) error { return b.clear(path.Join(b.board, run)) }

// clear removes all objects of a folder.
func (b *Bucket) clear(dir string) error {
	var all []string
	ctx, cancel := b.bound()
	defer cancel()
	err := b.objects.List(ctx, dir+"/", func(o Object) { all = append(all, o.Name) })
	for _, name := range all {
		if err == nil {
			err = b.delete(name)
		}
	}
	return err
}

func (b *Bucket) delete(name string) error {
	ctx, cancel := b.bound()
	defer cancel()
	return unlessGone(b.objects.Remove(ctx, name))
}

func (b *Bucket) write(name string, data io.Reader) error {
	ctx, cancel := b.bound()
	defer cancel()
	return b.objects.Write(ctx, name, data)
}

func (b *Bucket) bound() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, bucketBound)
}

func (b *Bucket) place(run string) place {
	return &bucketOfRun{b: b, dir: path.Join(b.board, run), parts: map[string]parts{}}
}

// bucketOfRun takes the files of a run into a bucket.
type bucketOfRun struct {
	b     *Bucket
	dir   string
	parts map[string]parts
}

// parts are those of one file.
type parts struct {
	mark string  // of the file
	at   []int64 // where each begins; it ends where the next one begins
}

func (r *bucketOfRun) begin() error { return nil }

func (r *bucketOfRun) end() error { return nil }

func (r *bucketOfRun) fresh(dir string) error { return r.b.clear(path.Join(r.dir, dir)) }

func (r *bucketOfRun) drop(name string) error { return r.b.clear(path.Join(r.dir, name)) }

func (r *bucketOfRun) put(name string, data []byte) error {
	return r.add(name, bytes.NewReader(data), 0, int64(len(data)))
}

func (r *bucketOfRun) add(name string, in io.ReaderAt, at, end int64) error {
	if at == 0 {
		if err := r.drop(name); err != nil {
			return err
		}
		r.parts[name] = parts{mark: rand.Text()}
	}
	for at < end {
		to := min(at+partMost, end)
		if err := r.part(name, in, at, to); err != nil {
			return err
		}
		at = to
	}
	return nil
}

// part adds one part, which takes up those before that are no larger: so a file that
// grows by little has few parts, and each byte is written a few times.
func (r *bucketOfRun) part(name string, in io.ReaderAt, at, end int64) error {
	p := r.parts[name]
	first, upTo := len(p.at), at
	for first > 0 && upTo-p.at[first-1] <= end-upTo && end-p.at[first-1] <= partMost {
		first--
		upTo = p.at[first]
	}
	if err := r.b.write(r.object(name, p.mark, upTo), io.NewSectionReader(in, upTo, end-upTo)); err != nil {
		return err
	}
	for i := first + 1; i < len(p.at); i++ {
		_ = r.b.delete(r.object(name, p.mark, p.at[i])) // one that stays says the same
	}
	p.at = append(p.at[:first], upTo)
	r.parts[name] = p
	return nil
}

func (r *bucketOfRun) object(name, mark string, at int64) string {
	return path.Join(r.dir, name, mark+"-"+strconv.FormatInt(at, 10))
}
