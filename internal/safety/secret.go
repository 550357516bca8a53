package safety

import (
	"math/bits"
	"path"
	"strconv"
	"strings"
)

// Secret is what looks like a secret in a file. What it is stays unsaid.
type Secret struct {
	File string `json:"file"`
	Line int    `json:"line"` // 1-based
	Kind string `json:"kind"` // e.g. "AWS access key"
}

const (
	maxSecrets = 100
	// maxLine is as much of a line as is read.
	maxLine = 4 << 10
)

// Secrets finds secrets in the lines that a diff adds: a patch in git's
// format. At most the first 100 are returned.
func Secrets(patch string) []Secret {
	var found []Secret
	file, line, left := "", 0, 0 // left: added lines that the hunk still has
	for text := range strings.Lines(patch) {
		text = strings.TrimRight(text, "\r\n")
		switch {
		case left > 0 && strings.HasPrefix(text, "+"):
			if kind := secretKind(file, text[1:]); kind != "" && len(found) < maxSecrets {
				found = append(found, Secret{File: file, Line: line, Kind: kind})
			}
			line, left = line+1, left-1
		case left > 0 && (strings.HasPrefix(text, " ") || text == ""):
			line, left = line+1, left-1
		case left > 0 && strings.HasPrefix(text, "-"), strings.HasPrefix(text, `\`):
		case strings.HasPrefix(text, "+++ "):
			file = patchedFile(text[4:])
		case strings.HasPrefix(text, "@@ "):
			line, left = hunk(text)
		}
	}
	return found
}

// patchedFile is the name after "+++ ".
func patchedFile(name string) string {
	if unquoted, err := strconv.Unquote(name); err == nil {
		name = unquoted
	}
	name, _, _ = strings.Cut(name, "\t")
	return strings.TrimPrefix(name, "b/")
}

// hunk is where the new side of "@@ -1,2 +3,4 @@" begins, and how many lines it has.
func hunk(text string) (line, count int) {
	_, rest, _ := strings.Cut(text, "+")
	rest, _, _ = strings.Cut(rest, " ")
	from, n, many := strings.Cut(rest, ",")
	line, _ = strconv.Atoi(from)
	count = 1
	if many {
		count, _ = strconv.Atoi(n)
	}
	return line, count
}

// secretKind says what kind of secret a line of a file holds; "" for none.
func secretKind(file, line string) string {
	if len(line) > maxLine {
		line = line[:maxLine]
	}
	if generated(file) {
		return ""
	}
	kind, value := knownSecret(line)
	if kind != "" {
		if madeUp(value) || testFile(file) && strings.Contains(strings.ToLower(value), "test") {
			return ""
		}
		return kind
	}
	if testFile(file) {
		return ""
	}
	return assignedSecret(file, line)
}

// generated files are full of hashes and hold no secrets of a person's.
func generated(file string) bool {
	base := path.Base(file)
	switch base {
	case "go.sum", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "Gemfile.lock", "composer.lock", "Cargo.lock", "bun.lock", "packages.lock.json", ".terraform.lock.hcl", "Package.resolved", "mix.lock":
		return true
	}
	for _, end := range []string{".lock", ".min.js", ".min.css", ".map", ".svg", ".snap", ".sum", ".ipynb"} {
		if strings.HasSuffix(base, end) {
			return true
		}
	}
	return false
}

// testFile is true for tests, fixtures, examples and documentation.
func testFile(file string) bool {
	low := strings.ToLower(file)
	for _, part := range []string{"test", "spec", "fixture", "mock", "example", "sample", "docs/", "stub", "storybook"} {
		if strings.Contains(low, part) {
			return true
		}
	}
	return strings.HasSuffix(low, ".md") || strings.HasSuffix(low, ".rst") || strings.HasSuffix(low, ".adoc")
}

// format is a key that shows what it is.
type format struct {
	prefix string
	set    string // characters after the prefix: see in
	min    int    // how many at least
	kind   string
}

var knownFormats = []format{
	{"AKIA", "A0", 16, "AWS access key"}, {"ASIA", "A0", 16, "AWS access key"},
	{"ghp_", "aA0", 36, "GitHub token"}, {"gho_", "aA0", 36, "GitHub token"}, {"ghu_", "aA0", 36, "GitHub token"}, {"ghs_", "aA0", 36, "GitHub token"}, {"ghr_", "aA0", 36, "GitHub token"},
	{"github_pat_", "aA0_", 40, "GitHub token"}, {"glpat-", "aA0_-", 20, "GitLab token"}, {"glrt-", "aA0_-", 20, "GitLab token"},
	{"sk_live_", "aA0", 20, "Stripe key"}, {"rk_live_", "aA0", 20, "Stripe key"}, {"whsec_", "aA0", 24, "webhook secret"},
	{"sk-ant-", "aA0_-", 20, "Anthropic key"}, {"sk-proj-", "aA0_-", 20, "OpenAI key"}, {"sk-svcacct-", "aA0_-", 20, "OpenAI key"}, {"sk-or-v1-", "aA0", 40, "OpenRouter key"}, {"sk-", "aA0", 40, "API key"},
	{"xoxb-", "aA0-", 20, "Slack token"}, {"xoxp-", "aA0-", 20, "Slack token"}, {"xoxa-", "aA0-", 20, "Slack token"}, {"xoxr-", "aA0-", 20, "Slack token"}, {"xoxs-", "aA0-", 20, "Slack token"}, {"xapp-", "aA0-", 20, "Slack token"},
	{"https://hooks.slack.com/services/T", "aA0/", 30, "Slack webhook"}, {"https://discord.com/api/webhooks/", "aA0/_-", 60, "Discord webhook"},
	{"AIza", "aA0_-", 35, "Google API key"}, {"ya29.", "aA0_-", 30, "Google token"}, {"GOCSPX-", "aA0_-", 24, "Google client secret"},
	{"npm_", "aA0", 36, "npm token"}, {"pypi-AgEI", "aA0_-", 40, "PyPI token"}, {"rubygems_", "a0", 40, "RubyGems key"}, {"hf_", "aA", 30, "Hugging Face token"}, {"r8_", "aA0", 36, "Replicate token"}, {"gsk_", "aA0", 40, "Groq key"}, {"xai-", "aA0", 60, "xAI key"},
	{"dop_v1_", "a0", 60, "DigitalOcean token"}, {"hvs.", "aA0_-", 24, "Vault token"}, {"shpat_", "a0A", 32, "Shopify token"}, {"shpss_", "a0A", 32, "Shopify secret"},
	{"SG.", "aA0_-.", 60, "SendGrid key"}, {"AGE-SECRET-KEY-1", "A0", 50, "age key"}, {"lin_api_", "aA0", 32, "Linear key"}, {"ntn_", "aA0", 40, "Notion token"}, {"dapi", "a0", 32, "Databricks token"}, {"PMAK-", "a0-", 50, "Postman key"}, {"tskey-", "aA0-", 20, "Tailscale key"}, {"EAACEdEose0cBA", "aA0", 20, "Facebook token"}, {"AccountKey=", "aA0+/=", 80, "Azure storage key"}, {"figd_", "aA0_-", 36, "Figma token"}, {"dckr_pat_", "aA0_-", 20, "Docker token"}, {"ATATT3", "aA0_-=", 60, "Atlassian token"}, {"pul-", "a0", 40, "Pulumi token"},
}

// knownSecret finds a key of a known format; value is the key itself.
func knownSecret(line string) (kind, value string) {
	if strings.Contains(line, "PRIVATE KEY") && strings.Contains(line, "-----BEGIN ") {
		return "private key", "-----BEGIN"
	}
	for _, f := range knownFormats {
		for rest, at := line, 0; ; {
			i := strings.Index(rest[at:], f.prefix)
			if i < 0 {
				break
			}
			i += at
			end := i + len(f.prefix)
			for end < len(rest) && in(f.set, rest[end]) {
				end++
			}
			alone := i == 0 || !wordByte(rest[i-1]) && rest[i-1] != '-' || f.prefix == "AccountKey="
			if alone && end-i-len(f.prefix) >= f.min && (f.set != "A0" || f.min != 16 || end-i == 20) {
				return f.kind, rest[i:end]
			}
			at = max(end, i+1)
		}
	}
	if i := strings.Index(line, "eyJ"); i >= 0 {
		if value := webToken(line[i:]); value != "" {
			return "JSON web token", value
		}
	}
	return addressPassword(line)
}

// in: a, A and 0 stand for small letters, capitals and digits; other
// characters for themselves.
func in(set string, c byte) bool {
	switch {
	case c >= 'a' && c <= 'z':
		return strings.IndexByte(set, 'a') >= 0
	case c >= 'A' && c <= 'Z':
		return strings.IndexByte(set, 'A') >= 0
	case c >= '0' && c <= '9':
		return strings.IndexByte(set, '0') >= 0
	}
	return strings.IndexByte(set, c) >= 0
}

// webToken is a token of three parts, the second one a JSON object too.
func webToken(s string) string {
	end := 0
	for end < len(s) && in("aA0_-.", s[end]) {
		end++
	}
	parts := strings.Split(s[:end], ".")
	if len(parts) == 3 && len(parts[0]) > 10 && strings.HasPrefix(parts[1], "eyJ") && len(parts[2]) > 20 {
		return s[:end]
	}
	return ""
}

// addressPassword finds scheme://user:password@host.
func addressPassword(line string) (kind, value string) {
	for rest := line; ; {
		_, after, ok := strings.Cut(rest, "://")
		if !ok {
			return "", ""
		}
		rest = after
		end := strings.IndexAny(after, " \t\"'`<>/")
		if end < 0 {
			end = len(after)
		}
		user, host, ok := cutLast(after[:end], "@")
		_, password, has := strings.Cut(user, ":")
		if ok && has && len(password) >= 6 && !loopback(host) && !placeholder(password) && strings.Contains(host, ".") && !strings.Contains(host, "example") && entropic(password, 2) {
			return "password in an address", password
		}
	}
}

// assignedSecret finds a value with much randomness that is given to a name
// like api_key or password.
func assignedSecret(file, line string) string {
	low := lower(line)
	kind, at := "", -1
	for _, n := range []struct{ word, kind string }{
		{"secret", "secret"}, {"api_key", "API key"}, {"apikey", "API key"}, {"api-key", "API key"}, {"access_key", "access key"}, {"accesskey", "access key"}, {"private_key", "private key"},
		{"privatekey", "private key"}, {"token", "token"}, {"password", "password"}, {"passwd", "password"}, {"pwd", "password"}, {"auth_key", "key"}, {"encryption_key", "key"}, {"signing_key", "key"},
	} {
		if i := strings.Index(low, n.word); i >= 0 && (at < 0 || i < at) {
			kind, at = n.kind, i+len(n.word)
		}
	}
	if at < 0 {
		return ""
	}
	value, quoted := assigned(line[at:])
	if !quoted && !settingsFile(file) || value == "" || placeholder(value) {
		return ""
	}
	if kind == "password" {
		if len(value) >= 8 && entropic(value, 2) && mixed(value) {
			return kind
		}
		return ""
	}
	if len(value) >= 16 && entropic(value, 3) && mixed(value) {
		return kind
	}
	return ""
}

// lower has ASCII letters small and every byte at its place.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// settingsFile is where values stand without quotes.
func settingsFile(file string) bool {
	base := path.Base(file)
	switch path.Ext(base) {
	case ".env", ".properties", ".ini", ".cfg", ".conf", ".toml", ".yaml", ".yml":
		return true
	}
	return strings.HasPrefix(base, ".env") || base == ".npmrc" || base == ".pypirc" || base == ".netrc" || base == "credentials"
}

// assigned is the value after the rest of a name and = or :.
func assigned(rest string) (value string, quoted bool) {
	i := 0
	for i < len(rest) && (wordByte(rest[i]) || rest[i] == '"' || rest[i] == '\'' || rest[i] == ']' || rest[i] == '-') {
		i++
	}
	rest = strings.TrimLeft(rest[i:], " \t")
	switch {
	case strings.HasPrefix(rest, ":="), strings.HasPrefix(rest, "=>"):
		rest = rest[2:]
	case strings.HasPrefix(rest, "=="), rest == "":
		return "", false
	case rest[0] == '=' || rest[0] == ':':
		rest = rest[1:]
	default:
		return "", false
	}
	rest = strings.TrimLeft(rest, " \t")
	if rest == "" {
		return "", false
	}
	if q := rest[0]; q == '"' || q == '\'' || q == '`' {
		end := strings.IndexByte(rest[1:], q)
		if end < 0 {
			return "", false
		}
		return rest[1 : 1+end], true
	}
	value, _, _ = strings.Cut(rest, " ")
	return value, false
}

// placeholder is true for values that stand for a secret, or get one elsewhere.
func placeholder(v string) bool {
	low := strings.ToLower(v)
	for _, p := range []string{
		"example", "changeme", "change-me", "change_me", "your", "xxx", "<", ">", "${", "{{", "$(", "dummy", "fake", "placeholder", "sample", "todo", "redacted", "***", "...", "process.env",
		"environ", "getenv", "secrets.", "test", "password", "secret", "token", "access", "hunter2", "s3cr3t", "insert", "replace", "%s", "vault:", "op://", "arn:", "://", "local", "default", "notreal", "postgres", "admin123", "qwerty", "/", "env(",
	} {
		if strings.Contains(low, p) {
			return true
		}
	}
	return strings.ContainsAny(v, " ()[]{},;\\") || strings.HasPrefix(v, "$") || strings.HasPrefix(v, "#") || madeUp(v)
}

// madeUp is true for a key that nobody issued: one in documentation, of few
// characters, or counted up.
func madeUp(v string) bool {
	if v == "-----BEGIN" {
		return false
	}
	low := strings.ToLower(v)
	for _, p := range []string{"example", "xxxx", "fake", "dummy", "notreal", "placeholder", "your", "redacted", "000000", "aaaaaa", "123456", "abcdef", "deadbeef", "<"} {
		if strings.Contains(low, p) {
			return true
		}
	}
	return distinct(v) < 5
}

// mixed has digits and letters, and is no word, date, version or UUID-like name.
func mixed(v string) bool {
	if identifier(v) {
		return false
	}
	digit, alpha := 0, 0
	for i := range len(v) {
		switch {
		case v[i] >= '0' && v[i] <= '9':
			digit++
		case letter(v[i]):
			alpha++
		}
	}
	return digit >= 2 && alpha >= 2 || digit >= 1 && alpha >= 4 && strings.ContainsAny(v, "!@#%^&*+=")
}

// identifier is true for words and numbers that are joined: TOKEN_TYPE_42.
func identifier(v string) bool {
	parts := strings.FieldsFunc(v, func(c rune) bool { return strings.ContainsRune("_-.:", c) })
	for _, p := range parts {
		if strings.Trim(p, "0123456789") != "" && strings.ContainsAny(p, "0123456789!@#%^&*+=~") {
			return false
		}
	}
	return len(parts) > 1
}

// distinct counts the characters of a text that differ.
func distinct(v string) int {
	var set [4]uint64
	for i := range len(v) {
		set[v[i]/64] |= 1 << (v[i] % 64)
	}
	n := 0
	for _, s := range set {
		n += bits.OnesCount64(s)
	}
	return n
}

// entropic says whether a text has enough different characters for its length:
// grade 3 is what random hexadecimal digits have, 2 is a fair password.
func entropic(v string, grade int) bool {
	d := distinct(v)
	if grade >= 3 {
		return d >= min(10, len(v)*5/8)
	}
	return d >= min(6, len(v))
}
