package forgetest

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Fork makes somebody's fork, and returns its folder.
func (h *Hub) Fork(login string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forks[login] = filepath.Join(filepath.Dir(h.Bare), login, repository+".git")
	_, err := h.git("clone", "-q", "--bare", h.Bare, h.forks[login])
	return h.forks[login], err
}

// ownerOf is whose branch a pull request comes from.
func ownerOf(p object) string {
	head, _ := p["head"].(object)
	repo, _ := head["repo"].(object)
	owner, _, _ := strings.Cut(fmt.Sprint(repo["full_name"]), "/")
	return owner
}

// fetch has the commit of somebody's branch here, and returns it.
func (h *Hub) fetch(owner, branch string) (string, error) {
	ref := "refs/heads/" + branch
	if owner != Owner {
		ref = "refs/forks/" + owner + "/" + branch
		if _, err := h.git("fetch", "-q", h.forks[owner], "+refs/heads/"+branch+":"+ref); err != nil {
			return "", err
		}
	}
	return h.git("rev-parse", "--verify", "-q", ref)
}
