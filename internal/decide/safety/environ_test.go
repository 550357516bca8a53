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
		"HOME=/home/ann", "PATH=/bin", "LC_ALL=C", "TERM=xterm", "https_proxy=http://u:p@proxy.example:3128", "EDITOR=vi", "MONKEY=1", "KEYMAP=us", "MY_SETTING=1",
		"GITHUB_TOKEN=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_REGION=eu", "DB_PASSWORD=c", "ANTHROPIC_API_KEY=d", "OPENAI_API_KEY=e", "SSH_AUTH_SOCK=/s", "INNOCENT=" + token,
		"DATABASE_URL=postgres://a:bcdefg@db.corp:5432/x", "TEST_DATABASE_URL=postgres://a:bcdefg@localhost/x", "odd",
	}
	for _, c := range []struct {
		level    Level
		own      Variables
		withheld string
	}{
		{Permissive, Variables{Hide: []string{"HOME"}}, ""},
		{Normal, Variables{}, "AWS_SECRET_ACCESS_KEY DATABASE_URL DB_PASSWORD GITHUB_TOKEN INNOCENT KEYMAP MONKEY MY_SETTING OPENAI_API_KEY SSH_AUTH_SOCK https_proxy odd"},
		{Normal, Variables{Hide: []string{"term*"}, Allow: []string{"GITHUB_*", "DATABASE_URL", "SSH_AUTH_SOCK", "INNOCENT", "my_*", "*KEYMAP"}}, "AWS_SECRET_ACCESS_KEY DB_PASSWORD MONKEY OPENAI_API_KEY TERM https_proxy odd"},
		{Paranoid, Variables{Allow: []string{"MONKEY"}}, "AWS_REGION AWS_SECRET_ACCESS_KEY DATABASE_URL DB_PASSWORD GITHUB_TOKEN INNOCENT KEYMAP MY_SETTING OPENAI_API_KEY SSH_AUTH_SOCK TEST_DATABASE_URL https_proxy odd"},
	} {
		kept, withheld := c.level.Environ(env, []string{"ANTHROPIC_*"}, c.own)
		if got := strings.Join(withheld, " "); got != c.withheld {
			t.Errorf("%s withholds\n%s, want\n%s", c.level, got, c.withheld)
		}
		proxy := env[4]
		if c.level != Permissive {
			proxy = "https_proxy=http://proxy.example:3128"
		}
		if !slices.Contains(kept, "ANTHROPIC_API_KEY=d") || !slices.Contains(kept, proxy) {
			t.Errorf("%s keeps %q", c.level, kept)
		}
	}
}

// A password is taken out of a variable that nothing works without, and the
// variable is named.
func TestPasswordsInVariables(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"HTTPS_PROXY=http://ann:pw@proxy:3128":                         "HTTPS_PROXY=http://proxy:3128",
		"https_proxy=ann:p:w@proxy:3128":                               "https_proxy=proxy:3128",
		"all_proxy=socks5://ann@proxy:1080":                            "all_proxy=socks5://proxy:1080",
		"HTTP_PROXY=http://proxy:3128":                                 "HTTP_PROXY=http://proxy:3128",
		"MAVEN_OPTS=-Xmx1g -Drepo.password=pw -Da=1":                   "MAVEN_OPTS=-Xmx1g -Drepo.password= -Da=1",
		"GRADLE_OPTS=-Dhttp.proxyPassword='p w'":                       "GRADLE_OPTS=-Dhttp.proxyPassword=",
		"JAVA_TOOL_OPTIONS=-Djavax.net.ssl.keyStorePassword=pw -Xss1m": "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.keyStorePassword= -Xss1m",
		"PIP_INDEX_URL=https://ann:pw@pypi.example/simple":             "",
		"CI_JOB_JWT=x":    "",
		"CI_JOB_JWT_V2=x": "",
		"CI_SIGN_KEY=x":   "",
		"TEST_DB_PW=x":    "", "MYSQL_ROOT_PWD=x": "", "TEST_PASSCODE=x": "", "NODE_MNEMONIC=x": "", "CIRCLE_OIDC_ID=x": "", "TEST_PRIVKEY=x": "",
		"PROD_ENV=REJfUEFTUz1odW50ZXIyMzQ1": "", "TEST_SETTING=9f86d081884c7d659a2feaa0c55ad015": "", "BUILD_CODE=Zx81kQ-77hYt_Lm20Vb4s": "",
		"GITHUB_SHA=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b":                  "GITHUB_SHA=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
		"GORACE=atexit_sleep_ms=0 log_path=/tmp/go-test-script2316571001/race": "GORACE=atexit_sleep_ms=0 log_path=/tmp/go-test-script2316571001/race",
		"NODE_OPTIONS=--max-old-space-size=4096":                               "NODE_OPTIONS=--max-old-space-size=4096",
		"GITHUB_REF=refs/heads/JIRA-12345-make-tests-quicker":                  "GITHUB_REF=refs/heads/JIRA-12345-make-tests-quicker",
		"BUILD_TAG=jenkins-some-long-job-name-2026":                            "BUILD_TAG=jenkins-some-long-job-name-2026",
		"DATABASE_URL=Server=db;User=ann;Password=pw;Pool=1":                   "DATABASE_URL=Server=db;User=;Password=;Pool=1",
		"TEST_DATABASE_URL=host=db password=pw dbname=x":                       "TEST_DATABASE_URL=host=db password= dbname=x",
		"TEST_DATABASE_URL=host=localhost password=pw dbname=x":                "TEST_DATABASE_URL=host=localhost password=pw dbname=x",
		"GOPROXY=https://tok@proxy.example,direct":                             "GOPROXY=https://proxy.example,direct",
		"TEST_PROXY=ann:pw@proxy.example:3128":                                 "",
		"TEST_DATABASE_URL=postgres://ann:pw@localhost/x":                      "TEST_DATABASE_URL=postgres://ann:pw@localhost/x",
		"GOFLAGS=-tags=auth -mod=mod":                                          "GOFLAGS=-tags=auth -mod=mod",
		"NODE_OPTIONS=--max-old-space-size=4096 --require ./src/auth.js":       "NODE_OPTIONS=--max-old-space-size=4096 --require ./src/auth.js",
		"PYTEST_ADDOPTS=-k token -q":                                           "PYTEST_ADDOPTS=-k token -q",
		"MAVEN_ARGS=--settings /home/ann/.m2/settings.xml -Dtoken=x -Dnew=1":   "MAVEN_ARGS=--settings /home/ann/.m2/settings.xml -Dtoken= -Dnew=1",
	} {
		kept, withheld := Normal.Environ([]string{given}, nil, Variables{})
		if got := strings.Join(kept, " "); got != want {
			t.Errorf("%s becomes %q, want %q", given, got, want)
		}
		if name, _, _ := strings.Cut(given, "="); slices.Contains(withheld, name) != (want != given) {
			t.Errorf("%s: %v is withheld", given, withheld)
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
		if got := matchesGlob(c.pattern, c.name); got != c.want {
			t.Errorf("%s of %s: %v", c.pattern, c.name, got)
		}
	}
}
