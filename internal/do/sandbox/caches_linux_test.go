package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Gates see what is in a cache and write it as they like; nobody else sees that,
// nor the gates of the next verdict.
func TestCachesOfGates(t *testing.T) {
	t.Parallel()
	for _, tier := range tiers(t) {
		t.Run(tier.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			own, scratch := filepath.Join(p.outside, "a:b,c"), filepath.Join(p.secret, "scratch")
			if err := os.MkdirAll(filepath.Join(own, "old"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(own, "file"), []byte("own"), 0o600); err != nil {
				t.Fatal(err)
			}
			caches := []Cache{{[]string{"TOOL"}, own, "tool"}, {[]string{"NONE"}, "", "none"}}
			pol, env := p.policy(tier.Means).WithCaches(caches, scratch)
			sh := func(script string) string {
				t.Helper()
				r := run(t, pol, p.work, "env", env[0], env[1], "sh", "-ec", script)
				if r.code != 0 {
					t.Fatalf("%s: exit %d: %s", script, r.code, r.out)
				}
				return strings.TrimSpace(r.out)
			}
			if got := sh(`cd $TOOL; ls; cat file 2>&1 || true; ls $NONE`); tier.Mounts && got != "file\nold\nown" {
				t.Errorf("a gate sees %q in its caches", got)
			}
			sh(`cd $TOOL; echo poison >file; rm -rf old; mkdir old; ln -s /etc link; echo x >new; echo x >$NONE/new`)
			if got := sh(`cd $TOOL; ls; cat file; ls $NONE`); !strings.HasSuffix(got, "new\nold\npoison\nnew") {
				t.Errorf("the next gate of the verdict sees %q", got)
			}
			if err := os.RemoveAll(scratch); err != nil {
				t.Fatal(err)
			}
			if got := sh(`ls $TOOL $NONE`); strings.Contains(got, "new") {
				t.Errorf("the next verdict sees %q", got)
			}
			if got := read(t, filepath.Join(own, "file")); got != "own" {
				t.Errorf("the cache itself has %q", got)
			}
		})
	}
}

// Of the user's own caches none is used that an agent may write.
func TestOwnCaches(t *testing.T) {
	t.Parallel()
	home, tmp := t.TempDir(), t.TempDir()
	link := filepath.Join(home, ".cache", "pip")
	for _, dir := range []string{".cache/go-build", "go/pkg/mod", ".npm", ".cargo", ".local"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(tmp, link); err != nil {
		t.Fatal(err)
	}
	env := []string{"UV_CACHE_DIR=" + tmp, "YARN_CACHE_FOLDER=" + home}
	at := map[string]string{}
	for _, c := range GateCaches(env, home, []string{tmp, filepath.Join(home, ".cargo"), ""}, true) {
		at[c.Dir] = c.At
	}
	for dir, want := range map[string]string{
		"go-build": home + "/.cache/go-build", "go-mod": home + "/go/pkg/mod", "npm": home + "/.npm", "go-sumdb": home + "/go/pkg/sumdb",
		"cargo": "", "pip": "", "uv": "", "yarn": "", "bun": "",
	} {
		if at[dir] != want {
			t.Errorf("%s is at %q, want %q", dir, at[dir], want)
		}
	}
	xdg := GateCaches([]string{"XDG_CACHE_HOME=" + home + "/.cache"}, "/nowhere", nil, true)
	if xdg[0].At != home+"/.cache/go-build" {
		t.Errorf("XDG_CACHE_HOME counts for nothing: %q", xdg[0].At)
	}
}
