package supervisor

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/boxnet"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Rest is the part of pawl that is large, and that most supervisors never need.
type Rest struct {
	boxnet.Ways
	Models Models
}

// Models makes what serves an attempt's model calls: it takes routes with their
// keys, gives emit the events, and asks for the end of the attempt by end.
type Models func(plan ModelPlan, emit func(agent.Event), end func(loop.Ended, string)) (ModelServer, error)

// ModelPlan has the limits for the model calls of one attempt.
type ModelPlan struct {
	agent.Gateway
	Token  string
	From   func(pid int) bool // whether a process is the attempt's; nil is that any may be
	Cost   loop.MicroUSD
	Tokens int64
	Calls  int
	Priced bool
	Prices agent.Prices
	Closed bool   // the attempt reaches its models only
	Alive  func() // is called whenever something of a call goes by
}

// ModelServer serves the model calls of one attempt.
type ModelServer interface {
	// Serve serves connections to l, its own, until ctx is done.
	Serve(ctx context.Context, l net.Listener) error
	// Flaw is what was wrong with the last answer to a step of the work; nil is nothing.
	Flaw() *failure.APIError
	// Totals are what was used by model, and its cost if that is known.
	Totals() (models map[string]agent.ModelUse, cost loop.MicroUSD, known bool)
}

// models is the gateway of a job while it is open; nil is none.
type models struct {
	server ModelServer
	port   int
	put    *strings.Replacer // the address and the token in place of what stands for them
	stop   context.CancelFunc
	work   sync.WaitGroup
}

// openModels opens the gateway of a job that has one, on a port of this machine.
func (t *task) openModels(m *meter) (*models, error) {
	if t.job.Gateway == nil || m == nil {
		return nil, nil
	}
	rest, err := t.rest()
	if err != nil {
		return nil, err
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("cannot open the gateway to the agent's models: %v", err)
	}
	token := "sk-pawl-" + rand.Text()
	plan := ModelPlan{Gateway: *t.job.Gateway, Token: token, Prices: t.job.Prices,
		Cost: t.job.Limits.Cost, Tokens: t.job.Limits.Tokens, Calls: t.job.Limits.Calls, Priced: t.job.Limits.Priced,
		Alive: func() { t.seen.Store(time.Now().UnixNano()) }}
	if t.job.Box != nil {
		plan.Closed = t.job.Box.Closed
		plan.From = Ours // doors of the box are this process's own
	}
	server, err := rest.Models(plan, m.modelCall, t.endForReason)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	address := netip.MustParseAddrPort(l.Addr().String())
	x := &models{port: int(address.Port()), server: server, stop: stop,
		put: strings.NewReplacer(agent.GatewayAddress, "http://"+address.String(), agent.GatewayToken, token)}
	x.work.Go(func() {
		if err := server.Serve(ctx, l); err != nil {
			t.logf("%v", err)
		}
	})
	return x, nil
}

// withAddress puts address and token into a command line or an environment.
func (x *models) withAddress(texts []string) []string {
	if x == nil {
		return texts
	}
	out := slices.Clone(texts)
	for i, text := range out {
		out[i] = x.put.Replace(text)
	}
	return out
}

// writeSettings writes the files that point the job's program. The agent may have put
// links into their folder.
func (x *models) writeSettings(job Job) error {
	if x == nil {
		return nil
	}
	for _, f := range job.Settings {
		name, err := filepath.Rel(job.SettingsRoot, f.Path)
		if err == nil {
			err = files.ReplaceBelow(job.SettingsRoot, name, []byte(x.put.Replace(f.Content)), 0o600, false)
		}
		if err != nil {
			return fmt.Errorf("cannot write the agent's settings: %v", err)
		}
	}
	return nil
}

// closeServer ends what is open, and waits for it.
func (x *models) closeServer() {
	if x != nil {
		x.stop()
		x.work.Wait()
	}
}

// completeOutcome puts what the gateway knows into a result: it was there when the
// program's own report was made.
func (x *models) completeOutcome(out *agent.Outcome) {
	if x == nil {
		return
	}
	var known bool
	out.Models, out.Cost, known = x.server.Totals()
	switch out.CostSource = agent.CostMetered; {
	case !known && out.Cost > 0:
		out.CostSource = agent.CostPartial
	case !known:
		out.CostSource = agent.CostNone
	}
	if flaw := x.server.Flaw(); flaw != nil { // whatever the program made of it
		out.Terminal = loop.TerminalFailed
		out.Errors = append(out.Errors, *flaw)
	}
}

