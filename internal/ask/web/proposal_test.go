package web

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
)

// The tasks that an agent proposed are read, changed and added, all or none.
func TestProposal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.s.o.Root = t.TempDir()
	var p view.Proposal
	r.get("/proposal", &p)
	if p.Version != "" || len(p.Tasks) != 0 || len(p.Problems) != 0 {
		t.Errorf("without a list: %+v", p)
	}
	file := filepath.Join(r.s.o.Root, planner.ProposalFile)
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"ref":"tabs","title":"Accept <tabs>"}`)
	r.get("/proposal", &p)
	if len(p.Tasks) != 0 || len(p.Problems) != 1 || !strings.Contains(p.Problems[0], "no acceptance criterion") {
		t.Errorf("a list that is not valid: %+v", p)
	}
	r.refused(http.MethodPost, "/proposal/add?version="+p.Version, "", http.StatusConflict)
	write(`{"ref":"tabs","title":"Accept <tabs>","acceptance":["go test"]}` + "\n" +
		`{"ref":"docs","title":"Describe them","acceptance":["it is there"],"needs":["tabs"]}`)
	r.get("/proposal", &p)
	if len(p.Tasks) != 2 || p.Tasks[1].Needs[0] != "tabs" {
		t.Errorf("a list in order: %+v", p)
	}
	seen := p.Version
	r.ask(http.MethodPost, "/proposal?version="+seen,
		`{"tasks":[{"ref":"tabs","title":"Accept <tabs>","acceptance":["go test","and a manual"]}]}`, &p)
	if len(p.Tasks) != 1 || len(p.Tasks[0].Acceptance) != 2 || p.Version == seen {
		t.Errorf("changed: %+v", p)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"title":"Accept <tabs>"`) {
		t.Errorf("the file is %q (%v)", text, err)
	}
	// What somebody saw before it was changed changes nothing, nor does a list that is not in order.
	for _, path := range []string{"/proposal/add?version=" + seen, "/proposal?version=" + seen} {
		r.refused(http.MethodPost, path, `{"tasks":[{"ref":"a","title":"b","acceptance":["c"]}]}`, http.StatusConflict)
	}
	r.refused(http.MethodDelete, "/proposal?version="+seen, "", http.StatusConflict)
	r.refused(http.MethodPost, "/proposal?version="+p.Version, `{"tasks":[{"ref":"a","title":"b","acceptance":[]}]}`,
		http.StatusConflict)
	var page view.CasePage
	if r.get("/cases", &page); len(page.Cases) != 0 {
		t.Errorf("something was added: %+v", page.Cases)
	}
	var done view.Done
	r.ask(http.MethodPost, "/proposal/add?version="+p.Version, "", &done)
	if r.get("/cases", &page); len(page.Cases) != 1 || page.Cases[0].Title != "Accept <tabs>" {
		t.Errorf("added: %+v", page.Cases)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the list is still there")
	}
	r.refused(http.MethodPost, "/proposal/add?version="+p.Version, "", http.StatusConflict)
	write(`{"ref":"tabs","title":"Accept more tabs","acceptance":["go test"]}`)
	r.get("/proposal", &p)
	r.ask(http.MethodPost, "/proposal/add?version="+p.Version, "", &done)
	if r.get("/cases", &page); len(page.Cases) != 2 || page.Cases[0].Ref+page.Cases[1].Ref != "tabstabs-2" {
		t.Errorf("a later plan uses the same ref: %+v", page.Cases)
	}
	write(`{"ref":"a","title":"b","acceptance":["c"]}`)
	r.get("/proposal", &p)
	r.ask(http.MethodDelete, "/proposal?version="+p.Version, "", &done)
	if _, version, _ := action.ReadProposal(r.s.o.Root); version != "" {
		t.Error("the list was not thrown away")
	}
}

// A list that an agent made a link of is not followed.
func TestProposalThatIsALink(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.s.o.Root = t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte(`{"ref":"a","title":"secret","acceptance":["c"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(r.s.o.Root, planner.ProposalFile)); err != nil {
		t.Fatal(err)
	}
	w := r.send(r.asking(http.MethodGet, rest.Base+"/proposal", ""))
	if w.Code == http.StatusOK || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d: %s", w.Code, w.Body.String())
	}
}
