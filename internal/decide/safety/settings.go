package safety

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

var (
	// secretSetting finds a name that is given a password, a token or a key.
	secretSetting = lazy.Regexp(`(?i)^[\s"'<]*[^=\s]*?(token|passw|passphrase|secret|credential|api_?-?key|` +
		`private_?-?key|signing|cookie|auth\b|authorization|_auth|username|\bcert\b|keyfile|` +
		`__(?:com|org|net|io|dev))[^=\n]*?(?:[=:]|>|\s)`)
	// secretElements finds parts of XML files that hold nothing else.
	secretElements = lazy.Regexp(`(?is)<(servers|packageSourceCredentials|apikeys|proxies)\b.*?` +
		`</(?:servers|packageSourceCredentials|apikeys|proxies)>`)
	addressUser  = lazy.Regexp(`://[^/@\s"'<>]+@`)
	addressToken = lazy.Regexp(`/t/[^/\s"']+/`) // of conda's channels
	quotedValue  = lazy.Regexp(`([=:]\s*)("[^"]*"|'[^']*')`)
)

// WithoutSecrets is a file of settings without what looks like a password, a token
// or a key: a value in quotes becomes empty, so that the file stays whole, any other
// takes its line with it. Addresses lose their user.
func WithoutSecrets(text string) string {
	text = secretElements().ReplaceAllString(text, "")
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = addressUser().ReplaceAllString(line, "://")
		line = addressToken().ReplaceAllString(line, "/")
		kind, _ := knownSecret(line)
		if kind == "" && !secretSetting().MatchString(line) {
			out.WriteString(line)
			continue
		}
		if empty := quotedValue().ReplaceAllString(line, `$1""`); empty != line {
			out.WriteString(empty)
		}
	}
	return out.String()
}
