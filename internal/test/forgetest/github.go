package forgetest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/forge"
)

// Hub is a GitHub of one repository, in memory and a bare repository: what pawl
// and people ask of it does what it does there. It is an [http.Handler].
type Hub struct {
	// Bare is the repository to push to.
	Bare string
	// Trouble is asked first, and true when it has answered.
	Trouble func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	queues   bool              // what is merged has to go through the merge queue
	queue    []int             // numbers of the pull requests that are in it
	forks    map[string]string // folders by owner
	site     string            // its address
	numbers  int
	calls    []string
	wrong    []string // calls and answers that are not as GitHub describes them
	issues   []object // pull requests too
	pulls    []object
	comments map[int][]object
	reviews  map[int][]object
	lines    map[int][]object
	statuses map[string][]object
	runs     map[string][]object
	logs     map[int]string
}

type object = map[string]any

// NewHub is a GitHub whose repository is made in a folder.
func NewHub(dir string) (*Hub, error) {
	h := &Hub{
		Bare: filepath.Join(dir, "hub.git"), forks: map[string]string{}, comments: map[int][]object{}, reviews: map[int][]object{},
		lines:    map[int][]object{},
		statuses: map[string][]object{}, runs: map[string][]object{}, logs: map[int]string{},
	}
	if out, err := exec.CommandContext(context.Background(), "git", "init", "-q", "--bare", "-b", "main",
		h.Bare).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("git init: %w: %s", err, out)
	}
	tree, err := h.git("hash-object", "-t", "tree", "-w", os.DevNull)
	if err == nil {
		tree, err = h.git("commit-tree", tree, "-m", "first")
	}
	if err == nil {
		_, err = h.git("update-ref", "refs/heads/main", tree)
	}
	return h, err
}

// GitHub starts a [Hub] on loopback.
func GitHub(t testing.TB) (*Site, *Hub) {
	t.Helper()
	hub, err := NewHub(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(hub)
	t.Cleanup(func() {
		server.Close()
		for _, w := range hub.Wrong() {
			t.Error("not as GitHub describes it: " + w)
		}
	})
	s := &Site{
		Where:  forge.Where{Kind: forge.GitHub, URL: server.URL, Repository: Owner + "/" + repository},
		Remote: hub.Bare, t: t, web: client(), tokens: map[string]string{},
	}
	t.Cleanup(s.web.CloseIdleConnections)
	for _, login := range []string{Owner, Reviewer, Stranger} {
		s.tokens[login] = HubToken(login)
	}
	return s, hub
}

// HubToken is the token of somebody at a [Hub].
func HubToken(login string) string { return "token-of-" + login }

// Calls are the calls so far, as "GET /path".
func (h *Hub) Calls() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// Wrong are the calls so far that are not as GitHub describes them, with what is wrong.
func (h *Hub) Wrong() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.wrong)
}

func (h *Hub) git(args ...string) (string, error) {
	c := exec.CommandContext(context.Background(), "git", append([]string{"-c", "user.name=hub", "-c",
		"user.email=hub@example.test", "--git-dir", h.Bare}, args...)...)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=", "GIT_CONFIG_NOSYSTEM=1")
	out, err := c.Output()
	return strings.TrimSpace(string(out)), err
}

// refusal is an answer that says no.
type refusal struct {
	status int
	text   string
}

// Former is what the repository was called before.
const Former = Owner + "/former"

