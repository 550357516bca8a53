package signal

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what the code says into testdata")

// TestReadTranscript reads the messages of testdata/read.txt. With -rewrite
// the answers are written anew; look at what changed before you commit it.
func TestReadTranscript(t *testing.T) {
	t.Parallel()
	const path = "testdata/read.txt"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, count := replay(string(data))
	if count < 10 {
		t.Errorf("only %d messages", count)
	}
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	have := strings.Split(string(data), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(have) || have[i] != line {
			t.Fatalf("line %d is not %q", i+1, line)
		}
	}
	if got != string(data) {
		t.Error("there is more than what the code says")
	}
}

// replay copies comments and messages and puts the answers below the dashes.
func replay(data string) (out string, count int) {
	var b, message strings.Builder
	answer := false
	for line := range strings.Lines(data) {
		text := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(text, "|"):
			message.WriteString(text[1:] + "\n")
		case text == "----":
			b.WriteString(line + describe(Read(message.String())) + "\n")
			message.Reset()
			count++
			answer = true
			continue
		case strings.HasPrefix(text, "#"):
			answer = false
		}
		if !answer {
			b.WriteString(line)
		}
	}
	return strings.TrimSuffix(b.String(), "\n"), count
}

func describe(r Reading) string {
	var b strings.Builder
	kind := string(r.Signal.Kind)
	if r.Signal.Kind == None {
		kind = "none"
	}
	b.WriteString(kind)
	if r.Signal.Text != "" {
		b.WriteString(": " + r.Signal.Text)
	}
	b.WriteByte('\n')
	if r.Progress >= 0 {
		fmt.Fprintf(&b, "progress %d\n", r.Progress)
	}
	for _, sentence := range r.Malformed {
		b.WriteString("told: " + sentence + "\n")
	}
	return b.String()
}
