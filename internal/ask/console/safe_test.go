package console

import (
	"os"
	"strings"
	"testing"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain, ünïcode, 👩\u200d💻, \u0600١\ttab\n": "plain, ünïcode, 👩\u200d💻, \u0600١\ttab\n",
		"\x1b[31mred\x1b[0m":  "\x1b[31mred\x1b[0m",
		"\x1b[8mhidden":       "␛[8mhidden",
		"\x1b[2K\x1b[1A":      "␛[2K␛[1A",
		"\x1b]52;c;ZQ==\a":    "␛]52;c;ZQ==␇",
		"\x1b]8;;x\x1b\\y":    "␛]8;;x␛\\y",
		"a\u009b2Jb\x9b2J":    `a\x9b2Jb\x9b2J`,
		"right\u202eleft":     `right\u202eleft`,
		"a\u2066b\ufeff":      `a\u2066b\ufeff`,
		"over\rwritten\b\x7f": "over␍written␈␡",
		"dos\r\n":             "dos\n",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// Where a write ends changes nothing, and of the end of all nothing is obeyed.
func TestSafeWriter(t *testing.T) {
	t.Parallel()
	const text = "é\x1b[31mred\x1b[0m \x1b]0;title\a\x1b[3\r\n\u202e\xe2\x80 end\x1b["
	for plain, want := range map[bool]string{
		false: "é\x1b[31mred\x1b[0m ␛]0;title␇␛[3\n" + `\u202e\xe2\x80 end`,
		true:  "é␛[31mred␛[0m ␛]0;title␇␛[3\n" + `\u202e\xe2\x80 end␛[`,
	} {
		file, err := os.CreateTemp(t.TempDir(), "terminal")
		if err != nil {
			t.Fatal(err)
		}
		w := &SafeWriter{file: file, plain: plain}
		for i := range len(text) {
			if n, err := w.Write([]byte(text[i : i+1])); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		data, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		if string(data) != want {
			t.Errorf("plain is %v: got %q, want %q", plain, data, want)
		}
	}
	var b strings.Builder
	if Safe(&b) != &b || Plain(&b) != &b || Raw(&b) != &b {
		t.Error("what is no terminal does not get the bytes")
	}
}
