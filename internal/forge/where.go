package forge

import (
	"net/url"
	"strings"
)

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

// FromRemote is what the address of a remote says. URL and Kind are empty for a
// site that pawl does not know.
func FromRemote(remote string) Where {
	u, err := url.Parse(remote)
	if host, path, ok := strings.Cut(remote, ":"); ok && !strings.Contains(remote, "://") {
		_, host = cutLast(host, "@")
		u, err = &url.URL{Host: host, Path: path}, nil
	}
	if err != nil || u.Host == "" {
		return Where{}
	}
	var w Where
	before, name := cutLast(strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git"), "/")
	if _, owner := cutLast(before, "/"); owner != "" && name != "" {
		w.Repository = owner + "/" + name
	}
	if host := u.Hostname(); known[host] != "" {
		w.URL, w.Kind = "https://"+host, known[host]
	}
	return w
}

// Name is what a repository is called everywhere, by the address of its remote: host
// and path, however it is reached. A folder is called by its path; "" has no name.
func Name(remote string) string {
	u, err := url.Parse(remote)
	host, path, short := strings.Cut(remote, ":")
	if short && !strings.Contains(remote, "://") && !strings.Contains(host, "/") {
		_, host = cutLast(host, "@")
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

// cutLast cuts a text at the last place of sep; before is empty without one.
func cutLast(text, sep string) (before, after string) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return "", text
	}
	return text[:i], text[i+len(sep):]
}

// api is the address below which the calls are.
func (w Where) api() string {
	switch {
	case w.Kind == Gitea:
		return w.URL + "/api/v1"
	case w.URL == "https://github.com":
		return "https://api.github.com"
	}
	return w.URL + "/api/v3"
}
