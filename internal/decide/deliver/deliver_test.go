package deliver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
)

const main, feature = "refs/heads/main", "refs/heads/feature"

// green is verified work of two files and a commit, in a checkout that nobody touched.
func green(edit func(*deliver.Facts)) deliver.Facts {
	f := deliver.Facts{When: deliver.Each, Green: true, Commits: 1, Files: 2, Began: main, Now: main}
	edit(&f)
	return f
}

// The rules, one a line.
func TestDecide(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(f *deliver.Facts)
		kind deliver.Kind
		why  string // how it begins
	}{
		"verified work is delivered":                {func(*deliver.Facts) {}, deliver.Deliver, "it is verified"},
		"files alone, too":                          {func(f *deliver.Facts) { f.Commits = 0 }, deliver.Deliver, "it is verified"},
		"a commit that changes no file, too":        {func(f *deliver.Facts) { f.Files = 0 }, deliver.Deliver, "it is verified"},
		"nothing is new":                            {func(f *deliver.Facts) { f.Files, f.Commits = 0, 0 }, deliver.Nothing, "nothing is new"},
		"red work stays":                            {func(f *deliver.Facts) { f.Green = false }, deliver.Nothing, "it is not verified"},
		"red work stays at the end of a run":        {func(f *deliver.Facts) { f.Green, f.Completed, f.When = false, true, deliver.AtEnd }, deliver.Nothing, "it is not verified"},
		"a person may want red work":                {func(f *deliver.Facts) { f.Green, f.Requested = false, true }, deliver.Deliver, ""},
		"at the end: not yet":                       {func(f *deliver.Facts) { f.When = deliver.AtEnd }, deliver.Nothing, "it is delivered when the run completes"},
		"at the end: now":                           {func(f *deliver.Facts) { f.When, f.Completed = deliver.AtEnd, true }, deliver.Deliver, "it is verified"},
		"asked for: a person is asked":              {func(f *deliver.Facts) { f.When, f.Completed = deliver.Asked, true }, deliver.Ask, "run.deliver is ask"},
		"asked for: and said so":                    {func(f *deliver.Facts) { f.When, f.Requested = deliver.Asked, true }, deliver.Deliver, "it is verified"},
		"another branch":                            {func(f *deliver.Facts) { f.Place, f.Now = deliver.Switched, feature }, deliver.Rest, "the work began on main, and feature is checked out now"},
		"no branch any more":                        {func(f *deliver.Facts) { f.Place, f.Now = deliver.Switched, "" }, deliver.Rest, "the work began on main, and a commit without a branch is"},
		"another branch, and a person asked":        {func(f *deliver.Facts) { f.Place, f.Now, f.Requested = deliver.Switched, feature, true }, deliver.Combine, "the work began on main"},
		"another branch, and the run goes on":       {func(f *deliver.Facts) { f.Place, f.Now, f.GoesOn = deliver.Switched, feature, true }, deliver.Rest, ""},
		"rebased, and the run goes on":              {func(f *deliver.Facts) { f.Place, f.GoesOn = deliver.Rewritten, true }, deliver.Combine, "main was reset"},
		"rebased, and a person asked":               {func(f *deliver.Facts) { f.Place, f.Requested = deliver.Rewritten, true }, deliver.Combine, "main was reset"},
		"taken back":                                {func(f *deliver.Facts) { f.TakenBack = true }, deliver.Nothing, "you took it back"},
		"taken back, and a person asked":            {func(f *deliver.Facts) { f.TakenBack, f.Requested = true, true }, deliver.Deliver, ""},
		"another branch says nothing of red work":   {func(f *deliver.Facts) { f.Place, f.Now, f.Green = deliver.Switched, feature, false }, deliver.Nothing, "it is not verified"},
		"the branch was rebased":                    {func(f *deliver.Facts) { f.Place = deliver.Rewritten }, deliver.Rest, "main was reset, rebased or amended meanwhile"},
		"the branch was rebased, and files alone":   {func(f *deliver.Facts) { f.Place, f.Commits = deliver.Rewritten, 0 }, deliver.Deliver, ""},
		"the person committed":                      {func(f *deliver.Facts) { f.Place = deliver.Ahead }, deliver.Combine, "you committed on main meanwhile"},
		"the person committed, and files alone":     {func(f *deliver.Facts) { f.Place, f.Commits = deliver.Ahead, 0 }, deliver.Deliver, ""},
		"came in since the verdict":                 {func(f *deliver.Facts) { f.Unjudged = true }, deliver.Combine, "your changes in the meantime came in"},
		"came in, and a person asked":               {func(f *deliver.Facts) { f.Unjudged, f.Requested = true, true }, deliver.Deliver, ""},
		"came in, and it was red":                   {func(f *deliver.Facts) { f.Unjudged, f.Green = true, false }, deliver.Nothing, "it is not verified"},
		"a file that the person changed, too":       {func(f *deliver.Facts) { f.Overlap = []string{"a"} }, deliver.Combine, `you changed "a" meanwhile, too`},
		"a file that the person staged":             {func(f *deliver.Facts) { f.Staged = []string{"a", "b", "c", "d"} }, deliver.Wait, `you have staged something else for "a", "b", "c" and 1 more`},
		"commits that are not green alone":          {func(f *deliver.Facts) { f.Loose = []string{"a"} }, deliver.Deliver, "it is verified, but not its commits alone"},
		"commits that are not green, and no file":   {func(f *deliver.Facts) { f.Loose, f.Files = []string{"a"}, 0 }, deliver.Nothing, "its commits alone are not verified"},
		"such commits, and a person asked":          {func(f *deliver.Facts) { f.Loose, f.Requested = []string{"a"}, true }, deliver.Deliver, "it is verified"},
		"a rebase goes on":                          {func(f *deliver.Facts) { f.Busy = "rebase" }, deliver.Wait, "a rebase is in progress in the checkout"},
		"commits that cannot be read":               {func(f *deliver.Facts) { f.Broken = "it is garbage" }, deliver.Wait, "the commits of the agent cannot be read: it is garbage"},
		"files, where no commit is":                 {func(f *deliver.Facts) { f.Broken, f.Commits = "it is garbage", 0 }, deliver.Deliver, ""},
		"a file that a program filters":             {func(f *deliver.Facts) { f.Apart = []string{"s"} }, deliver.Wait, `it commits "s", which .gitattributes gives to a program`},
		"what runs by itself":                       {func(f *deliver.Facts) { f.Unseen = []string{".envrc"} }, deliver.Ask, `it changes ".envrc", which your own programs run`},
		"what runs by itself, and a person said so": {func(f *deliver.Facts) { f.Unseen, f.Requested = []string{".envrc"}, true }, deliver.Deliver, ""},
		"what runs by itself comes before the rest": {func(f *deliver.Facts) { f.Unseen, f.Place = []string{".envrc"}, deliver.Ahead }, deliver.Ask, ""},
	} {
		if d := deliver.Decide(green(c.edit)); d.Kind != c.kind || !strings.HasPrefix(d.Why, c.why) {
			t.Errorf("%s: %s (%s), want %s (%s)", name, d.Kind, d.Why, c.kind, c.why)
		}
	}
}

