package outputs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/outputs"
)

// objects are those of a bucket in memory.
type objects struct {
	mu   sync.Mutex
	all  map[string]object
	away bool // from the network
}

type object struct {
	data    []byte
	changed time.Time
}

var errAway = errors.New("no route to host")

// silent is a bucket that answers nothing.
type silent struct{ *objects }

func (silent) List(ctx context.Context, _ string, _ func(outputs.Object)) error {
	<-ctx.Done()
	return ctx.Err()
}

// do does something with the objects, unless the bucket is away.
func (o *objects) do(do func(all map[string]object) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.away {
		return errAway
	}
	return do(o.all)
}

// names are those of all objects.
func (o *objects) names() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.all))
}

func (o *objects) goes(away bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.away = away
}

func (o *objects) List(_ context.Context, prefix string, each func(outputs.Object)) error {
	return o.do(func(all map[string]object) error {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if strings.HasPrefix(name, prefix) {
				each(outputs.Object{Name: name, Size: int64(len(all[name].data)), Changed: all[name].changed})
			}
		}
		return nil
	})
}

func (o *objects) Read(_ context.Context, name string, from int64) (r io.ReadCloser, err error) {
	err = o.do(func(all map[string]object) error {
		one, known := all[name]
		if !known {
			return fs.ErrNotExist
		}
		r = io.NopCloser(bytes.NewReader(one.data[from:]))
		return nil
	})
	return r, err
}

func (o *objects) Write(_ context.Context, name string, data io.Reader) error {
	text, err := io.ReadAll(data)
	return errors.Join(err, o.do(func(all map[string]object) error {
		all[name] = object{text, time.Now()}
		return nil
	}))
}

func (o *objects) Remove(_ context.Context, name string) error {
	return o.do(func(all map[string]object) error {
		delete(all, name)
		return nil
	})
}

func (o *objects) Close() error { return nil }

// An agent that prints a little all the time leaves few objects, and another machine
// reads all of it.
func TestPartsOfAStream(t *testing.T) {
	inBubble(newBucketDesk(t), func(d *desk) {
		var text strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&text, "line %d\n", i)
			d.write("1/agent.out", text.String())
			d.copy()
			if names := d.objects.names(); len(names) > 12 {
				d.Fatalf("%d objects after %d lines: %q", len(names), i+1, names)
			}
			if i%100 == 0 {
				d.sees("1", "agent.out", text.String())
			}
		}
		d.sees("1", "agent.out", text.String())
		d.must(os.Remove(d.runs + "/run1/1/agent.out"))
		d.write("1/agent.out", "another one")
		d.copy()
		d.sees("1", "agent.out", "another one")
		if names := d.objects.names(); len(names) != 1 {
			d.Errorf("of the one before these stay: %q", names)
		}
		big := strings.Repeat("0123456789abcdef", 2<<20) // 32 MB
		d.write("1/gate-1.out", big)
		d.copy()
		d.sees("1", "gate-1.out", big)
		d.must(outputs.Remove(d.shared, "run1"))
		if names := d.objects.names(); len(names) != 0 {
			d.Errorf("these stay: %q", names)
		}
		d.misses("1", "agent.out")
	})
}

// What was printed while the bucket was away is there when it is back, and what another
// machine had stays readable.
func TestBucketAway(t *testing.T) {
	inBubble(newBucketDesk(t), func(d *desk) {
		d.write("1/agent.out", "one ")
		d.copy()
		d.sees("1", "agent.out", "one ")
		d.objects.goes(true)
		d.write("1/agent.out", "one two ")
		if err := d.copier.Copy(false); !errors.Is(err, errAway) {
			d.Errorf("the error is %v", err)
		}
		d.sees("1", "agent.out", "one ")
		if _, err := outputs.Open(d.given, d.elsewhere, "run1", "2"); !errors.Is(err, errAway) {
			d.Errorf("the error of an iteration that was not looked at is %v", err)
		}
		d.objects.goes(false)
		d.write("1/agent.out", "one two three")
		d.copy()
		d.sees("1", "agent.out", "one two three")
		if _, err := outputs.Open(d.given, d.elsewhere, "run1", "2"); !errors.Is(err, fs.ErrNotExist) {
			d.Errorf("the error of an iteration that has not begun is %v", err)
		}
		d.write("2/agent.out", "again")
		d.copy()
		d.sees("2", "agent.out", "again")
	})
}

// Nobody pulls what nobody looks at, and nothing of it stays.
func TestLookEnds(t *testing.T) {
	inBubble(newBucketDesk(t), func(d *desk) {
		d.write("1/agent.out", "one")
		d.copy()
		root, err := outputs.Open(d.given, d.elsewhere, "run1", "1")
		d.must(err)
		defer func() { _ = root.Close() }()
		for range 5 {
			d.pass(40 * time.Second)
			outputs.Look(d.elsewhere, "run1", "1")
		}
		d.write("1/agent.out", "one two")
		d.copy()
		d.pass(time.Second)
		if text, err := root.ReadFile("agent.out"); err != nil || string(text) != "one two" {
			d.Errorf("who still looks sees %q (%v)", text, err)
		}
		d.pass(2 * time.Minute)
		if left, _ := filepath.Glob(os.Getenv("TMPDIR") + "/pawl-outputs-*/run1/*"); len(left) != 0 {
			d.Errorf("these stay: %q", left)
		}
		d.sees("1", "agent.out", "one two")
		d.must(d.elsewhere.Close())
		if left, _ := filepath.Glob(os.Getenv("TMPDIR") + "/*"); len(left) != 0 {
			d.Errorf("these stay after the end: %q", left)
		}
	})
}

// A bucket that does not answer keeps nobody from ending.
func TestSilentBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := outputs.InBucket(silent{}, "board")
		outputs.Look(b, "run1", "1")
		synctest.Wait()
		began := time.Now()
		if err := b.Close(); err != nil || time.Since(began) != 0 {
			t.Errorf("it was closed after %s (%v)", time.Since(began), err)
		}
	})
}

// Whoever may write into the bucket cannot have another machine write elsewhere, nor
// fill its disk, nor stop it.
func TestHostileBucket(t *testing.T) {
	inBubble(newBucketDesk(t), func(d *desk) {
		d.write("1/agent.out", "mine")
		d.copy()
		for _, name := range []string{
			"1/../../../../evil.out", "1//agent.out", "1/steps/../../../evil.out", "1/caches/evil.out", "1/key.pem", "1/agent.out/x",
			"1/steps/build.1", "1/.agent.out",
		} {
			d.must(d.objects.Write(d.Context(), "board/run1/"+name+"/EVIL-0", strings.NewReader("evil")))
		}
		for _, part := range []string{"EVIL", "EVIL--5", "EVIL-99999999999999999999", "-0", "EVIL-7"} {
			d.must(d.objects.Write(d.Context(), "board/run1/1/agent.err/"+part, strings.NewReader("evil")))
		}
		d.sees("1", "agent.out", "mine")
		err := filepath.WalkDir(os.Getenv("TMPDIR"), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.Contains(path, "evil") {
				d.Errorf("%s was written", path)
			}
			return err
		})
		d.must(err)
	})
}

// What is tried of a bucket is what pawl does with it.
func TestTry(t *testing.T) {
	o := &objects{all: map[string]object{}}
	if err := outputs.Try(t.Context(), o); err != nil || len(o.all) != 0 {
		t.Errorf("a good one: %v, %d objects stay", err, len(o.all))
	}
	o.goes(true)
	if err := outputs.Try(t.Context(), o); !errors.Is(err, errAway) {
		t.Errorf("one that is away: %v", err)
	}
}
