package supervisor

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/loop"
)

// Models makes what serves an attempt's model calls: it takes routes with their
// keys, tells emit what happens, and asks for the end of the attempt by end.
type Models func(plan ModelPlan, emit func(agent.Event), end func(loop.Ended, string)) (ModelServer, error)

// ModelPlan is what the model calls of one attempt may be.
type ModelPlan struct {
	agent.Gateway
	Token  string
	Cost   loop.MicroUSD
	Tokens int64
	Calls  int
	Prices agent.Prices
}

// ModelServer serves the model calls of one attempt.
type ModelServer interface {
	// Serve serves what comes to l, its own, until ctx is done.
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
		Cost: t.job.Limits.Cost, Tokens: t.job.Limits.Tokens, Calls: t.job.Limits.Calls}
	server, err := rest.Models(plan, m.modelCall, t.endFor)
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

// fill puts address and token into a command line or an environment.
func (x *models) fill(texts []string) []string {
	if x == nil {
		return texts
	}
	out := slices.Clone(texts)
	for i, text := range out {
		out[i] = x.put.Replace(text)
	}
	return out
}

// settle writes the files that point the job's program. The agent may have put
// links into their folder.
func (x *models) settle(job Job) error {
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

// close ends what is open, and waits for it.
func (x *models) close() {
	if x != nil {
		x.stop()
		x.work.Wait()
	}
}

// complete puts what the gateway knows into a result: it was there when the
// program's own report was made.
func (x *models) complete(out *agent.Outcome) {
	if x == nil {
		return
	}
	var known bool
	out.Models, out.Cost, known = x.server.Totals()
	out.CostSource = agent.CostMetered
	if !known {
		out.CostSource = agent.CostNone // of a part: it counts for the limits
	}
	if flaw := x.server.Flaw(); flaw != nil { // whatever the program made of it
		out.Terminal = loop.TerminalFailed
		out.Errors = append(out.Errors, *flaw)
	}
}
