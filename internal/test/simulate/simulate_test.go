package simulate

import (
	"reflect"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

// Ours must be better than the selector by keywords in success and cost, in worlds
// that were used to tune it and in others.
func TestOursWin(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{false, true} {
		rows := Table(6000, 7, held)
		plain := &rows[0]
		for i := range rows[1:] {
			r := &rows[1+i]
			if r.Success() < plain.Success()+30 || r.CostOfSuccess() > plain.CostOfSuccess()*95/100 || r.RightShare() < 2*plain.RightShare() || r.Wasted >= plain.Wasted {
				t.Errorf("held out %v: %s is not clearly better:\n%s", held, r.Player, Format(rows))
			}
		}
		if auto, other := &rows[3], &rows[1]; auto.Success() < other.Success()-2 || auto.CostOfSuccess() > other.CostOfSuccess()*102/100 {
			t.Errorf("held out %v: what auto learned makes it worse:\n%s", held, Format(rows))
		}
	}
}

func TestTheSameSeedGivesTheSameTable(t *testing.T) {
	t.Parallel()
	one, two := Table(1000, 3, true), Table(1000, 3, true)
	if !reflect.DeepEqual(one, two) {
		t.Errorf("%s\n%s", Format(one), Format(two))
	}
	if other := Table(1000, 4, true); reflect.DeepEqual(one, other) {
		t.Error("the seed changes nothing")
	}
}

// What the worlds claim of a failure is what package failure reads from it.
func TestMessagesAreClassifiedSo(t *testing.T) {
	t.Parallel()
	p := &project{fallbacks: 1}
	for _, c := range append(append([]cause{}, tuned...), heldOut...) {
		r := rng(11)
		for range 20 {
			o := c.make(p, &r)
			tr := o.meet(&try{limit: baseLimit, parallel: true}, &r)
			if tr == nil {
				continue
			}
			source := "agent"
			if tr.gate {
				source = "gate"
			}
			if a := failure.Analyse(failure.Evidence{Source: source, Name: "x", ExitCode: 1, Output: tr.message}); a.Class != tr.class {
				t.Errorf("%s: %q is %s, not %s", c.name, tr.message, a.Class, tr.class)
				break
			}
		}
	}
}

// What the selector by keywords makes of usual messages.
func TestSelectorByKeyword(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"Network timeout connecting to vulnerability database": "timeout", "HTTP 429": "rate_limit", "invalid key 401": "auth",
		"EMFILE: too many open files": "resource_exhausted", "502 Bad Gateway": "service_unavailable", "a test failed": "unknown",
	} {
		if got, _ := newClassifier().classify(message); got != want {
			t.Errorf("%q is %s, want %s", message, got, want)
		}
	}
	var d byKeyword
	d.forget()
	for _, c := range []struct {
		from int
		kind string
		want string
	}{
		{0, "timeout", "aggressive-timeout"}, {1, "timeout", "aggressive-timeout"}, // it never leaves it
		{0, "rate_limit", "fallback-providers"}, {0, "network", "aggressive-timeout"}, {3, "unknown", "skip-optional"}, {4, "unknown", "skip-optional"},
	} {
		if got := d.strategies[d.next(c.from, c.kind)].name; got != c.want {
			t.Errorf("after %s and %s comes %s, want %s", d.strategies[c.from].name, c.kind, got, c.want)
		}
	}
}
