package safety

import (
	_ "embed"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Secret is a place in a file that looks like a secret. Its value is not kept.
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
		case left > 0 && text == "", left > 0 && text[0] == ' ':
			line, left = line+1, left-1
		case left > 0 && text[0] == '-', strings.HasPrefix(text, `\`):
		case strings.HasPrefix(text, "+++ "):
			file = patchedFile(text[4:])
		case strings.HasPrefix(text, "@@ "):
			line, left = parseHunk(text)
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

// parseHunk reads the first line of the new side of "@@ -1,2 +3,4 @@", and how many lines it has.
func parseHunk(text string) (line, count int) {
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

// secretKind returns the kind of secret in a line of a file; "" for none.
func secretKind(file, line string) string {
	if len(line) > maxLine {
		line = line[:maxLine]
	}
	if isGenerated(file) {
		return ""
	}
	kind, value := knownSecret(line)
	if kind != "" {
		forTests := isTestFile(file) && strings.Contains(strings.ToLower(value), "test")
		if isExampleKey(value) || forTests {
			return ""
		}
		return kind
	}
	if isTestFile(file) {
		return ""
	}
	return assignedSecret(file, line)
}

// isGenerated reports whether a file is made by a tool: those are full of hashes and hold no
// secrets of a person's.
func isGenerated(file string) bool {
	base := path.Base(file)
	isEnding := func(end string) bool { return strings.HasSuffix(base, end) }
	return slices.Contains(namedList("generated"), base) || slices.ContainsFunc(namedList("generated ending"), isEnding)
}

// isTestFile counts fixtures, examples and documentation as tests, too.
func isTestFile(file string) bool {
	return containsOneOf(strings.ToLower(file), namedList("test"))
}

// format is a key that shows what it is.
type format struct {
	prefix string
	is     *regexp.Regexp // the key is its first part
	kind   string
}

//go:embed secrets.txt
var secretTable string

var knownFormats = sync.OnceValue(func() []format {
	var out []format
	sets := strings.NewReplacer("-", `\-`, "a", "a-z", "A", "A-Z", "0", "0-9")
	for kind, line := range sectionLines(secretTable) {
		words := strings.Fields(line) // the prefix, the characters after it, and how many at least
		set, most := "["+sets.Replace(words[1])+"]", ",}"
		if kind == "AWS access key" { // it has a length of its own
			most = "}(?:[^" + set[1:] + "|$)"
		}
		key := regexp.QuoteMeta(words[0]) + set + "{" + words[2]
		out = append(out, format{words[0],
			regexp.MustCompile(`(?:^|[^\w-])(` + key + strings.Replace(most, "}", "})", 1)), kind})
	}
	return out
})

// findSecretKey returns the first key of the format in a line.
func (f format) findSecretKey(line string) string {
	if !strings.Contains(line, f.prefix) {
		return ""
	}
	if found := f.is.FindStringSubmatch(line); found != nil {
		return found[1]
	}
	return ""
}

var (
	webToken        = lazy.Regexp(`eyJ[\w-]{8,}\.eyJ[\w-]*\.[\w-]{21,}`)
	addressPassword = lazy.Regexp("://[^\\s\"'`<>/:]*:([^\\s\"'`<>/]{6,})@([^\\s\"'`<>/@]+)")
	assigned        = lazy.Regexp(`(?i)(secret|token|passw(?:or)?d|pwd|` +
		`(?:api|access|private)[_-]?key|(?:auth|encryption|signing)_key)` +
		`[\w"'\]-]*[ \t]*(?:[:=]=?>?)[ \t]*` + "(?:\"([^\"]*)\"|'([^']*)'|`([^`]*)`|([^ ]+))")
)

// knownSecret finds a key of a known format; value is the key itself.
func knownSecret(line string) (kind, value string) {
	if strings.Contains(line, "PRIVATE KEY") && strings.Contains(line, "-----BEGIN ") {
		return "private key", "-----BEGIN"
	}
	for _, f := range knownFormats() {
		if value := f.findSecretKey(line); value != "" {
			return f.kind, value
		}
	}
	if value := webToken().FindString(line); value != "" {
		return "JSON web token", value
	}
	for _, found := range addressPassword().FindAllStringSubmatch(line, -1) {
		password, host := found[1], found[2]
		elsewhere := !isLoopback(host) && strings.Contains(host, ".") && !strings.Contains(host, "example")
		if elsewhere && !isPlaceholder(password) && countDistinct(password) >= 6 {
			return "password in an address", password
		}
	}
	return "", ""
}

// assignedSecret finds a value with much randomness that is given to a name
// like api_key or password.
func assignedSecret(file, line string) string {
	found := assigned().FindStringSubmatch(line)
	if found == nil {
		return ""
	}
	kind, quoted, bare := secretKinds[strings.ToLower(found[1][:2])], found[2]+found[3]+found[4], found[5]
	value := quoted
	if value == "" && isSettingsFile(file) {
		value = bare
	}
	if value == "" || value[0] == '=' || isPlaceholder(value) || !mixesLettersAndDigits(value) {
		return ""
	}
	if kind == "password" && len(value) >= 8 && countDistinct(value) >= 6 {
		return kind
	}
	// as random as hexadecimal digits are
	if kind != "password" && len(value) >= 16 && countDistinct(value) >= 10 {
		return kind
	}
	return ""
}

// secretKinds are kinds by how their names begin.
var secretKinds = map[string]string{
	"se": "secret", "ap": "API key", "ac": "access key", "pr": "private key", "to": "token",
	"pa": "password", "pw": "password", "au": "key", "en": "key", "si": "key",
}

// isSettingsFile reports whether values stand in the file without quotes.
func isSettingsFile(file string) bool {
	base := path.Base(file)
	switch path.Ext(base) {
	case ".env", ".properties", ".ini", ".cfg", ".conf", ".toml", ".yaml", ".yml":
		return true
	}
	return strings.HasPrefix(base, ".env") ||
		slices.Contains([]string{".npmrc", ".pypirc", ".netrc", "credentials"}, base)
}

// isPlaceholder reports whether a value stands for a secret, or gets one elsewhere.
func isPlaceholder(v string) bool {
	odd := strings.ContainsAny(v, " ()[]{},;\\") || beginsWith(v, []string{"$", "#"})
	return odd || containsOneOf(strings.ToLower(v), namedList("placeholder")) || isExampleKey(v)
}

// isExampleKey reports whether a key cannot be a real one: it is one of documentation, has few
// characters, or counts up.
func isExampleKey(v string) bool {
	if v == "-----BEGIN" {
		return false
	}
	return containsOneOf(strings.ToLower(v), namedList("made up")) || countDistinct(v) < 5
}

func containsOneOf(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}

// mixesLettersAndDigits reports whether v has digits and letters, and is no word, date, version or UUID-like
// name.
func mixesLettersAndDigits(v string) bool {
	if isIdentifier(v) {
		return false
	}
	digit, alpha := 0, 0
	for i := range len(v) {
		switch {
		case v[i] >= '0' && v[i] <= '9':
			digit++
		case strings.IndexByte("abcdefghijklmnopqrstuvwxyz", v[i]|0x20) >= 0:
			alpha++
		}
	}
	if digit >= 2 && alpha >= 2 {
		return true
	}
	return digit == 1 && alpha >= 4 && strings.ContainsAny(v, "!@#%^&*+=")
}

// isIdentifier reports whether v consists of words and numbers that are joined: TOKEN_TYPE_42.
func isIdentifier(v string) bool {
	parts := strings.FieldsFunc(v, func(c rune) bool { return strings.ContainsRune("_-.:", c) })
	return !slices.ContainsFunc(parts, func(p string) bool {
		return strings.Trim(p, "0123456789") != "" && strings.ContainsAny(p, "0123456789!@#%^&*+=~")
	}) && len(parts) > 1
}

// countDistinct counts the characters of a text that differ.
func countDistinct(v string) int { return len(lists.Set([]byte(v))) }
