package simulate

import (
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

// tuned are the causes that the strategies' priorities and priors were set with.
var tuned = []cause{
	{"slow service", func(_ *project, r *rng) obstacle { return &slow{need: r.between(70, 190)} }},
	{"rate limit", func(_ *project, r *rng) obstacle {
		return &limited{until: r.seconds(30, 1200), named: r.chance(50),
			message: "429 rate limit exceeded, try again later", class: failure.RateLimit}
	}},
	{"exhausted pool", func(_ *project, r *rng) obstacle {
		return &crowded{percent: r.between(60, 95), message: "ENOMEM: cannot allocate memory",
			class: failure.ResourceExhausted}
	}},
	{"flaky test", func(_ *project, r *rng) obstacle { return &flaky{percent: r.between(20, 50)} }},
	{"wrong approach", func(_ *project, r *rng) obstacle {
		return &wrong{plain: 12, diagnosed: 25, rewound: r.between(65, 85), strong: 40, strays: 1}
	}},
	{"provider down", func(p *project, r *rng) obstacle {
		return &limited{until: r.seconds(40_000, 80_000), message: "503 Service Unavailable",
			class: failure.ServiceUnavailable, elsewhere: p.fallbacks}
	}},
	{"permanent error", func(*project, *rng) obstacle {
		return &permanent{message: "401 Unauthorized: invalid API key", class: failure.Auth}
	}},
	{"network, then tests, then time", func(_ *project, r *rng) obstacle {
		return chain{&outage{until: r.seconds(20, 90), message: "connect ECONNREFUSED 10.0.0.7:5432", class: failure.Network},
			&flaky{percent: 30}, &slow{need: r.between(90, 170)}}
	}},
	{"a gate's registry is down", func(_ *project, r *rng) obstacle {
		return &outage{until: r.seconds(100, 260), message: "npm ERR! 503 Service Unavailable - GET https://registry.example/left", class: failure.ServiceUnavailable, gate: true}
	}},
}

// heldOut are causes that nothing was tuned with.
var heldOut = []cause{
	{"hard bug", func(_ *project, r *rng) obstacle {
		return &wrong{plain: 8, diagnosed: 20, rewound: 15, strong: r.between(70, 90), flat: true}
	}},
	{"misread failure", func(_ *project, r *rng) obstacle {
		return &wrong{plain: 10, diagnosed: r.between(65, 90), rewound: 20, strong: 60, flat: true}
	}},
	{"two wrong approaches", func(_ *project, r *rng) obstacle {
		return &wrong{plain: 8, diagnosed: 20, rewound: r.between(60, 80), strong: 30, strays: 2}
	}},
	{"quota without a reset", func(p *project, _ *rng) obstacle {
		return &spent{fallbacks: p.fallbacks}
	}},
	{"slow gate", func(_ *project, r *rng) obstacle { return &slow{need: r.between(70, 180), gate: true} }},
	{"ports in use", func(_ *project, r *rng) obstacle {
		return &crowded{percent: r.between(50, 90), message: "listen tcp :8080: bind: address already in use",
			class: failure.PortConflict}
	}},
	{"dropped connections", func(_ *project, r *rng) obstacle { return &dropped{percent: r.between(30, 60)} }},
	{"busy machine", func(_ *project, r *rng) obstacle {
		return &crowded{percent: r.between(60, 90), message: "Error: timeout of 300000ms exceeded", class: failure.Timeout}
	}},
	{"rate limit, then a wrong approach", func(_ *project, r *rng) obstacle {
		return chain{&limited{until: r.seconds(30, 600), message: "429 rate limit exceeded, try again later",
			class: failure.RateLimit},
			&wrong{plain: 12, diagnosed: 25, rewound: r.between(60, 80), strong: 40}}
	}},
	{"missing command", func(*project, *rng) obstacle {
		return &permanent{message: "sh: 1: protoc: not found", class: failure.MissingCommand}
	}},
}

// curable obstacles are never hopeless.
type curable struct{}

func (curable) hopeless() bool { return false }

// chain is in the way one after the other; what is behind one is behind it for good.
type chain []obstacle

func (c chain) meet(t *try, r *rng) *trouble {
	for _, o := range c {
		if tr := o.meet(t, r); tr != nil {
			tr.from = o
			return tr
		}
	}
	return nil
}

func (c chain) hopeless() bool { return false }

// slow needs a share, in per cent, of the time that the default allows.
type slow struct {
	curable
	need int
	gate bool
}

func (o *slow) meet(t *try, r *rng) *trouble {
	need := baseLimit * time.Duration(o.need+r.between(-8, 8)) / 100
	has := t.limit
	if o.gate {
		has = baseLimit
		if t.longer {
			has *= 2
		}
	}
	if need <= has {
		return nil
	}
	return &trouble{message: "Error: timeout of 300000ms exceeded", class: failure.Timeout,
		kind: failure.Transient, gate: o.gate, score: scoreOf(o.gate, 0), took: has, cost: 100}
}

func scoreOf(gate bool, score int) int {
	if gate {
		return score
	}
	return -1
}

// limited is a provider's limit or outage until a time. The fallback agents
// are with other providers; elsewhere is how many there are for an obstacle
// that nothing else cures.
type limited struct {
	until     time.Duration
	named     bool
	message   string
	class     failure.Class
	elsewhere int
}

func (o *limited) meet(t *try, _ *rng) *trouble {
	if t.agent > 0 || t.at >= o.until {
		return nil
	}
	tr := &trouble{message: o.message, class: o.class, kind: failure.Transient, provider: true, score: -1,
		took: 5 * time.Second, cost: 5}
	if o.named {
		tr.wait = o.until - t.at
	}
	return tr
}

func (o *limited) hopeless() bool { return o.class == failure.ServiceUnavailable && o.elsewhere == 0 }

// crowded fails when several things run at once.
type crowded struct {
	curable
	percent int
	message string
	class   failure.Class
}

func (o *crowded) meet(t *try, r *rng) *trouble {
	percent := 5
	if t.parallel {
		percent = o.percent
	}
	if !r.chance(percent) {
		return nil
	}
	return &trouble{message: o.message, class: o.class, kind: failure.Transient, score: -1, took: r.seconds(20,
		90), cost: 70}
}

// flaky is a test that fails by chance, whatever is done.
type flaky struct {
	curable
	percent int
}

func (o *flaky) meet(_ *try, r *rng) *trouble {
	if !r.chance(o.percent) {
		return nil
	}
	return &trouble{message: tests[r.between(0, len(tests)-1)], class: failure.TestFailure, kind: failure.Work,
		gate: true, score: 950, cost: 100}
}

var tests = []string{
	"--- FAIL: TestParse (0.01s)\n    parse_test.go:10: got 1, want 2\nFAIL",
	"--- FAIL: TestLex (0.01s)\n    lex_test.go:12: got a, want b\nFAIL",
	"--- FAIL: TestSave (0.01s)\n    save_test.go:14: got no file, want one\nFAIL",
	"--- FAIL: TestLoad (0.01s)\n    load_test.go:16: got 0, want 9\nFAIL",
}

// dropped is a network that loses connections by chance.
type dropped struct {
	curable
	percent int
}

func (o *dropped) meet(_ *try, r *rng) *trouble {
	if !r.chance(o.percent) {
		return nil
	}
	return &trouble{message: "connect ECONNREFUSED 10.0.0.9:443", class: failure.Network, kind: failure.Transient,
		score: -1, took: r.seconds(20, 60), cost: 50}
}

// wrong is work that is done wrongly: each way to go on has its chance, in per
// cent, to put it right. On a stray way every iteration makes it worse.
type wrong struct {
	curable
	plain, diagnosed, rewound, strong int
	flat                              bool // it does not get worse
	strays                            int  // ways to be put right, one after the other
	score                             int
	right                             bool
}

func (o *wrong) meet(t *try, r *rng) *trouble {
	if o.right {
		return nil
	}
	percent := o.plain
	switch {
	case o.score == 0: // the first iteration
		percent = 5
	case t.rewind:
		percent = o.rewound
	case t.agent < 0:
		percent = o.strong
	case t.diagnose:
		percent = o.diagnosed
	}
	if r.chance(percent) {
		o.strays--
		o.right = o.strays <= 0
		o.score = 0
		if o.right {
			return nil
		}
	}
	switch {
	case o.score == 0:
		o.score = r.between(600, 800)
	case t.rewind: // another way, as good as the best at first
	case !o.flat:
		o.score = max(o.score-r.between(40, 160), 100)
	}
	return &trouble{message: tests[0], class: failure.TestFailure, kind: failure.Work, gate: true, score: o.score,
		cost: 100}
}

// outage is a service, not a model provider, that is away for a while.
type outage struct {
	curable
	until   time.Duration
	message string
	class   failure.Class
	gate    bool
}

func (o *outage) meet(t *try, r *rng) *trouble {
	if t.at >= o.until {
		return nil
	}
	return &trouble{message: o.message, class: o.class, kind: failure.Transient, gate: o.gate,
		score: scoreOf(o.gate, 500), took: r.seconds(10, 40), cost: 40}
}

// spent is a quota of the default agent's provider that does not come back.
type spent struct{ fallbacks int }

func (o *spent) meet(t *try, _ *rng) *trouble {
	if t.agent > 0 {
		return nil
	}
	return &trouble{
		message: "insufficient_quota: you exceeded your current quota (429)", class: failure.QuotaExhausted,
		kind: failure.Permanent, provider: true,
		score: -1, took: 5 * time.Second, cost: 2,
	}
}

func (o *spent) hopeless() bool { return o.fallbacks == 0 }

// permanent is what only a person can cure.
type permanent struct {
	message string
	class   failure.Class
}

func (o *permanent) meet(*try, *rng) *trouble {
	return &trouble{message: o.message, class: o.class, kind: failure.Permanent, score: -1, took: 5 * time.Second, cost: 5}
}

func (o *permanent) hopeless() bool { return true }
