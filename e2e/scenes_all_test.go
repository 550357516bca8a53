//go:build e2e && e2e_all

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// TestScenes plays each program through the gateway in each scene, and prints what the
// model's server saw beside what pawl says. The table of docs/agents.md is from it. What was
// asked and answered in a scene that fails is kept in the folder PAWL_SCENES.
func TestScenes(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]counted{}
	t.Run("each", func(t *testing.T) {
		for _, p := range metered {
			for _, s := range scenes {
				t.Run(p.name+"/"+s.name, func(t *testing.T) {
					t.Parallel()
					c := s.play(t, p.withKey())
					mu.Lock()
					defer mu.Unlock()
					seen[p.name+"/"+s.name] = c
				})
			}
		}
	})
	var table strings.Builder
	for _, p := range metered {
		for _, s := range scenes {
			c, played := seen[p.name+"/"+s.name]
			if !played {
				continue
			}
			fmt.Fprintf(&table, "| %-8s | %-22s | %4d | %4d | %7d | %7d | %9.6f | %9s | %s |\n",
				p.name, s.name, c.calls, c.saidCalls, c.tokens, c.saidTokens, c.cost, c.saidCost, c.came)
		}
	}
	t.Log("\n| program | scene | calls: server | pawl | tokens: server | pawl | cost: server | pawl | came to |\n" + table.String())
}

// counted is what the server saw of a run, and what pawl says of it.
type counted struct {
	calls, saidCalls   int
	tokens, saidTokens int64
	cost               float64
	saidCost, came     string
}

// sceneOf is a way in which a provider behaves, and what has to come of it.
type sceneOf struct {
	name     string
	settings string
	flags    []string
	replies  func(u *user, v voice) []modelserver.Reply
	status   string   // of the run; "" is any
	class    []string // of the first failure, any of them; nil is none
	ended    string   // of the first iteration
	most     int      // calls, asides apart; 0 is any number
	about    int64    // an answer breaks off: pawl may say that many tokens in a hundred more; 0 is none
	inexact  bool     // an answer is cut: what it used is an estimate
}

// voice is how a provider says that something is wrong, in its protocol.
type voice struct {
	program         // its replies
	refusal, length string
}

func voiceOf(path string) voice {
	switch {
	case strings.Contains(path, "enerateContent"):
		return voice{geminiProgram, "SAFETY", "MAX_TOKENS"}
	case strings.HasSuffix(path, "/messages"):
		return voice{claudeProgram, "refusal", "max_tokens"}
	case strings.HasSuffix(path, "/responses"):
		return voice{codexProgram, "content_filter", "max_output_tokens"}
	}
	return voice{codexProgram, "content_filter", "length"}
}

// always is a provider that says one thing.
func always(reply func(v voice) modelserver.Reply) func(*user, voice) []modelserver.Reply {
	return func(_ *user, v voice) []modelserver.Reply { return []modelserver.Reply{reply(v)} }
}

// then is a provider that works after the replies.
func then(replies func(v voice) []modelserver.Reply) func(*user, voice) []modelserver.Reply {
	return func(u *user, v voice) []modelserver.Reply { return append(replies(v), u.writes("done.txt")...) }
}

// spends is a model that takes one turn after another.
func spends(u *user, _ voice) []modelserver.Reply {
	return []modelserver.Reply{{Text: "Once more.", Tools: []modelserver.Tool{u.agent.shell("date >> log.txt")}, Usage: expensive}}
}

var scenes = []sceneOf{
	{name: "work", status: "completed", replies: then(func(voice) []modelserver.Reply { return nil })},
	{name: "red, then green", status: "completed", class: []string{"unknown", "validation"},
		replies: func(u *user, _ voice) []modelserver.Reply {
			return append(u.writes("wrong.txt"), u.writes("done.txt")...)
		}},
	{name: "rate limit", status: "completed", replies: then(func(v voice) []modelserver.Reply { return []modelserver.Reply{v.limited} })},
	{name: "overloaded", status: "completed",
		replies: then(func(v voice) []modelserver.Reply { return []modelserver.Reply{v.overloaded, v.overloaded} })},
	{name: "broken stream", status: "completed", class: []string{"", "network"}, about: 5,
		replies: func(u *user, _ voice) []modelserver.Reply {
			begins := modelserver.Reply{Text: "I begin.", Tools: []modelserver.Tool{u.agent.shell("true")}}
			work := u.writes("done.txt")
			next := work[0]
			if _, err := os.Stat(u.repo + "/done.txt"); err == nil { // cline may lose an answer after one that broke
				next = work[1]
			}
			return []modelserver.Reply{begins, {Text: "this stream breaks", Cut: 1}, next}
		}},
	{name: "bad key", class: []string{"auth"}, most: 2, replies: always(func(v voice) modelserver.Reply { return v.badKey })},
	{name: "quota of hours", class: limits, most: 4, settings: "loop: {max_wait: 10m, max_waits: 1}",
		replies: always(func(v voice) modelserver.Reply { return v.quota })},
	{name: "prompt too long", class: []string{"context_length", "no_progress"}, flags: []string{"-n", "1"},
		replies: always(func(v voice) modelserver.Reply { return v.tooLong })},
	{name: "page of a proxy", class: []string{"network", "service_unavailable"}, settings: "loop: {iteration_timeout: 100s, max_waits: 0}",
		inexact: true, replies: always(func(voice) modelserver.Reply { return page })},
	{name: "refusal", class: []string{"refused_by_model"}, flags: []string{"-n", "1"},
		replies: always(func(v voice) modelserver.Reply { return modelserver.Reply{Text: "I can not.", StopReason: v.refusal} })},
	{name: "cut at its length", class: []string{"output_limit"}, flags: []string{"-n", "1"},
		replies: always(func(v voice) modelserver.Reply { return modelserver.Reply{Text: "This is lo", StopReason: v.length} })},
	{name: "empty answer", class: []string{"empty_answer"}, flags: []string{"-n", "1"},
		replies: always(func(voice) modelserver.Reply { return modelserver.Reply{} })},
	{name: "limit of money", ended: "cost", inexact: true, flags: []string{"-n", "1", "--max-cost", "0.1"}, class: []string{"limit_exceeded"}, replies: spends},
	{name: "limit of calls", ended: "calls", flags: []string{"-n", "1"}, class: []string{"limit_exceeded"},
		settings: "safety: {limits: {normal: {max_api_calls_per_iteration: 3}}}", replies: spends},
}

