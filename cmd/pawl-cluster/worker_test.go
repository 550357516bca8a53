package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/cli"
	"github.com/pawl-dev/pawl/internal/do/cluster"
)

// What is typed wrong is told at once: before a database is opened, or a repository is
// looked for.
func TestAWorkerThatIsStartedWrong(t *testing.T) {
	t.Chdir(t.TempDir())
	for flags, says := range map[string]string{
		"--slots 0":                    "from 1",
		"--slots -2":                   "from 1",
		"--slots many":                 "from 1",
		"--slots 99999999999999999999": "from 1",
		"--drain -1h":                  "how long",
		"--drain soon":                 "drain",
		"--label a,b":                  "one word",
		"--label two|words":            "one word",
		"--label ä":                    "one word",
		"--label a --label b --label c --label d --label e": "at most 4",
	} {
		var out bytes.Buffer
		environ := []string{"HOME=" + t.TempDir(), "PAWL_CLUSTER_STORE=postgres://127.0.0.1:port/x"}
		code := cli.Main(cluster.Program{}, append([]string{"worker"}, strings.Fields(flags)...), strings.NewReader(""),
			&out, &out, environ)
		if code != 2 || !strings.Contains(out.String(), says) {
			t.Errorf("%s: status %d, and it says\n%s", flags, code, &out)
		}
	}
}

// What is missing to try a cluster is named.
func TestUpNamesWhatIsMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	for flags, says := range map[string]string{"": "write --local", "--local": "is not installed here"} {
		var out bytes.Buffer
		environ := []string{"HOME=" + t.TempDir(), "PATH=" + t.TempDir()}
		code := cli.Main(cluster.Program{}, append([]string{"cluster", "up"}, strings.Fields(flags)...), strings.NewReader(""),
			&out, &out, environ)
		if code != 2 || !strings.Contains(out.String(), says) {
			t.Errorf("%s: status %d, and it says\n%s", flags, code, &out)
		}
	}
}
