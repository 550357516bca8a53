package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

// A program's settings get the gateway's address when it is known, and go through
// no link of the agent's making.
func TestSettle(t *testing.T) {
	t.Parallel()
	root, other := t.TempDir(), t.TempDir()
	x := &models{put: strings.NewReplacer(agent.GatewayAddress, "http://127.0.0.1:7", agent.GatewayToken, "tok")}
	file := agent.File{Path: filepath.Join(root, "mine", "models.json"), Content: agent.GatewayAddress + "/openai " + agent.GatewayToken}
	job := Job{Settings: []agent.File{file}, SettingsRoot: root}
	if err := x.writeSettings(job); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file.Path); err != nil || string(b) != "http://127.0.0.1:7/openai tok" {
		t.Errorf("written is %q, %v", b, err)
	}
	err := os.RemoveAll(filepath.Dir(file.Path))
	if err == nil {
		err = os.Symlink(other, filepath.Dir(file.Path))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := x.writeSettings(job); err == nil {
		t.Error("settings were written through a link")
	}
	if err := (*models)(nil).writeSettings(job); err != nil {
		t.Errorf("without a gateway: %v", err)
	}
}
