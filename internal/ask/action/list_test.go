package action_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/decide/board"
)

// follow brings a board to a list.
func follow(t *testing.T, p *action.Operator, text string) {
	t.Helper()
	list, err := board.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err = p.UpdateList(t.Context(), list.Drafts); err != nil {
		t.Fatal(err)
	}
}

// What is put off because its list calls it done stays so until the list calls it open:
// the export of the board calls it deferred.
func TestDeferredStaysDeferred(t *testing.T) {
	t.Parallel()
	p, _ := person(t)
	for _, c := range []struct {
		says string
		want board.Status
	}{
		{"pending", board.Pending}, {"done", board.Deferred}, {"deferred", board.Deferred}, {"pending", board.Pending},
	} {
		follow(t, p, `{"ref":"a","title":"Greet","status":"`+c.says+`"}`)
		if is, err := p.Store.Case(t.Context(), "task-001"); err != nil || is.Status != c.want {
			t.Errorf("the list says %s: it is %s, %v; want %s", c.says, is.Status, err, c.want)
		}
	}
}

// A case may be named by its ref; an id stays what it is.
func TestRefsToIDs(t *testing.T) {
	t.Parallel()
	p, _ := person(t)
	follow(t, p, `{"ref":"bd-a","title":"One"}`+"\n"+`{"ref":"task-001","title":"Two"}`)
	got, err := p.RefsToIDs(t.Context(), []string{"1", "bd-a", "task-001", "bd-b", ""})
	if want := "1 task-001 task-001 bd-b "; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%q, %v; want %s", got, err, want)
	}
}

// A new item of a list is below the operation that holds it there, with and without refs.
func TestNewItemBelowItsOperation(t *testing.T) {
	t.Parallel()
	for first, then := range map[string]string{
		"- [ ] Parser\n  - [ ] One": "- [ ] Parser\n  - [ ] One\n  - [ ] Two\n    - [ ] Three",
		"- [ ] Parser\n  - [ ] Tokenizer\n    ref: tok\n  - [ ] Grammar\n    needs: tok": "- [ ] Parser\n  - [ ] Tokenizer\n    ref: tok\n" +
			"  - [ ] The grammar\n    needs: tok\n    - [ ] Three",
	} {
		p, _ := person(t)
		follow(t, p, first)
		follow(t, p, then)
		op, err := p.Store.Case(t.Context(), "op-001")
		if err != nil || op.Title != "Parser" {
			t.Fatalf("%+v, %v", op, err)
		}
		two, err := p.Store.Case(t.Context(), "op-002")
		if err != nil || two.Parent != "op-001" {
			t.Errorf("%s: the new item is below %q, %v", then, two.Parent, err)
		}
	}
}
