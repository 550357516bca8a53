package setup

import (
	"strings"
	"testing"
)

// A file of keys has a key a line, and no shell sees a value. What would mean something else to a shell is refused.
func TestParseEnv(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                   "",
		"# a\n; b\n\n  # c\nA=1\n":           "A=1",
		"A=1\r\nB=2\r\n":                     "A=1|B=2",
		"A=a b $(touch x)\nB=`id` ${A} #c\n": "A=a b $(touch x)|B=`id` ${A} #c",
		"A='s e'\nB=\"x ' $ \\n\"\n":         "A=s e|B=x ' $ \\n",
		" A = x  \nB=\nC":                    "!3",
		" A = x  \nB=":                       "A=x|B=",
		"A=it's\nB=say \"x\"\n":              "A=it's|B=say \"x\"",
		"B=1\nA='x' \"y\"z\n":                "!2",
		"A=\"x \\\" y\"":                     "!1",
		"A='two\nlines'\nB=1":                "!1",
		"A=x\nexport B=1\n":                  "!2",
		"A='":                                "!1",
		"A=x\x00y":                           "!1",
		"A=sk-1==\n":                         "A=sk-1==",
	} {
		env, bad := parseEnv(text)
		got := strings.Join(env, "|")
		if bad > 0 {
			got = "!" + string(rune('0'+bad))
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
