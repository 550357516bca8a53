package safety

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// changes reads a data file: "-- name --" before the lines of each file.
func changesOf(t testing.TB, name string) (files, texts []string) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if file, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok {
			files, texts = append(files, strings.TrimSuffix(file, " --")), append(texts, "")
		} else if n := len(texts); n > 0 {
			texts[n-1] += line
		}
	}
	return files, texts
}

// patch is the diff that adds lines to the end of a file with two others.
func patch(file, text string) string {
	var b strings.Builder
	n := strings.Count(text, "\n")
	fmt.Fprintf(&b, "diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n@@ -1,3 +1,%d @@ func x() {\n kept\n-gone password = \"kR8vTq2Zp9!x\"\n kept\n", file, file, file, file, n+2)
	for line := range strings.Lines(text) {
		b.WriteString("+" + line)
	}
	return b.String()
}

func TestOrdinaryChanges(t *testing.T) {
	t.Parallel()
	files, texts := changesOf(t, "ordinary.txtar")
	for i, file := range files {
		for _, s := range Secrets(patch(file, texts[i])) {
			t.Errorf("%+v: %s", s, texts[i])
		}
	}
	if len(files) < 30 {
		t.Errorf("only %d changes", len(files))
	}
}

// Each secret is found at its line, and never shown.
func TestSecretsInChanges(t *testing.T) {
	t.Parallel()
	files, texts := changesOf(t, "secrets.txtar")
	for i, file := range files {
		text, want := strings.ReplaceAll(texts[i], "·", ""), 0
		for n, line := range strings.Split(text, "\n") {
			if strings.HasSuffix(line, " !!") {
				want = n + 1
			}
		}
		text = strings.ReplaceAll(text, " !!", "")
		got := Secrets(patch(file, text))
		if len(got) != 1 || got[0].File != file || got[0].Line != want+2 || got[0].Kind == "" {
			t.Errorf("%s: found %+v, want line %d", file, got, want+2)
		}
	}
}

// Only what is added counts, in files whose names git quotes as well.
func TestSecretsOfAPatch(t *testing.T) {
	t.Parallel()
	key := "gh" + "p_1R2b3Z4q5W6e7T8y9U0iAsDfGhJkLzXcVbNm"
	text := "diff --git a/x b/x\n--- \"a/m\\303\\274ll.py\"\n+++ \"b/m\\303\\274ll.py\"\n@@ -5 +5 @@\n-old " + key + "\n+new " + key + "\n" +
		"diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1,2 +1,3 @@\n " + key + "\n+++ " + key + "\n last\n"
	got := Secrets(text)
	if len(got) != 2 || got[0] != (Secret{"müll.py", 5, "GitHub token"}) || got[1] != (Secret{"y", 2, "GitHub token"}) {
		t.Errorf("found %+v", got)
	}
	if many := Secrets(patch("a.py", strings.Repeat(key+"\n", 500))); len(many) != maxSecrets {
		t.Errorf("%d finds", len(many))
	}
}

func FuzzSecrets(f *testing.F) {
	f.Add("+++ b/x\n@@ -0,0 +1 @@\n+password = \"kR8vTq2Zp9\"\n")
	f.Add("@@ -1,99999999999999999999 +-5,7 @@\n+++ \"\\")
	f.Add("\xd20TOKEN")
	f.Add("+++ b/.env\n@@ -1 +1,3 @@\n+TOKEN=\n+://:@\n+eyJ.eyJ.")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range Secrets(text) {
			if s.Kind == "" {
				t.Errorf("%+v", s)
			}
		}
	})
}