// box is the sandbox of a job; zero when it has none.
type box struct {
	entry *sandbox.Entry
	// network is in the supervisor, so that an agent whose pawl is gone reaches its
	// model as long as it may live.
	network *boxnet.Network
	work    sync.WaitGroup
}

// startInBox starts c, in the job's box if it has one, and returns when it runs.
func (t *task) startInBox(c process.Command) (*process.Child, error) {
	if t.job.Box == nil {
		return t.reaper.Start(c)
	}
	policy := *t.job.Box.TempIn(filepath.Join(t.runDir, "tmp"))
	t.limit(policy.Limits)
	policy.Spare = append(slices.Clone(policy.Spare), os.Getpid(), os.Getppid())
	if t.models != nil && policy.HasLoopback() {
		policy.Doors = append(slices.Clone(policy.Doors), t.models.port)
	}
	c, entry, err := sandbox.Prepare(c, policy)
	if err != nil {
		return nil, err
	}
	t.box.entry = entry
	child, err := t.reaper.Start(c)
	if err != nil {
		return nil, err
	}
	if err := entry.Wait(); err != nil {
		select {
		case <-child.Done():
		case <-time.After(helpersBound): // it hangs
			t.terminateTree(child, verdict{reason: loop.EndedStop})
		}
		return nil, err
	}
	t.box.work.Go(func() {
		entry.Outcome(func(status syscall.WaitStatus) { t.reaper.Report(child, status) })
	})
	if policy.HasLoopback() {
		ways := func() (boxnet.Ways, error) {
			rest, err := t.rest()
			return rest.Ways, err
		}
		t.box.network, err = boxnet.Open(entry, policy, boxnet.Options{Ways: ways, Logf: t.logf})
		if err != nil {
			t.terminateTree(child, verdict{reason: loop.EndedStop})
			return nil, &process.StartError{Code: -1, Message: "cannot start " + t.job.Args[0] + ": " + err.Error()}
		}
	}
	return child, nil
}

// limitGroup puts the supervisor, and so the boxes of all its jobs, under the
// limits of the first box. Jobs of one run have the same.
func (s *server) limitGroup(l sandbox.Limits) {
	s.limited.Do(func() {
		if held, leave := sandbox.LimitGroup(l); held {
			s.unlimit.Store(&leave)
		}
	})
}

// leaveBox gives up what the box took; the job and all that it started have ended.
func (t *task) leaveBox() {
	t.box.network.Close()
	if t.box.entry != nil {
		t.box.entry.Close()
		for _, over := range t.job.Box.TempIn(filepath.Join(t.runDir, "tmp")).Over {
			if err := writeBack(over); err != nil {
				t.logf("%s: %v", t.job.ID, err)
			}
		}
	}
	t.box.work.Wait()
}

// maxLogin bounds a file that is written back.
const maxLogin = 1 << 20

// webAddress is one that a login may name.
var webAddress = lazy.Regexp(`\w+://[^\s"'\\]+`)

// namesOtherAddress asks whether a login names an address that it did not name before.
func namesOtherAddress(old, made []byte) bool {
	known := webAddress().FindAllString(string(old), -1)
	return slices.ContainsFunc(webAddress().FindAllString(string(made), -1), func(address string) bool {
		return !slices.Contains(known, address)
	})
}

// writeBack puts logins that a program renewed, by other files of the name, where the
// person's are: an old one is worth nothing then. What is newer there stays.
func writeBack(o sandbox.Over) error {
	up := filepath.Join(o.Scratch, "up")
	for _, name := range o.Back {
		made, err := os.Lstat(filepath.Join(up, name))
		if err != nil || !made.Mode().IsRegular() {
			continue // it was not renewed
		}
		to := filepath.Join(o.To, name)
		if file, err := filepath.EvalSymlinks(to); err == nil {
			to = file
		}
		if there, err := os.Stat(to); err != nil || there.ModTime().Before(made.ModTime()) {
			data, err := files.ReadBelow(up, name, maxLogin)
			old, _ := os.ReadFile(to)
			if err == nil && namesOtherAddress(old, data) { // who is asked next would get the person's key
				err = fmt.Errorf("%s names another address than before", name)
			} else if err == nil {
				err = files.Replace(to, data, 0o600, false)
			}
			if err != nil {
				return fmt.Errorf("a renewed login is lost: %v", err)
			}
		}
		if err := files.RemoveBelow(up, name); err != nil { // the next box shows the person's
			return err
		}
	}
	return nil
}
