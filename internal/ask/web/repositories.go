package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/web/hub"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
)

// This file shows the other repositories of the same user. Each has a server of
// its own, with its own address, token and guard; only that one opens its
// database. This server asks it for its inbox, as a script would, and gives the
// browser what the entry of that server gives: docs/design/several-repositories.md.

// Bounds of what is asked of the servers of other repositories.
const (
	// lookAroundEvery is how soon a change in another inbox is seen while somebody watches.
	lookAroundEvery = 2 * time.Second
	// neighbourTime is how long one of them may take.
	neighbourTime = 5 * time.Second
	// maxNeighbourInbox is how many bytes of an inbox are read.
	maxNeighbourInbox = 8 << 20
)

// opening names the repository that is to be opened.
type opening struct {
	ID   string `path:"id" maxLength:"300" doc:"The repository, as the list names it."`
	host string // by which the browser reaches this server
}

// Resolve implements [huma.Resolver].
func (o *opening) Resolve(ctx huma.Context) []error {
	o.host = (&url.URL{Host: ctx.Host()}).Hostname()
	return nil
}

// opened is the answer: a cookie for the other server's port, and the key.
type opened struct {
	Cookie http.Cookie `header:"Set-Cookie"`
	Body   view.Admission
}

// neighbourHandlers answer what waits in the other repositories of the same user.
type neighbourHandlers struct{ *core }

func (s neighbourHandlers) repositoryRoutes(api huma.API) {
	at := rest.Tagged(api, "overview")
	rest.Get(at, "/repositories", "list-repositories", "Other repositories of the same user, and what waits there",
		s.getRepositories)
	rest.Post(at, "/repositories/{id}/open", "open-repository", "Open another repository, by a server of its own",
		s.openRepository)
}

// otherRoots returns the roots of the other repositories. A server that other machines or
// other names reach has none: who was let into one repository there was let into
// no other.
func (s neighbourHandlers) otherRoots() []string {
	if s.listener == nil || !s.listener.Local {
		return nil
	}
	return slices.DeleteFunc(statedir.Roots(s.o.Env), func(root string) bool { return root == s.o.Root })
}

func (s neighbourHandlers) stateFolderOf(root string) string { return statedir.Of(root, s.o.Env) }

func (s neighbourHandlers) getRepositories(ctx context.Context, _ *rest.Nothing,
) (*rest.Body[view.Repositories], error) {
	return rest.Answer(view.Repositories{Repositories: s.askRepositories(ctx)}), nil
}

// askRepositories asks all other repositories at once.
func (s neighbourHandlers) askRepositories(ctx context.Context) []view.Repository {
	roots := s.otherRoots()
	list := make([]view.Repository, len(roots))
	var asked sync.WaitGroup
	for i, root := range roots {
		list[i] = view.Repository{ID: filepath.Base(s.stateFolderOf(root)), Name: filepath.Base(root), Root: root,
			Entries: []view.Need{}}
		asked.Go(func() { s.askNeighbour(ctx, &list[i]) })
	}
	asked.Wait()
	return list
}

// askNeighbour asks the server of a repository, if one runs, for its inbox.
func (s neighbourHandlers) askNeighbour(ctx context.Context, r *view.Repository) {
	session, err := LoadSession(s.stateFolderOf(r.Root))
	if r.Served = err == nil && session.Alive(); !r.Served {
		return
	}
	inbox, err := inboxOfServer(ctx, session)
	if err != nil {
		r.Problem = err.Error()
	}
	if len(inbox.Entries) > 0 {
		r.Entries = inbox.Entries[:min(len(inbox.Entries), maxNeeds)]
	}
}

