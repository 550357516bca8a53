package web

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

// desk is a [shared] whose answers are made when the test says so.
type desk struct {
	s       *shared
	version int64
	begun   []string
	goOn    chan struct{}

	mu   sync.Mutex
	said []string
}

func newDesk() *desk {
	d := &desk{goOn: make(chan struct{})}
	d.s = newShared(func(context.Context) (int64, error) { return d.version, nil })
	return d
}

func (d *desk) ask(ctx context.Context, key string) {
	go func() {
		text, err := d.s.get(ctx, key, func(ctx context.Context) ([]byte, error) {
			d.mu.Lock()
			d.begun = append(d.begun, key)
			n := len(d.begun)
			d.mu.Unlock()
			<-d.goOn
			return fmt.Appendf(nil, "%s made %d", key, n), ctx.Err()
		})
		d.mu.Lock()
		defer d.mu.Unlock()
		d.said = append(d.said, fmt.Sprint(string(text), err))
	}()
	synctest.Wait()
}

// Who asks for the same gets the same while it is made and nothing has changed;
// that who asked first leaves takes it from nobody.
func TestSharedAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		first, leave := context.WithCancel(t.Context())
		d.ask(first, "a")
		d.ask(t.Context(), "a")
		leave()
		d.version++
		d.ask(t.Context(), "a")
		if got := fmt.Sprint(d.begun); got != "[a a]" {
			t.Errorf("made are %s", got)
		}
		d.goOn <- struct{}{}
		d.goOn <- struct{}{}
		synctest.Wait()
		got := map[string]int{}
		for _, text := range d.said {
			got[text]++
		}
		if len(got) != 2 || got["a made 1<nil>"] != 2 || got["a made 2<nil>"] != 1 || len(d.s.open) != 0 {
			t.Errorf("said is %v, %d are open", got, len(d.s.open))
		}
		d.ask(t.Context(), "a")
		if len(d.begun) != 3 {
			t.Error("what was made is kept")
		}
		d.goOn <- struct{}{}
	})
}

// No more answers are made at once than there are makers.
func TestMakersOfAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		for n := range 3 * makers {
			d.ask(t.Context(), fmt.Sprint(n))
		}
		for n := range 3 * makers {
			if want := min(makers+n, 3*makers); len(d.begun) != want {
				t.Errorf("after %d answers %d were begun, want %d", n, len(d.begun), want)
			}
			d.goOn <- struct{}{}
			synctest.Wait()
		}
	})
}

// Nobody waits for an answer that cannot be made.
func TestUnmadeAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		var err error
		go func() {
			defer func() { _ = recover() }()
			_, _ = d.s.get(t.Context(), "a", func(context.Context) ([]byte, error) { <-d.goOn; panic("broken") })
		}()
		synctest.Wait()
		go func() {
			_, err = d.s.get(t.Context(), "a", func(context.Context) ([]byte, error) { return nil, nil })
		}()
		synctest.Wait()
		d.goOn <- struct{}{}
		synctest.Wait()
		if !errors.Is(err, errUnmade) || len(d.s.open) != 0 || len(d.s.turn) != 0 {
			t.Errorf("%v; %d are open, %d made", err, len(d.s.open), len(d.s.turn))
		}
	})
}