// ServeHTTP answers one call.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.Trouble != nil && h.Trouble(w, r) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	path, _ := strings.CutPrefix(r.URL.Path, "/api/v3")
	h.site = "http://" + r.Host
	h.calls = append(h.calls, r.Method+" "+path)
	login, known := strings.CutPrefix(strings.TrimPrefix(strings.TrimPrefix(r.Header.Get("Authorization"),
		"token "), "Bearer "), "token-of-")
	var body object
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, `{"message":"Problems parsing JSON"}`, http.StatusBadRequest)
			return
		}
	}
	var answer any
	no := refusal{http.StatusNotFound, "Not Found"}
	if path == "/api/graphql" {
		h.graphql(w, login, body)
		return
	}
	as, ok := described().call(r.Method, path)
	wrong := "there is no such call"
	if ok {
		wrong = described().wrong(&as, r, body)
	}
	switch name, rest, in := cutRepository(path); {
	case wrong != "":
		h.wrong = append(h.wrong, fmt.Sprintf("%s %s: %s", r.Method, r.URL, wrong))
		no = refusal{http.StatusUnprocessableEntity, wrong}
	case !known:
		no = refusal{http.StatusUnauthorized, "Bad credentials"}
	case path == "/user":
		answer = person(login)
	case in && name == Former: // as GitHub does for a repository that was renamed
		http.Redirect(w, r, h.site+strings.Replace(r.URL.RequestURI(), Former, Owner+"/"+repository, 1), http.StatusMovedPermanently)
		return
	case in && name == Owner+"/"+repository:
		answer, no = h.answer(r, login, strings.Split(strings.Trim(rest, "/"), "/"), body)
	}
	h.write(w, r, &as, answer, no)
}

func cutRepository(path string) (name, rest string, ok bool) {
	path, ok = strings.CutPrefix(path, "/repos/")
	parts := strings.SplitN(path, "/", 3)
	if !ok || len(parts) < 2 {
		return "", "", false
	}
	return parts[0] + "/" + parts[1], strings.Join(parts[2:], ""), true
}

func (h *Hub) write(w http.ResponseWriter, r *http.Request, as *call, answer any, no refusal) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if text, ok := answer.(string); ok {
		_, _ = w.Write([]byte(text))
		return
	}
	if answer == nil {
		w.WriteHeader(no.status)
		_, _ = fmt.Fprintf(w, `{"message":%q}`, no.text)
		return
	}
	if all, ok := answer.([]object); ok {
		answer = h.page(w, r, all)
	}
	data, err := as.whole(answer)
	if err != nil {
		h.wrong = append(h.wrong, fmt.Sprintf("%s %s: %v", r.Method, r.URL, err))
	}
	etag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(data))
	if r.Method == http.MethodGet {
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.WriteHeader(as.Status)
	_, _ = w.Write(data)
}

