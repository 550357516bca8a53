package safety

import (
	"slices"
	"strings"
	"testing"
)

func TestEnviron(t *testing.T) {
	t.Parallel()
	token := "gh" + "p_1R2b3Z4q5W6e7T8y9U0iAsDfGhJkLzXcVbNm"
	env := []string{
		"HOME=/home/ann", "PATH=/bin", "LC_ALL=C", "TERM=xterm", "https_proxy=http://u:p@proxy.corp:3128", "EDITOR=vi", "MONKEY=1", "KEYMAP=us", "MY_SETTING=1",
		"GITHUB_TOKEN=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_REGION=eu", "DB_PASSWORD=c", "ANTHROPIC_API_KEY=d", "OPENAI_API_KEY=e", "SSH_AUTH_SOCK=/s", "INNOCENT=" + token,
		"DATABASE_URL=postgres://a:bcdefg@db.corp:5432/x", "TEST_DATABASE_URL=postgres://a:bcdefg@localhost/x", "odd",
	}
	for _, c := range []struct {
		level    Level
		own      Variables
		withheld string
	}{
		{Permissive, Variables{Hide: []string{"HOME"}}, ""},
		{Normal, Variables{}, "AWS_SECRET_ACCESS_KEY DATABASE_URL DB_PASSWORD GITHUB_TOKEN INNOCENT KEYMAP MONKEY MY_SETTING OPENAI_API_KEY SSH_AUTH_SOCK odd"},
		{Normal, Variables{Hide: []string{"term*"}, Allow: []string{"GITHUB_*", "DATABASE_URL", "SSH_AUTH_SOCK", "INNOCENT", "my_*", "*KEYMAP"}}, "AWS_SECRET_ACCESS_KEY DB_PASSWORD MONKEY OPENAI_API_KEY TERM odd"},
		{Paranoid, Variables{Allow: []string{"MONKEY"}}, "AWS_REGION AWS_SECRET_ACCESS_KEY DATABASE_URL DB_PASSWORD GITHUB_TOKEN INNOCENT KEYMAP MY_SETTING OPENAI_API_KEY SSH_AUTH_SOCK TEST_DATABASE_URL odd"},
	} {
		kept, withheld := c.level.Environ(env, []string{"ANTHROPIC_*"}, c.own)
		if got := strings.Join(withheld, " "); got != c.withheld {
			t.Errorf("%s withholds\n%s, want\n%s", c.level, got, c.withheld)
		}
		if len(kept)+len(withheld) != len(env) || !slices.Contains(kept, "ANTHROPIC_API_KEY=d") || !slices.Contains(kept, env[4]) {
			t.Errorf("%s keeps %q", c.level, kept)
		}
	}
}

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"A", "A", true}, {"A", "AB", false}, {"*", "", true}, {"A*", "A", true}, {"*_TOKEN", "X_TOKEN", true}, {"*_TOKEN", "_TOKENS", false},
		{"A*B*C", "AXBYC", true}, {"A*B*C", "ACB", false}, {"*A*", "BAB", true}, {"A*A", "A", false}, {"**", "X", true},
	} {
		if got := glob(c.pattern, c.name); got != c.want {
			t.Errorf("%s of %s: %v", c.pattern, c.name, got)
		}
	}
}
