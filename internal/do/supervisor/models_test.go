package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// playModels is a gateway that was asked once when it opens, and says by what
// model it was asked with which key.
func playModels(p ModelPlan, emit func(agent.Event), end func(loop.Ended, string)) (ModelServer, error) {
	return playedModels{p, emit, end}, nil
}

type playedModels struct {
	plan ModelPlan
	emit func(agent.Event)
	end  func(loop.Ended, string)
}

func (m playedModels) Serve(ctx context.Context, l net.Listener) error {
	defer func() { _ = l.Close() }()
	m.emit(agent.Event{Kind: agent.UsageSeen, Calls: 1, Usage: agent.Usage{Input: 7}, Cost: 5})
	m.emit(agent.Event{Kind: agent.Text, Text: "key " + m.plan.Routes[0].Key})
	if next := m.plan.Routes[0].Next; next != nil {
		m.emit(agent.Event{Kind: agent.Text, Text: "next " + next.Base + " " + next.Key})
	}
	m.emit(agent.Event{Kind: agent.Text, Text: fmt.Sprint("plan ", m.plan.CA, " ", m.plan.DayDir, " ", *m.plan.Day.Cost)})
	if m.plan.Calls == 1 {
		m.end(loop.EndedCalls, "one is enough")
	}
	<-ctx.Done()
	return nil
}

func (m playedModels) Flaw() *failure.APIError { return &failure.APIError{Type: "refused_by_model"} }

func (m playedModels) Totals() (map[string]agent.ModelUse, loop.MicroUSD, bool) {
	return map[string]agent.ModelUse{"m": {Usage: agent.Usage{Input: 7}}}, 5, true
}

func withModels(job Job) Job {
	job.Parser = "json"
	perDay := loop.MicroUSD(2_000_000)
	job.Gateway = &agent.Gateway{CA: "/ca.pem", DayDir: "/limits", Day: loop.DayLimits{Cost: &perDay}, Routes: []agent.Route{{Name: "anthropic", Base: "http://127.0.0.1:9", Key: "the-key",
		Next: &agent.Route{Base: "http://127.0.0.1:8", Key: "the-next-key"}}}}
	job.Env = append(job.Env, "URL="+agent.GatewayAddress+"/anthropic", "KEY="+agent.GatewayToken)
	return job
}

// The agent gets an address and a token; the key gets to the gateway, and to no
// file. What the program says of its use does not count twice, and an answer
// that is none makes the attempt a failure.
func TestModelsOfAJob(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	job := withModels(r.job("1", `echo "$URL $KEY"
		echo '{"kind":"usage","calls":9,"usage":{"input":100}}'
		echo '{"kind":"end","terminal":"ok","calls":3}'`))
	var said []string
	got := must(t)(c.Run(context.Background(), job, func(e agent.Event) { said = append(said, e.Text) }))
	all := strings.Join(said, "\n")
	if !strings.Contains(got.Stdout.Head, "http://127.0.0.1:") || !strings.Contains(got.Stdout.Head, "/anthropic sk-pawl-") {
		t.Errorf("the agent sees %q", got.Stdout.Head)
	}
	if !strings.Contains(all, "key the-key") {
		t.Errorf("the gateway has no key: %q", said)
	}
	if !strings.Contains(all, "next http://127.0.0.1:8 the-next-key") {
		t.Errorf("the gateway has no other endpoint: %q", said)
	}
	if !strings.Contains(all, "plan /ca.pem /limits $2.00") {
		t.Errorf("the gateway has another plan: %q", said)
	}
	out := got.Agent
	if out.Usage.Input != 7 || out.Calls != 1 || out.Cost != 5 || out.CostSource != agent.CostMetered || out.Models["m"].Input != 7 {
		t.Errorf("outcome is %+v", out)
	}
	if out.Terminal != loop.TerminalFailed || len(out.Errors) != 1 || out.Errors[0].Type != "refused_by_model" || got.Exit.Terminal != loop.TerminalFailed {
		t.Errorf("outcome is %+v, exit %+v", out, got.Exit)
	}
}

// What goes by in the gateway is life: a model that answers for long, to a program that
// prints nothing, is not idle.
func TestCallsAreLife(t *testing.T) {
	t.Parallel()
	var plan ModelPlan
	job := withModels(newRun(t).job("1", "true"))
	work := &task{job: job, rest: func() (Rest, error) {
		return Rest{Models: func(p ModelPlan, emit func(agent.Event), end func(loop.Ended, string)) (ModelServer, error) {
			plan = p
			return playModels(p, emit, end)
		}}, nil
	}}
	m := newMeter(job, nil, func([]json.RawMessage) {}, func(loop.Ended, string) {})
	models, err := work.openModels(m)
	if err != nil {
		t.Fatal(err)
	}
	defer models.closeServer()
	if plan.Alive(); time.Since(work.lastOutput()) > time.Minute {
		t.Errorf("the last sign of life is of %v", work.lastOutput())
	}
}

// What the provider said of its last answer counts, whatever a program says of
// itself: nothing, or a story of its own.
func TestFlawIsTheCause(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{
		"nothing":       "true",
		"its own story": `echo '{"kind":"end","terminal":"failed","error":{"type":"other","message":"exit 1"}}'; exit 1`,
	} {
		r := newRun(t)
		c := r.start()
		got := must(t)(c.Run(context.Background(), withModels(r.job("1", end)), nil))
		errs := got.Agent.Errors
		if got.Exit.Terminal != loop.TerminalFailed || len(errs) == 0 || errs[len(errs)-1].Type != "refused_by_model" {
			t.Errorf("%s: exit %+v, errors %+v", name, got.Exit, errs)
		}
	}
}

// What the gateway counted is known when the supervisor, and the gateway with it,
// was killed half-way: it was paid for.
func TestKilledGatewayIsCounted(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	job := withModels(r.job("1", "true"))
	c := r.start()
	self := c.currentSession().status.Supervisor
	job.Args = []string{"sh", "-c", `echo '{"kind":"text","text":"up"}'; read x <"` + r.fifo("never") + `"`}
	heard := 0
	got := must(t)(c.Run(context.Background(), job, func(e agent.Event) {
		if e.Text == "up" || strings.HasPrefix(e.Text, "plan ") { // the last of both
			if heard++; heard == 2 {
				kill9(t, self)
			}
		}
	}))
	out := got.Agent
	if got.Exit.Ended != loop.EndedLost || out.Calls != 1 || out.Usage.Input != 7 || out.Cost != 5 || out.CostSource == agent.CostNone {
		t.Errorf("exit %+v, outcome %+v", got.Exit, out)
	}
}

// The gateway ends the attempt.
func TestModelsEndAJob(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	job := withModels(r.job("1", "sleep 600"))
	job.Limits.Calls = 1
	got := must(t)(c.Run(context.Background(), job, nil))
	if got.Exit.Ended != loop.EndedCalls || got.Exit.Why != "one is enough" {
		t.Errorf("exit is %+v", got.Exit)
	}
}