// page is the part of a list that is asked for.
func (h *Hub) page(w http.ResponseWriter, r *http.Request, all []object) []object {
	page, size := pageOf(r)
	if len(all) > page*size {
		q := r.URL.Query()
		q.Set("page", strconv.Itoa(page+1))
		w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?%s>; rel="next"`, r.Host, r.URL.Path, q.Encode()))
	}
	return cut(all, page, size)
}

func pageOf(r *http.Request) (page, size int) {
	size, _ = strconv.Atoi(r.URL.Query().Get("per_page"))
	page, _ = strconv.Atoi(r.URL.Query().Get("page"))
	if size == 0 {
		size = 30
	}
	return max(page, 1), min(size, 100)
}

// cut is one page of a list.
func cut(all []object, page, size int) []object {
	from, to := min((page-1)*size, len(all)), min(page*size, len(all))
	return append([]object{}, all[from:to]...)
}

func person(login string) object { return object{"login": login, "id": len(login), "type": "User"} }

func mayWrite(login string) bool { return login == Owner || login == Reviewer }

// answer is for a path in the repository.
func (h *Hub) answer(r *http.Request, login string, path []string, body object) (any, refusal) {
	h.numbers++
	missing := refusal{http.StatusNotFound, "Not Found"}
	n := 0
	if len(path) > 1 {
		n, _ = strconv.Atoi(path[1])
	}
	verb := r.Method + " " + path[0]
	if len(path) > 2 {
		verb += " " + path[2]
	}
	if r.Method == http.MethodPatch && len(path) == 3 && path[1] == "comments" {
		return h.rewrite(path[2], body), missing
	}
	switch verb {
	case "GET ":
		return object{
			"full_name": Owner + "/" + repository, "private": false, "archived": false, "allow_merge_commit": true,
			"allow_squash_merge": true, "allow_rebase_merge": true, "default_branch": "main",
			"permissions": object{"push": mayWrite(login), "pull": true, "admin": login == Owner},
		}, missing
	case "GET issues":
		if n > 0 {
			return one(h.issues, n), missing
		}
		return h.listed(h.issues, r), missing
	case "POST issues":
		return h.addIssue(login, body)
	case "PATCH issues":
		return change(h.issues, n, body), missing
	case "GET issues comments":
		since := r.URL.Query().Get("since")
		return slices.DeleteFunc(append([]object{}, h.comments[n]...), func(o object) bool {
			return fmt.Sprint(o["updated_at"]) < since
		}), missing
	case "POST labels":
		return body, missing
	case "POST issues labels", "PUT issues labels":
		return h.label(n, body), missing
	case "POST issues comments":
		change(h.pulls, n, nil)
		h.comments[n] = append(h.comments[n], h.said(login, body))
		change(h.issues, n, object{"comments": len(h.comments[n])})
		return h.comments[n][len(h.comments[n])-1], missing
	case "GET statuses", "GET commits status":
		return object{"state": "pending", "statuses": append([]object{}, h.statuses[path[1]]...)}, missing
	case "POST statuses":
		body["id"] = h.numbers
		h.statuses[path[1]] = append([]object{body}, h.statuses[path[1]]...)
		return body, missing
	case "GET commits check-runs":
		runs := h.runs[path[1]]
		page, size := pageOf(r)
		return object{"total_count": len(runs), "check_runs": cut(runs, page, size)}, missing
	case "GET collaborators permission":
		return permission(login, path[1])
	}
	if path[0] == "actions" && len(path) == 4 {
		id, _ := strconv.Atoi(path[2])
		return h.logs[id], missing
	}
	if path[0] == "pulls" {
		return h.pull(r, login, strings.TrimSuffix(verb, " "), n, body)
	}
	return nil, missing
}

// permission is what somebody may do, for one who may be told.
func permission(asks, login string) (any, refusal) {
	if !mayWrite(asks) {
		return nil, refusal{http.StatusForbidden, "Must have push access to view collaborator permission."}
	}
	may := "read"
	if mayWrite(login) {
		may = "write"
	}
	return object{"permission": may, "user": person(login), "role_name": may}, refusal{}
}

// pull answers about pull requests.
func (h *Hub) pull(r *http.Request, login, verb string, n int, body object) (any, refusal) {
	missing := refusal{http.StatusNotFound, "Not Found"}
	for _, p := range h.pulls {
		h.refresh(p)
	}
	if n > 0 && one(h.pulls, n) == nil {
		return nil, missing
	}
	switch verb {
	case "GET pulls":
		if n > 0 {
			return one(h.pulls, n), missing
		}
		return h.ofBranch(h.listed(h.pulls, r), r), missing
	case "POST pulls":
		return h.open(login, body)
	case "PATCH pulls":
		change(h.issues, n, body)
		return change(h.pulls, n, body), missing
	case "PUT pulls merge":
		return h.merge(login, n, body)
	case "GET pulls reviews":
		return append([]object{}, h.reviews[n]...), missing
	case "POST pulls reviews":
		return h.review(login, n, body), missing
	case "GET pulls comments":
		return append([]object{}, h.lines[n]...), missing
	}
	return nil, missing
}

func (h *Hub) ofBranch(list []object, r *http.Request) []object {
	head, base := r.URL.Query().Get("head"), r.URL.Query().Get("base")
	return slices.DeleteFunc(list, func(p object) bool {
		from, to := ownerOf(p)+":"+refOf(p, "head"), refOf(p, "base")
		return head != "" && from != head || base != "" && to != base
	})
}

// refOf is the branch at one end of a pull request.
func refOf(p object, end string) string {
	o, _ := p[end].(object)
	return fmt.Sprint(o["ref"])
}

// refresh brings an open pull request to the commit of its branch. One whose
// commit is on its base by now is merged.
func (h *Hub) refresh(p object) {
	head, _ := p["head"].(object)
	if p["state"] != "open" {
		return
	}
	commit, err := h.fetch(ownerOf(p), refOf(p, "head"))
	if err == nil {
		head["sha"] = commit
		_, _ = h.git("update-ref", fmt.Sprintf("refs/pull/%v/head", p["number"]), commit)
	}
}

func (h *Hub) open(login string, body object) (any, refusal) {
	from, _ := body["head"].(string)
	to, _ := body["base"].(string)
	invalid := refusal{http.StatusUnprocessableEntity, "Validation Failed"}
	if from == "" || to == "" {
		return nil, invalid
	}
	owner, branch, ok := strings.Cut(from, ":")
	if !ok {
		owner, branch = Owner, from
	}
	for _, ref := range [][2]string{{owner, branch}, {Owner, to}} {
		if _, err := h.fetch(ref[0], ref[1]); err != nil {
			return nil, invalid
		}
	}
	issue, no := h.addIssue(login, body)
	o, ok := issue.(object)
	if !ok {
		return nil, no
	}
	o["pull_request"] = object{}
	p := maps.Clone(o)
	delete(p, "pull_request")
	p["head"] = object{"ref": branch, "repo": object{"full_name": owner + "/" + repository}}
	p["base"], p["merged_at"] = object{"ref": to}, nil
	p["html_url"] = fmt.Sprintf("%s/pull/%d", h.site, p["number"])
	h.pulls = append(h.pulls, p)
	h.refresh(p)
	return p, refusal{}
}

// merge merges as GitHub does: by a merge, one commit, or the commits anew.
func (h *Hub) merge(login string, n int, body object) (any, refusal) {
	p, _ := one(h.pulls, n).(object)
	head, _ := p["head"].(object)
	base := refOf(p, "base")
	if want := body["sha"]; want != nil && want != head["sha"] {
		return nil, refusal{http.StatusConflict, "Head branch was modified. Review and try the merge again."}
	}
	if h.queues && !slices.Contains(h.queue, n) {
		return nil, refusal{http.StatusMethodNotAllowed, "Changes must be made through the merge queue"}
	}
	if p["state"] != "open" || !mayWrite(login) {
		return nil, refusal{http.StatusMethodNotAllowed, "Pull Request is not mergeable"}
	}
	for _, s := range h.statuses[fmt.Sprint(head["sha"])] {
		if s["state"] != "success" {
			return nil, refusal{http.StatusMethodNotAllowed, fmt.Sprintf("Required status check %q is expected.", s["context"])}
		}
	}
	sha := fmt.Sprint(head["sha"])
	var commit string
	var err error
	if body["merge_method"] == "rebase" {
		commit, err = h.rebase(base, sha)
	} else {
		isMerge, message := body["merge_method"] == "merge", fmt.Sprintf("%v (#%d)", p["title"], n)
		if isMerge {
			message = fmt.Sprintf("Merge pull request #%d from %s/%s\n\n%v", n, Owner, refOf(p, "head"), p["title"])
		}
		commit, err = h.mergeCommit(base, sha, message, isMerge)
	}
	if err == nil {
		_, err = h.git("update-ref", "refs/heads/"+base, commit)
	}
	if err != nil {
		return nil, refusal{http.StatusMethodNotAllowed, "Merge conflict"}
	}
	p["state"], p["merged_at"], p["merge_commit_sha"] = "closed", now(), commit
	return object{"sha": commit, "merged": true, "message": "Pull Request successfully merged"}, refusal{}
}

func (h *Hub) review(login string, n int, body object) object {
	state := map[any]string{"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED",
		"COMMENT": "COMMENTED"}[body["event"]]
	change(h.pulls, n, nil)
	o := h.said(login, body)
	o["state"], o["submitted_at"] = state, now()
	h.reviews[n] = append(h.reviews[n], o)
	comments, _ := body["comments"].([]any)
	for _, c := range comments {
		c, _ := c.(object)
		line := h.said(login, c)
		line["path"], line["line"], line["pull_request_review_id"] = c["path"], c["line"], o["id"]
		h.lines[n] = append(h.lines[n], line)
	}
	return o
}

// Check gives a commit a check run of a job, with its log. One without a conclusion goes on.
func (h *Hub) Check(commit, name, conclusion, log string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.numbers++
	run := object{"id": h.numbers, "name": name, "status": "completed", "conclusion": conclusion, "html_url": "",
		"app": object{"slug": "github-actions"}}
	if conclusion == "" {
		run["status"], run["conclusion"] = "in_progress", nil
	}
	h.runs[commit] = slices.DeleteFunc(h.runs[commit], func(o object) bool { return o["name"] == name })
	h.runs[commit] = append(h.runs[commit], run)
	h.logs[h.numbers] = log
}
