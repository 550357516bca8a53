package forge

import "testing"

func TestFromRemote(t *testing.T) {
	for remote, want := range map[string]Where{
		"https://github.com/acme/shop.git":                 {GitHub, "https://github.com", "acme/shop"},
		"https://x:token@github.com/acme/shop/":            {GitHub, "https://github.com", "acme/shop"},
		"http://github.com/acme/shop":                      {GitHub, "https://github.com", "acme/shop"},
		"git@github.com:acme/shop.git":                     {GitHub, "https://github.com", "acme/shop"},
		"ssh://git@codeberg.org:22/acme/shop.git":          {Gitea, "https://codeberg.org", "acme/shop"},
		"https://git.example.com/forge/acme/shop.git":      {"", "", "acme/shop"},
		"https://github.com.evil.example/acme/shop.git":    {"", "", "acme/shop"},
		"https://evil.example/github.com/../acme/shop.git": {"", "", "acme/shop"},
		"/srv/git/shop.git":                                {},
		"file:///srv/git/shop.git":                         {},
		"https://github.com/shop":                          {GitHub, "https://github.com", ""},
		"":                                                 {},
		"::":                                               {},
		"https://[":                                        {},
	} {
		if got := FromRemote(remote); got != want {
			t.Errorf("%q is %+v, want %+v", remote, got, want)
		}
	}
}
