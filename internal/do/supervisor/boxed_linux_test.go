package supervisor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	peers "github.com/pawl-dev/pawl/internal/do/peer"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// What a box says is known as such, whichever mechanisms hold it, also when who says it
// has left its parents behind; and what is not in a box is not.
func TestWhoIsInABox(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	offer := sandbox.Probe(t.Context())
	alone := sandbox.Offer{System: offer.System, Means: sandbox.Means{Landlock: offer.Landlock, Seccomp: offer.Seccomp}}
	noPID := offer
	noPID.PID = false
	for _, way := range []struct {
		name, level string
		offer       sandbox.Offer
		boxed       bool
	}{
		{"permissive", sandbox.Permissive, offer, false},
		{"normal", sandbox.Normal, offer, true},
		{"paranoid", sandbox.Paranoid, offer, true},
		{"normal without a process namespace", sandbox.Normal, noPID, true},
		{"Landlock alone", sandbox.Normal, alone, true},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			v := sandbox.Judge(way.level, way.offer, false)
			if v.Boxed != way.boxed {
				t.Skip("this machine makes no such box: ", v.Refused, v.Enforced)
			}
			r := newRun(t)
			r.o.Unboxed = !way.boxed
			port := newListening(t)
			job := r.job("1", "")
			job.Args = []string{bash, "-c", fmt.Sprintf(`
ask() { exec 3<>/dev/tcp/127.0.0.1/%d && printf 'GET / HTTP/1.0\r\n\r\n' >&3 && tail -n 1 <&3; }
export -f ask
ask
(exec setsid %s -c '(ask >asked; : >done) & exit' &)
until [ -e done ]; do :; done; cat asked`, port, bash)}
			if way.boxed {
				place := sandbox.Place{Root: r.dir, State: r.o.RunDir, Temp: []string{"/tmp"}, Shown: []string{"/"}, UID: os.Getuid(), Spare: []int{os.Getpid()}}
				policy := place.Policy(way.level, v, sandbox.DefaultLimits(), nil, nil)
				policy.Doors = []int{port}
				job.Box = &policy
			}
			got := must(t)(r.start().Run(context.Background(), job, nil))
			if want := fmt.Sprintf("boxed=%v ours=true\n", way.boxed); got.Stdout.Head != want+want {
				t.Errorf("got %q, %q", got.Stdout.Head, got.Stderr.Head)
			}
		})
	}
	self, parent := os.Getpid(), os.Getppid()
	if Boxed(self) || !Ours(self) || Boxed(parent) || Ours(parent) || !Boxed(1<<30) || Ours(1<<30) {
		t.Error("this process, its parent or one that does not exist is taken for another")
	}
}

// newListening is a server that answers what is known of who asks, and its port.
func newListening(t *testing.T) (port int) {
	t.Helper()
	var boxed, ours bool
	check := peers.Check{Accepts: func(pid int) bool {
		boxed, ours = Boxed(pid), Ours(pid)
		return true
	}}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if check.Allows(r.Context()) {
			_, _ = fmt.Fprintf(w, "boxed=%v ours=%v\n", boxed, ours)
		}
	}))
	s.Config.ConnContext = check.WithConn
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}
