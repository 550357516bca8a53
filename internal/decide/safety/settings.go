package safety

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// secretName is what the name of a password, a token or a key has in it, and what may
// follow it in the name.
const secretName = `(?:token|passw|passphrase|passwd|pass\b|pwd|secret|credential|api[_-]?key|private[_-]?key` +
	`|signing|` +
	`cookie|auth(?:[^o]|oriz|\b)|username|\buser\b|login|ident\b|(?:\b|[_-])key\b|access_?key|key(?:file|store)` +
	`|\bcert|bearer|jwt|(?:\b|[_-])pat\b|__(?:com|org|net|io|dev))[\w."'\]@-]*`

const anAddress = `\w[\w+.-]*://[^\s"'<>]+`

var (
	// secretLine begins with a name that is given a password, a token or a key.
	secretLine = lazy.Regexp(`(?i)^\s*["'\w./:@ \t\[-]*?` + secretName + `\s*(?:[=:]|\s["'\w])`)
	// secretQuoted and secretBare are such a name with its value, wherever it stands, or an address.
	secretQuoted = lazy.Regexp(`(?i)(` + anAddress + `)|(` + secretName + `\s*(?:=>|>>,<<|[=:(,])?\s*)(?:"[^"]*"` +
		`|'[^']*'|q\[[^\]]*\]|q\{[^}]*\}|q\([^)]*\))`)
	secretBare = lazy.Regexp(`(?i)(` + anAddress + `)|(` + secretName + `[=:]\s*)[^\s"',;}\])]+`)
	// secretAttribute is one of an element of XML.
	secretAttribute = lazy.Regexp(`(?i)(\bkey="[\w.:-]*?` + secretName + `\s+value=|\b(?:password|token|secret` +
		`|username)=)"[^"]*"`)
	// secretElement is an element of XML with such a name; secretElements hold nothing else.
	secretElement  = lazy.Regexp(`(?i)(<[\w.:-]*` + secretName + `(?:\s[^>]*)?>)[^<]*<`)
	secretElements = lazy.Regexp(`(?is)<(servers|packageSourceCredentials|apikeys|proxies)\b.*?` +
		`</(?:servers|packageSourceCredentials|apikeys|proxies)>`)
	address = lazy.Regexp(anAddress)
	// addressUser are a name and a password before a host, with or without a scheme.
	addressUser  = lazy.Regexp(`(^|://|[\s"'=>(,])[^\s/@:"'<>=(,]*:[^\s/@"'<>]+@|(://)[^\s/@"'<>]+@`)
	addressQuery = lazy.Regexp(`\?[^\s"'<>]*`)
	addressPart  = lazy.Regexp(`/[\w~=+.-]{16,}`) // a token in the path, as Cloudsmith and Gemfury have it
	addressToken = lazy.Regexp(`/t/[^/\s"']+/`)   // of conda's channels
	quotedValue  = lazy.Regexp(`([=:]\s*)(?:"[^"]*"|'[^']*')`)
)

// WithoutSecrets is a file of settings without what looks like a password, a token
// or a key: a value in quotes or in the middle of a line becomes empty, so that the file
// stays whole, any other takes its line with it, and the lines that are indented below
// it. Addresses lose their user, their query, and parts of the path that look random.
func WithoutSecrets(text string) string {
	text = secretElements().ReplaceAllString(text, "")
	text = secretElement().ReplaceAllString(text, "${1}<")
	var out strings.Builder
	below := -1 // the indentation of a name whose value is in the lines below it
	for line := range strings.Lines(text) {
		bare := strings.TrimLeft(line, " \t")
		indent := len(line) - len(bare)
		isBelow := indent > below || strings.TrimSpace(bare) == ""
		if below >= 0 && isBelow {
			continue
		}
		below = -1
		line = address().ReplaceAllStringFunc(line, plainAddress)
		line = addressUser().ReplaceAllString(line, "$1$2")
		kind, _ := knownSecret(line)
		isXML, withoutAddresses := strings.HasPrefix(bare, "<"), address().ReplaceAllString(line, `""`)
		isSetting := kind != "" || secretLine().MatchString(withoutAddresses)
		switch {
		case isXML && kind == "":
			out.WriteString(secretAttribute().ReplaceAllString(line, `$1""`))
			continue
		case !isSetting:
			out.WriteString(emptySecrets(line))
			continue
		}
		if empty := quotedValue().ReplaceAllString(line, `$1""`); empty != line {
			out.WriteString(empty)
		} else if end := strings.TrimRight(line, " \t\r\n+-"); strings.ContainsAny(lastCharacter(end), ":|>=[") {
			below = indent
		}
	}
	return out.String()
}

// lastCharacter is the last character of a text.
func lastCharacter(text string) string { return text[max(0, len(text)-1):] }

// plainAddress is an address without what may be secret in it.
func plainAddress(url string) string {
	url = addressUser().ReplaceAllString(url, "$1$2")
	url = addressToken().ReplaceAllString(addressQuery().ReplaceAllString(url, ""), "/")
	return addressPart().ReplaceAllStringFunc(url, func(part string) string {
		if mixesLettersAndDigits(part[1:]) && countDistinct(part) >= 10 {
			return ""
		}
		return part
	})
}

// emptySecrets takes the values of what looks secret by its name out of a line or a
// variable: {token = "x"} and -Drepo.password=x.
func emptySecrets(line string) string {
	line = secretQuoted().ReplaceAllStringFunc(line, func(found string) string {
		of := secretQuoted().FindStringSubmatch(found)
		if of[1] != "" {
			return found
		}
		return of[2] + `""`
	})
	return secretBare().ReplaceAllString(line, "$1$2")
}
