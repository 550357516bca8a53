package failure

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
)

// keyLines are what the fingerprint is made of, next to class, step and tests:
// all lines that tell of the failure, in any order. With failing tests known,
// they and what they say first are the key; what may pass by itself is known by the line that
// made the verdict.
func keyLines(a Analysis, o *outline, at int) []string {
	var key []string
	for _, i := range a.Items {
		if i.Test != "" && a.Class == TestFailure {
			first, _, _ := strings.Cut(i.Message, "\n")
			key = append(key, steady(i.Test)+": "+stable(first), stable(i.Expected), stable(i.Received))
		}
	}
	if len(key) > 0 {
		slices.Sort(key)
		return key
	}
	keep := func(s string) {
		if s != "" {
			key = append(key, s)
		}
	}
	add := func(s string) { keep(stable(o.varies.Replace(s))) }
	for _, i := range a.Items {
		first, _, _ := strings.Cut(i.Message, "\n")
		if a.Transient {
			return []string{steady(o.varies.Replace(first))}
		}
		if a.Class == CompileError || a.Class == Lint {
			add(i.File + " " + first) // the same in another file is another failure
		}
	}
	telling := o.telling(maxKey)
	for _, i := range telling {
		said := o.t.owner(i) + o.unnumbered(i)
		if _, itself := places.In(said); !itself {
			if p, ok := o.apart(i); ok { // the same in another file is another failure
				said = p.File + " " + said
			}
		}
		keep(stableBut(o.varies.Replace(said), o.usual.countedBy(o.parts[i])))
	}
	if above := o.above(at); above != "" {
		add(above)
		add(o.said(at))
	}
	if p, said := frame(o.t); a.Class == Crash && said != "" && !places.Foreign(p.File) {
		add(p.File) // the same words, thrown elsewhere
	}
	problems := a.Class == CompileError || a.Class == Lint
	placed := problems && informative(a.Items) // then their count says nothing more
	for i, p := range o.parts {
		if p == result && !placed && len(telling) > 0 && i > telling[0] { // before that a program tells of itself
			keep(strings.Join(amounts(o.unnumbered(i), o.usual.counts), " "))
		}
	}
	if len(key) == 0 {
		add(a.Summary)
	}
	slices.Sort(key)
	return key
}
