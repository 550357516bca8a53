package forge

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// Repository is the forge's description of the repository.
type Repository struct {
	Name     string // owner/name, as it is called now
	Archived bool
	Push     bool   // the token's user may
	Method   string // the first way of merging that is allowed: merge, squash or rebase
}

// About asks the forge for the repository.
func (c *Client) About(ctx context.Context) (Repository, error) {
	var r struct {
		Name        string `json:"full_name"`
		Archived    bool   `json:"archived"`
		Permissions struct {
			Push bool `json:"push"`
		} `json:"permissions"`
		Merge  *bool `json:"allow_merge_commit"`  // GitHub's word
		Merges *bool `json:"allow_merge_commits"` // Gitea's
		Squash bool  `json:"allow_squash_merge"`
	}
	if err := c.getDecoded(ctx, c.repoPath(""), &r); err != nil {
		return Repository{}, err
	}
	method := "rebase"
	switch not := func(b *bool) bool { return b != nil && !*b }; {
	case !not(r.Merge) && !not(r.Merges):
		method = "merge"
	case r.Squash:
		method = "squash"
	}
	return Repository{Name: r.Name, Archived: r.Archived, Push: r.Permissions.Push, Method: method}, nil
}

// User is who the token belongs to.
func (c *Client) User(ctx context.Context) (string, error) {
	var u struct {
		Login string `json:"login"`
	}
	err := c.getDecoded(ctx, "/user", &u)
	return u.Login, err
}

// Able says whether the token may do something; Why is the forge's answer
// where it may not.
type Able struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Why  string `json:"why,omitempty"`
}

// Abilities finds out what the token may do in the repository. What is to be written is
// tried with nothing in it, which a forge refuses in other words than a token
// that may not write.
func (c *Client) Abilities(ctx context.Context) ([]Able, error) {
	tries := []struct{ what, method, path string }{
		{"read issues", http.MethodGet, "/issues?" + c.sizeWord() + "=1"},
		{"write issues and comments", http.MethodPost, "/issues"},
		{"read pull requests", http.MethodGet, "/pulls?" + c.sizeWord() + "=1"},
		{"open pull requests", http.MethodPost, "/pulls"},
	}
	var able []Able
	for _, t := range tries {
		var body []byte
		if t.method == http.MethodPost {
			body = []byte("{}")
		}
		_, err := c.callOnce(ctx, t.method, c.apiAddress()+c.repoPath("%s", t.path), body)
		a := Able{What: t.what, OK: err == nil || Is(err, http.StatusUnprocessableEntity, http.StatusBadRequest)}
		var no *Error
		if !a.OK {
			if !errors.As(err, &no) {
				return nil, err
			}
			a.Why = no.Why
		}
		able = append(able, a)
	}
	repo, err := c.About(ctx)
	if err != nil {
		return nil, err
	}
	push := Able{What: "merge pull requests", OK: repo.Push && !repo.Archived}
	switch {
	case repo.Archived:
		push.Why = "the repository is archived"
	case !push.OK:
		push.Why = "the token's user may not push"
	}
	return append(able, push), nil
}

// The kinds of forges.
const (
	GitHub = "github"
	Gitea  = "gitea" // Forgejo too
)

// Where is one repository at a forge.
type Where struct {
	Kind       string `json:"kind"`
	URL        string `json:"url"`        // of the site, without a slash at its end: https://github.com
	Repository string `json:"repository"` // owner/name
}

// known are the sites that a remote's address may name. The address is in the
// repository, where an agent may have changed it: the token goes to another host
// only when the configuration names that.
var known = map[string]string{"github.com": GitHub, "codeberg.org": Gitea, "gitea.com": Gitea}

// FromRemote reads the address of a remote. URL and Kind are empty for a
// site that pawl does not know.
func FromRemote(remote string) Where {
	u, err := url.Parse(remote)
	if host, path, ok := strings.Cut(remote, ":"); ok && !strings.Contains(remote, "://") {
		_, host = cutAtLast(host, "@")
		u, err = &url.URL{Host: host, Path: path}, nil
	}
	if err != nil || u.Host == "" {
		return Where{}
	}
	var w Where
	before, name := cutAtLast(strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git"), "/")
	if _, owner := cutAtLast(before, "/"); owner != "" && name != "" {
		w.Repository = owner + "/" + name
	}
	if host := u.Hostname(); known[host] != "" {
		w.URL, w.Kind = "https://"+host, known[host]
	}
	return w
}

// Name of a repository, the same everywhere, by the address of its remote: host and
// path, however it is reached. A folder is called by its path; "" has no name.
func Name(remote string) string {
	u, err := url.Parse(remote)
	host, path, short := strings.Cut(remote, ":")
	if short && !strings.Contains(remote, "://") && !strings.Contains(host, "/") {
		_, host = cutAtLast(host, "@")
		u, err = &url.URL{Host: host, Path: path}, nil
	}
	if err != nil {
		return ""
	}
	path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), ".git")
	if u.Hostname() == "" {
		return path
	}
	return strings.ToLower(u.Hostname() + "/" + strings.Trim(path, "/"))
}

// cutAtLast cuts a text at the last place of sep; before is empty without one.
func cutAtLast(text, sep string) (before, after string) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return "", text
	}
	return text[:i], text[i+len(sep):]
}

// apiAddress is the address below which the calls are.
func (w Where) apiAddress() string {
	switch {
	case w.Kind == Gitea:
		return w.URL + "/api/v1"
	case w.URL == "https://github.com":
		return "https://api.github.com"
	}
	return w.URL + "/api/v3"
}
