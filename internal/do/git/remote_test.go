package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// What a remote says tells a push that is refused from one that may work later, and
// from one that somebody else was quicker with.
func TestWhatARemoteRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		says              string
		rejected, refused bool
	}{
		"a protected branch":   {"this branch is protected", false, true},
		"a locked branch":      {"main is locked: ask Ann", false, true},
		"a hook without words": {"", false, true},
		"a full disk":          {"fatal: unable to write loose object file: No space left on device", false, false},
		"a slow hook":          {"pre-receive hook timed out", false, false},
		"a server in trouble":  {"GitLab: Internal API unavailable, 503", false, false},
		"too many at once":     {"Too many concurrent pushes; try again", false, false},
		"a lock":               {"error: cannot lock ref 'refs/heads/main': Unable to create 'main.lock': File exists.", false, false},
		"somebody is quicker":  {"error: cannot lock ref 'refs/heads/main': is at 1 but expected 2", true, false},
	} {
		top, r := repository(t, "here")
		bare := filepath.Join(t.TempDir(), "there.git")
		gittest.Git(t, top, "init", "-q", "--bare", bare)
		gittest.Git(t, top, "remote", "add", "origin", bare)
		hook := "#!/bin/sh\necho \"" + tt.says + "\" >&2\nexit 1\n"
		if err := os.WriteFile(filepath.Join(bare, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
			t.Fatal(err)
		}
		rejected, err := r.PushFrom(t.Context(), "origin", gittest.Git(t, top, "rev-parse", "HEAD"), "refs/heads/main", "")
		if rejected != tt.rejected || errors.Is(err, ErrRefused) != tt.refused || (err == nil) != tt.rejected {
			t.Errorf("%s: rejected %v, %v", name, rejected, err)
		}
		if err != nil && (!strings.Contains(err.Error(), tt.says) || strings.HasSuffix(err.Error(), ": ")) {
			t.Errorf("%s: it is not said what the remote says: %v", name, err)
		}
	}
}

// What a remote says steers no terminal.
func TestARemoteSaysText(t *testing.T) {
	t.Parallel()
	top, r := repository(t, "here")
	bare := filepath.Join(t.TempDir(), "there.git")
	gittest.Git(t, top, "init", "-q", "--bare", bare)
	gittest.Git(t, top, "remote", "add", "origin", bare)
	hook := "#!/bin/sh\nprintf 'no \\033[31m\\033[2J\\007\\302\\233evil\\n' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bare, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := r.PushFrom(t.Context(), "origin", gittest.Git(t, top, "rev-parse", "HEAD"), "refs/heads/main", "")
	if err == nil || !strings.Contains(err.Error(), "evil") || strings.ContainsFunc(err.Error(), unicode.IsControl) {
		t.Errorf("it says %q", err)
	}
}

// What a remote rejects without a hook: what is at fault there may be repaired, and
// what it never takes is refused.
func TestWhatARemoteRejectsItself(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		make    func(bare string) error
		refused bool
		words   string
	}{
		"a lock that is left": {func(bare string) error {
			return os.WriteFile(filepath.Join(bare, "refs", "heads", "main.lock"), nil, 0o600)
		}, false, "main.lock"},
		"a hidden branch": {func(bare string) error {
			return os.WriteFile(filepath.Join(bare, "config"), []byte("[core]\nbare = true\n[receive]\nhideRefs = refs/heads\n"), 0o600)
		}, true, "deny updating a hidden ref"},
		"a pack that is too large": {func(bare string) error {
			return os.WriteFile(filepath.Join(bare, "config"), []byte("[core]\nbare = true\n[receive]\nmaxInputSize = 10\n"), 0o600)
		}, true, "exceeds"},
	} {
		top, r := repository(t, "here")
		bare := filepath.Join(t.TempDir(), "there.git")
		gittest.Git(t, top, "init", "-q", "--bare", bare)
		gittest.Git(t, top, "remote", "add", "origin", bare)
		if err := tt.make(bare); err != nil {
			t.Fatal(err)
		}
		rejected, err := r.PushFrom(t.Context(), "origin", gittest.Git(t, top, "rev-parse", "HEAD"), "refs/heads/main", "")
		if rejected || err == nil || errors.Is(err, ErrRefused) != tt.refused || !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%s: rejected %v, %v", name, rejected, err)
		}
	}
}

// Where a branch is pushed to is what git itself goes by; a remote that does not exist counts for nothing.
func TestPushRemoteOf(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	gittest.Git(t, top, "init", "-q")
	r, err := Open(t.Context(), top)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, value, want string }{
		{"remote.origin.url", "https://example.com/a/b", ""},
		{"remote.pushDefault", "mine", ""},
		{"remote.mine.url", "https://example.com/c/b", "mine"},
		{"branch.Main.pushRemote", "origin", "origin"},
	} {
		gittest.Git(t, top, "config", c.key, c.value)
		if got, err := r.PushRemoteOf(t.Context(), "refs/heads/Main"); err != nil || got != c.want {
			t.Errorf("with %s %s: %q, %v, want %q", c.key, c.value, got, err, c.want)
		}
	}
}

// A push of pawl's whose answer was lost is known there, and is no push of somebody else.
func TestPushOwnAfterALostAnswer(t *testing.T) {
	t.Parallel()
	top, r := repository(t, "here")
	bare := filepath.Join(t.TempDir(), "there.git")
	gittest.Git(t, top, "init", "-q", "--bare", bare)
	gittest.Git(t, top, "remote", "add", "origin", bare)
	commit := func(message string) string {
		gittest.Git(t, top, "commit", "-q", "--allow-empty", "-m", message)
		return strings.TrimSpace(gittest.Git(t, top, "rev-parse", "HEAD"))
	}
	push := func(commit string) error { return r.PushOwn(t.Context(), "origin", commit, "refs/heads/pawl/t") }
	for _, message := range []string{"one", "two"} {
		first := commit(message)
		// Of the push there is what is named before it, and what the remote has.
		gittest.Git(t, top, "update-ref", "refs/pawl/pushing/pawl/t/"+first, first)
		gittest.Git(t, top, "push", "-q", "origin", first+":refs/heads/pawl/t")
		gittest.Git(t, top, "reset", "-q", "--hard", "HEAD~") // the next one is made anew
		if err := push(commit("instead of " + message)); err != nil {
			t.Errorf("after %s, whose answer was lost: %v", message, err)
		}
	}
	if refs := gittest.Git(t, top, "for-each-ref", "refs/pawl/pushing"); refs != "" {
		t.Errorf("these are left: %s", refs)
	}
	named := filepath.Join(bare, "hooks", "pre-receive")
	if err := os.WriteFile(named, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil { //nolint:gosec // git runs it
		t.Fatal(err)
	}
	refused := commit("refused")
	if err := push(refused); err == nil || !strings.Contains(gittest.Git(t, top, "for-each-ref", "refs/pawl/pushing"), refused) {
		t.Errorf("%s is not named before it is pushed: %v", refused, err)
	}
	if err := os.Remove(named); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, top, "reset", "-q", "--hard", "HEAD~")
	theirs := commit("theirs")
	gittest.Git(t, top, "push", "-q", "origin", theirs+":refs/heads/pawl/t")
	gittest.Git(t, top, "reset", "-q", "--hard", "HEAD~")
	if err := push(commit("mine")); !errors.Is(err, ErrTheirs) {
		t.Errorf("over what somebody else pushed: %v", err)
	}
}
