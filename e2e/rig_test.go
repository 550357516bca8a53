//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/internal/modelserver"
)

// install runs scripts/install-claude once for all tests.
var install = sync.OnceValues(func() (path string, err error) {
	c := exec.CommandContext(context.Background(), "../scripts/install-claude")
	var why bytes.Buffer
	c.Stderr = &why
	out, err := c.Output()
	if err != nil {
		return strings.TrimSpace(why.String()), err
	}
	return strings.TrimSpace(string(out)), nil
})

// claudeBinary is the path of the pinned program. Where it cannot be had the
// test is skipped, and says why.
func claudeBinary(t *testing.T) string {
	t.Helper()
	path, err := install()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		t.Skip("skipped: " + path)
	}
	if err != nil {
		t.Fatalf("scripts/install-claude: %v: %s", err, path)
	}
	return path
}

// serve starts the model.
func serve(t *testing.T, s modelserver.Scenario) *modelserver.Server {
	t.Helper()
	server := modelserver.New(s)
	t.Cleanup(server.Close)
	return server
}

// world is the environment of a person who has nothing but a key that is
// none, and a model on loopback. Any other address is behind a proxy that
// does not exist, so nothing leaves the machine.
func world(t *testing.T, model *modelserver.Server) []string {
	t.Helper()
	home := t.TempDir()
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + home,
		"XDG_CONFIG_HOME=" + filepath.Join(home, ".config"),
		"XDG_STATE_HOME=" + filepath.Join(home, ".local", "state"),
		"XDG_CACHE_HOME=" + filepath.Join(home, ".cache"),
		"TMPDIR=" + t.TempDir(),
		"LANG=C.UTF-8",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_CONFIG_NOSYSTEM=1",
		"ANTHROPIC_BASE_URL=" + model.URL(),
		"ANTHROPIC_API_KEY=dummy-key-of-a-test",
		"HTTPS_PROXY=http://127.0.0.1:9",
		"NO_PROXY=127.0.0.1",
	}
}

// edit is a call of the program's tool that writes a file.
func edit(path, content string) modelserver.Tool {
	return modelserver.Tool{Name: "Write", Input: map[string]any{"file_path": path, "content": content}}
}

// bash is a call of the program's shell tool.
func bash(command string) modelserver.Tool {
	return modelserver.Tool{Name: "Bash", Input: map[string]any{"command": command, "description": "scripted"}}
}

// complete is what an agent says when it takes its work for done.
const complete = "The file is written.\n<promise>COMPLETE</promise>"

var (
	rateLimited = modelserver.Reply{Status: 429, Type: "rate_limit_error", Message: "Rate limit reached: 50 requests per minute.",
		Header: map[string]string{"retry-after": "1"}}
	badKey     = modelserver.Reply{Status: 401, Type: "authentication_error", Message: "invalid x-api-key"}
	overloaded = modelserver.Reply{Status: 529, Type: "overloaded_error", Message: "Overloaded"}
	expensive  = modelserver.Usage{Input: 100_000, Output: 10_000}
)
