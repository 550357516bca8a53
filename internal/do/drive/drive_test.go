package drive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// counter is a home whose kernel does the steps of its script and writes down
// what happens.
type counter struct {
	script []Command[string]
	at     int
	asked  []string // by others, one for each look
	stop   bool
	fails  error
	log    []string
}

func (c *counter) Command() (Command[string], bool) {
	if c.at >= len(c.script) {
		return Command[string]{}, false
	}
	now := c.script[c.at]
	now.Seq, now.Stop = c.at, c.stop
	return now, true
}

func (c *counter) Take(_ context.Context, e string) error {
	c.log = append(c.log, e)
	switch e {
	case "stop":
		c.stop = true
	case "noted":
	default:
		c.at++
	}
	return c.fails
}

func (c *counter) Look(context.Context) ([]string, error) {
	asked := c.asked
	c.asked = nil
	return asked, nil
}

// lasts is a command that takes so long, and says whether it was ended early.
func lasts(name string, d time.Duration) Command[string] {
	return Command[string]{Do: func(ctx context.Context) string {
		if Sleep(ctx, time.Now().Add(d)) {
			return name + " done"
		}
		return name + " cut"
	}}
}

func TestRun(t *testing.T) {
	for _, test := range []struct {
		name   string
		script []Command[string]
		asked  []string
		want   []string
	}{
		{"commands follow each other", []Command[string]{lasts("a", time.Minute), lasts("b", 0)}, nil, []string{"a done", "b done"}},
		{"what is noted leaves the command alone", []Command[string]{lasts("a", time.Minute)}, []string{"noted"}, []string{"noted", "a done"}},
		{"a stop ends the command, and its event counts", []Command[string]{lasts("a", time.Minute)}, []string{"stop"}, []string{"stop", "a cut"}},
		{"an event that leads on drops the command's own", []Command[string]{lasts("a", time.Minute), lasts("b", 0)}, []string{"on"}, []string{"on", "b done"}},
		{
			"each event is taken under the command that it leads to",
			[]Command[string]{lasts("a", time.Minute), {Alone: true, Do: func(context.Context) string { return "alone" }}, lasts("b", time.Minute)},
			[]string{"on", "noted"}, []string{"on", "alone", "noted", "b done"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				home := &counter{script: test.script, asked: test.asked}
				if err := Run(t.Context(), home, Sources[string]{Every: time.Second}); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(home.log, test.want) {
					t.Errorf("taken %q, want %q", home.log, test.want)
				}
			})
		})
	}
}

// What was asked before a command ended counts before its end, also when nobody
// has looked since.
// watcher notes when it looked.
type watcher struct {
	counter
	begun time.Time
	looks []time.Duration
}

func (w *watcher) Look(context.Context) ([]string, error) {
	w.looks = append(w.looks, time.Since(w.begun))
	return nil, nil
}

// Where nothing happens it is looked less often, until something does.
func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const every, idle = 100 * time.Millisecond, time.Second
		w := &watcher{counter: counter{script: []Command[string]{lasts("first", 10*time.Second)}}, begun: time.Now()}
		events, wake := make(chan string), make(chan struct{})
		go func() {
			<-time.After(4500 * time.Millisecond)
			wake <- struct{}{}
			<-time.After(time.Second)
			events <- "noted"
		}()
		if err := Run(t.Context(), w, Sources[string]{Every: every, Idle: idle, Events: events, Wake: wake}); err != nil {
			t.Fatal(err)
		}
		var want []time.Duration
		for at := every; at <= 2*time.Second; at += every {
			want = append(want, at)
		}
		want = append(want, 3*time.Second, 4*time.Second, 4500*time.Millisecond, 5*time.Second)
		for at := 5600 * time.Millisecond; at <= 7500*time.Millisecond; at += every {
			want = append(want, at)
		}
		want = append(want, 8500*time.Millisecond, 9500*time.Millisecond, 10*time.Second)
		if !slices.Equal(w.looks, want) {
			t.Errorf("looked at %v,\nwant %v", w.looks, want)
		}
	})
}

func TestAskedBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := &counter{}
		home.script = []Command[string]{{Do: func(context.Context) string {
			home.asked = []string{"noted"}
			return "done"
		}}}
		if err := Run(t.Context(), home, Sources[string]{Every: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(home.log); got != "[noted done]" {
			t.Errorf("taken %s", got)
		}
	})
}

// A home that fails ends the drive, after the command in progress has ended.
func TestAHomeThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, ended := errors.New("disk full"), false
		home := &counter{asked: []string{"noted"}, fails: full, script: []Command[string]{{Do: func(ctx context.Context) string {
			<-ctx.Done()
			ended = true
			return ""
		}}}}
		if err := Run(t.Context(), home, Sources[string]{Every: time.Second}); !errors.Is(err, full) || !ended {
			t.Errorf("%v, and the command ended: %t", err, ended)
		}
	})
}

// A done context is for the home to say what follows from it.
func TestADoneContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		home := &counter{script: []Command[string]{lasts("a", time.Minute)}}
		time.AfterFunc(time.Second, cancel)
		if err := Run(ctx, home, Sources[string]{Every: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(home.log); got != "[a cut]" {
			t.Errorf("taken %s", got)
		}
	})
}
