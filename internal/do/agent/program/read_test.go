package program

import (
	"strings"
	"testing"
)

// like is the door that a program's file writes as one to a provider of providers.json.
func like(provider string) Door { return readDoor([]byte(`{"to": "` + provider + `"}`)) }

// The npm package's wrapper starts a binary that is one of each platform.
func TestPlatformWords(t *testing.T) {
	t.Parallel()
	for platform, want := range map[string]string{
		"linux/amd64":  "codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin",
		"linux/arm64":  "codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin",
		"darwin/amd64": "codex-darwin-x64/vendor/x86_64-apple-darwin/bin",
		"darwin/arm64": "codex-darwin-arm64/vendor/aarch64-apple-darwin/bin",
	} {
		system, arch, _ := strings.Cut(platform, "/")
		if got := platformWords(system, arch).Replace("codex-{os}-{arch}/vendor/{target}/bin"); got != want {
			t.Errorf("on %s it is %s, want %s", platform, got, want)
		}
	}
}

// A program's file is read strictly: its parts are what they are like, and what they say besides.
func TestRead(t *testing.T) {
	t.Parallel()
	p := Read(`{"name": "mine", "args": ["run"], "grace": "2s", "keyed": true,
		"doors": [{"to": "openai", "keys": ["MINE_KEY in X-Mine"], "part": {"url": "{url}", "n": [1, 2]}}],
		"services": [{"of": "openai"}]}`, nil)
	if p.Name != "mine" || p.Binary != "mine" || p.Args[0] != "run" || p.Grace.Seconds() != 2 || len(p.Services) < 3 {
		t.Errorf("the program is %+v", p)
	}
	d := p.Doors[0]
	if d.Name != "openai" || d.Home != "https://api.openai.com/v1" || d.Keys[0] != (Key{"MINE_KEY", "X-Mine"}) ||
		d.Part != `"url":"{url}","n":[1,2]` {
		t.Errorf("its door is %+v", d)
	}
	defer func() {
		if recover() == nil {
			t.Error("a key that is none was read")
		}
	}()
	Read(`{"name": "mine", "flags": []}`, nil)
}