// neighbourly asks servers on loopback: no proxy is on the way, and none leads elsewhere.
var neighbourly = &http.Client{
	Timeout: neighbourTime, Transport: &http.Transport{},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// inboxOfServer asks a server for its inbox.
func inboxOfServer(ctx context.Context, session Session) (inbox view.Inbox, err error) {
	if _, err := session.loopbackURL(); err != nil {
		return inbox, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, session.URL+rest.Base+"/inbox", nil)
	if err != nil {
		return inbox, err
	}
	req.Header.Set("Authorization", "Bearer "+session.Token)
	res, err := neighbourly.Do(req)
	if err != nil {
		return inbox, fmt.Errorf("its server does not answer: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // it was read only
	if res.StatusCode != http.StatusOK {
		return inbox, fmt.Errorf("its server answers with status %d", res.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxNeighbourInbox)).Decode(&inbox); err != nil {
		return view.Inbox{}, fmt.Errorf("its server gives an unknown answer: %w", err)
	}
	return inbox, nil
}

// loopbackURL returns the session's address, if a browser that came to this server can go
// there as well: without TLS, on this machine.
func (s Session) loopbackURL() (*url.URL, error) {
	u, err := url.Parse(s.URL)
	if err == nil {
		ip, nerr := netip.ParseAddr(u.Hostname())
		if nerr == nil && ip.IsLoopback() && u.Scheme == "http" && u.Port() != "" {
			return u, nil
		}
	}
	return nil, fmt.Errorf("its server has an address of another kind: open it there")
}

func (s neighbourHandlers) openRepository(ctx context.Context, in *opening) (*opened, error) {
	for _, root := range s.otherRoots() {
		if dir := s.stateFolderOf(root); filepath.Base(dir) == in.ID {
			return s.openSession(ctx, root, dir, in.host)
		}
	}
	return nil, rest.Problem(http.StatusNotFound, "NO_SUCH_REPOSITORY", "There is no such repository").
		Suggest("See which there are: GET " + rest.Base + "/repositories")
}

// openSession lets the browser in at the server of another repository, which is started
// if none runs. A cookie has no port, so what is set here is sent there.
func (s neighbourHandlers) openSession(ctx context.Context, root, dir, host string) (*opened, error) {
	session, err := LoadSession(dir)
	if err != nil || !session.Alive() {
		if err := s.o.ServeRoot(ctx, root); err != nil {
			return nil, err
		}
		if session, err = LoadSession(dir); err != nil {
			return nil, err
		}
	}
	to, err := session.loopbackURL()
	if err == nil && host != to.Hostname() && host != "localhost" {
		err = fmt.Errorf("its server listens on %s, and this one on %s: open it there", to.Hostname(), host)
	}
	if err != nil {
		return nil, rest.Problem(http.StatusConflict, "ANOTHER_ADDRESS", "%s cannot be opened from here", filepath.Base(root)).
			Detail(err.Error()).Suggest("Open the address that 'pawl serve --url' prints in " + root)
	}
	return &opened{
		Cookie: entryCookie(to.Port(), session.Token, false),
		Body:   view.Admission{URL: "http://" + net.JoinHostPort(host, to.Port()), Key: makeKey("page", session.Token)},
	}, nil
}

// lookAround notifies the pages when an inbox of another repository has changed. It asks
// no repository while there are no pages.
func (s neighbourHandlers) lookAround(ctx context.Context) {
	if !s.listener.Local {
		return
	}
	told := ""
	hub.Every(ctx, lookAroundEvery, func() {
		if !s.hub.Watched() {
			told = ""
		} else if now := fingerprintOf(s.askRepositories(ctx)); now != told {
			told = now
			s.hub.Broadcast(hub.NewFrame("", "changed", hub.Changed{What: "repositories"}))
		}
	})
}

// fingerprintOf returns a text that changes with the state of the repositories.
func fingerprintOf(list []view.Repository) string {
	text := ""
	for _, r := range list {
		text += fmt.Sprintf("%q %t %q\n", r.ID, r.Served, r.Problem)
		for _, n := range r.Entries {
			text += fmt.Sprintf("\t%s %q %q %q %s\n", n.Kind, n.Title, n.Why, n.Step, n.Since)
		}
	}
	return text
}