func (s sceneOf) play(t *testing.T, p program) (c counted) {
	t.Helper()
	var u *user
	var mu sync.Mutex
	used := map[string]agent.Usage{} // by model
	server := serve(t, modelserver.Scenario{Asides: true, Decide: func(r modelserver.Request) modelserver.Reply {
		list := s.replies(u, voiceOf(r.Path))
		reply := list[min(r.Call, len(list))-1]
		if reply.Status == 0 && reply.Body == "" {
			mu.Lock()
			defer mu.Unlock()
			used[modelOf(r)] = used[modelOf(r)].Plus(usageOf(reply))
		}
		return reply
	}})
	u = newUser(t, p, server, s.settings)
	r, got := u.run(nil, s.flags...)
	asides := 0
	for _, r := range server.Requests() {
		if r.Aside {
			asides++
			used[modelOf(r)] = used[modelOf(r)].Plus(usageOf(modelserver.Reply{}))
		}
	}
	c = counted{
		calls:      len(server.Calls()) + asides,
		saidTokens: got.TokensIn + got.TokensOut, saidCost: "unknown", came: got.Status,
	}
	for model, n := range used {
		cost, _ := agent.ListPrices().Cost(model, n)
		c.tokens, c.cost = c.tokens+n.Input+n.Output, c.cost+float64(cost)/1e6
	}
	for _, i := range got.Iterations {
		c.saidCalls += i.Calls
	}
	if got.CostUSD != nil {
		c.saidCost = fmt.Sprintf("%.6f", *got.CostUSD)
	}
	class := ""
	if len(got.Iterations) > 0 {
		first := got.Iterations[0]
		if first.Failure != nil {
			class = first.Failure.Class
			c.came += ", " + class
		}
		if s.ended != "" && first.Ended != s.ended {
			t.Errorf("the iteration ended by %q", first.Ended)
		}
	}
	switch {
	case s.status != "" && got.Status != s.status:
		t.Errorf("the run is %s", got.Status)
	case s.class == nil && class != "", s.class != nil && !slices.Contains(s.class, class):
		t.Errorf("the failure is %q", class)
	case s.most > 0 && len(server.Calls()) > s.most:
		t.Errorf("%d calls were made", len(server.Calls()))
	case c.calls != c.saidCalls:
		t.Errorf("the server saw %d calls, pawl says %d", c.calls, c.saidCalls)
	case s.inexact:
	case s.about > 0 && c.saidTokens >= c.tokens-10 && c.saidTokens <= c.tokens+c.tokens*s.about/100:
	case c.tokens != c.saidTokens || got.CostUSD == nil && c.tokens > 0 ||
		got.CostUSD != nil && math.Abs(*got.CostUSD-c.cost) > c.cost/100:
		t.Errorf("the server saw %d tokens for $%f, pawl says %d for %s", c.tokens, c.cost, c.saidTokens, c.saidCost)
	}
	if t.Failed() {
		t.Logf("exit %d, %+v\n%s", r.code, got, r.stderr)
		if len(got.Iterations) > 0 && got.Iterations[0].Failure != nil {
			t.Logf("failure %+v", got.Iterations[0].Failure)
		}
		if dir := os.Getenv("PAWL_SCENES"); dir != "" {
			name := dir + "/" + strings.ReplaceAll(t.Name(), "/", "-")
			keep(t, name, u.do(nil, "logs", got.Run, "-i", "1").stdout)
			for _, kv := range u.env {
				if state, ok := strings.CutPrefix(kv, "XDG_STATE_HOME="); ok {
					_ = os.CopyFS(name+"-state", os.DirFS(state))
				}
			}
			for i, r := range server.Requests() {
				keep(t, fmt.Sprintf("%s.%d", name, i), fmt.Sprintf("%s %s call %d aside %t tools %d\n%s", r.Method, r.Path, r.Call, r.Aside, len(r.Tools()), r.Body))
			}
		}
	}
	return c
}

// modelOf is the model that a request asks.
func modelOf(r modelserver.Request) string {
	if _, rest, ok := strings.Cut(r.Path, "/models/"); ok {
		model, _, _ := strings.Cut(rest, ":")
		return model
	}
	var body struct{ Model string }
	_ = json.Unmarshal(r.Body, &body)
	return body.Model
}

// usageOf is what the server says that a reply used.
func usageOf(r modelserver.Reply) agent.Usage {
	if r.Usage == (modelserver.Usage{}) {
		return agent.Usage{Input: 100, Output: 10}
	}
	return agent.Usage{Input: int64(r.Usage.Input), Output: int64(r.Usage.Output)}
}