// Whatever the facts are: only what is verified or asked for is delivered, into a
// checkout in which nothing of it was touched; and a reason is always given.
func FuzzDecide(f *testing.F) {
	for n := range uint32(32) {
		f.Add(uint32(1)<<n | 1)
	}
	f.Fuzz(func(t *testing.T, bits uint32) {
		bit := func(n int) bool { return bits>>n&1 == 1 }
		paths := func(n int, list ...string) []string {
			if bit(n) {
				return list
			}
			return nil
		}
		text := func(n int, s string) string { return strings.Join(paths(n, s), "") }
		facts := deliver.Facts{
			Green: bit(0), Completed: bit(1), Requested: bit(2), When: []deliver.When{deliver.Each, deliver.AtEnd, deliver.Asked, deliver.Each}[bits>>3&3],
			Commits: int(bits >> 5 & 1), Files: int(bits >> 6 & 1), Place: deliver.Place(bits >> 7 & 3), Began: text(9, main), Now: text(10, feature),
			Busy: text(11, "merge"), Broken: text(12, "broken"), Overlap: paths(13, "a"), Staged: paths(14, "b"), Apart: paths(15, "c"), Unseen: paths(16, "d"),
		}
		facts.GoesOn, facts.TakenBack = bit(17), bit(18)
		d := deliver.Decide(facts)
		if d.Why == "" || !slices.Contains([]deliver.Kind{deliver.Nothing, deliver.Deliver, deliver.Combine, deliver.Wait, deliver.Rest, deliver.Ask}, d.Kind) {
			t.Fatalf("%+v: %+v", facts, d)
		}
		goes := d.Kind == deliver.Deliver || d.Kind == deliver.Combine
		wanted := facts.Requested || facts.Green && (facts.When == deliver.Each || facts.When == deliver.AtEnd && facts.Completed)
		switch {
		case goes && !wanted:
			t.Errorf("what nobody verified or wanted goes: %+v", facts)
		case goes && facts.TakenBack && !facts.Requested:
			t.Errorf("what a person took back comes again: %+v", facts)
		case goes && facts.Place == deliver.Switched && !facts.Requested,
			goes && facts.Place == deliver.Rewritten && facts.Commits > 0 && !facts.Requested && !facts.GoesOn,
			d.Kind == deliver.Deliver && facts.Place == deliver.Switched:
			t.Errorf("it goes to a branch that it was not made for: %+v", facts)
		case goes && (facts.Busy != "" || len(facts.Apart) > 0 || len(facts.Unseen) > 0 && !facts.Requested):
			t.Errorf("it goes though a person is needed: %+v", facts)
		case d.Kind == deliver.Deliver && len(facts.Overlap)+len(facts.Staged) > 0:
			t.Errorf("it goes over what the person did: %+v", facts)
		case d.Kind == deliver.Deliver && facts.Commits > 0 && (facts.Place != deliver.Same || facts.Broken != ""):
			t.Errorf("the branch would not be fast-forwarded: %+v", facts)
		case d.Kind != deliver.Nothing && facts.Commits+facts.Files == 0:
			t.Errorf("something is done with nothing: %+v", d)
		}
	})
}

// Where a change adds many files it is said how many, and where.
func TestManyNew(t *testing.T) {
	t.Parallel()
	files := func(n int, in string) (paths []string) {
		for i := range n {
			paths = append(paths, fmt.Sprintf("%s%d/f.go", in, i))
		}
		return paths
	}
	for _, c := range []struct {
		added []string
		want  string
	}{
		{nil, ""},
		{files(199, "m2/repo/"), ""},
		{files(200, "m2/repo/"), "200 new files, most of them in m2/repo"},
		{append(files(300, "m2/repo/"), files(40, "src/")...), "340 new files, most of them in m2/repo"},
		{append(files(40, "a/"), files(300, "m2/repo/")...), "340 new files, most of them in m2/repo"},
		{append(files(200, "a/"), files(200, "b/")...), "400 new files"},
		{append(files(200, "x/a/"), files(200, "x/ab/")...), "400 new files, most of them in x"},
		{files(250, "x"), "250 new files"},
	} {
		if got := deliver.ManyNew(c.added); got != c.want {
			t.Errorf("%d files: %q, not %q", len(c.added), got, c.want)
		}
	}
}
