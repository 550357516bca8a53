package engine

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

func TestALivingRunIsNotTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, held)
	w.fifo("go")
	p := w.start()
	p.await("agent text up")
	w.resume().await("error cannot take run " + w.run() + ": build is already running")
	w.o.Resume = ""
	second := w.start()
	second.await("error cannot create run")
	w.open("go")
	p.await("end completed")
	w.holds(loop.Completed, "1.1 success", "2.1 success")
}

func TestOfTwoAtOnceOneWins(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"start", "resume"} {
		w := newWorld(t, held)
		w.fifo("go")
		if what == "resume" {
			p := w.start()
			p.await("agent text up")
			p.kill()
			w.o.Resume = w.run()
		}
		both := []*pawl{w.start(), w.start()}
		refused := make(chan bool, 2)
		for _, p := range both {
			go func() {
				for p.lines.Scan() {
					line := p.lines.Text()
					if id, ok := strings.CutPrefix(line, string(RunStarted)+" "); ok {
						w.know(id)
					}
					if strings.HasPrefix(line, "error") {
						refused <- strings.Contains(line, "already running")
						return
					}
					if strings.HasPrefix(line, "end completed") {
						refused <- false
						return
					}
				}
				refused <- false
			}()
		}
		if !<-refused {
			t.Errorf("%s: the first to end was not refused", what)
		}
		w.open("go")
		if <-refused {
			t.Errorf("%s: both were refused", what)
		}
		w.holds(loop.Completed, "1.1 success", "2.1 success")
		if w.starts() != 2 {
			t.Errorf("%s: %d starts", what, w.starts())
		}
	}
}
