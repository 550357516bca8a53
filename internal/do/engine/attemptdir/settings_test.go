package attemptdir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

// An agent may write the folder that its settings lie in: what pawl writes there goes
// through no link of its making.
func TestSettingsThroughNoLink(t *testing.T) {
	t.Parallel()
	state, other := t.TempDir(), t.TempDir()
	own := filepath.Join(state, "agents", "mine")
	if err := os.MkdirAll(own, 0o700); err != nil {
		t.Fatal(err)
	}
	file := agent.File{Path: filepath.Join(own, "conf", "settings.json"), Content: "{}"}
	for range 2 {
		if _, err := WriteSettings(state, []agent.File{file}); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(file.Path); err != nil || string(data) != file.Content {
		t.Errorf("written is %q, %v", data, err)
	}
	err := os.RemoveAll(filepath.Join(own, "conf"))
	if err == nil {
		err = os.Symlink(other, filepath.Join(own, "conf"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := WriteSettings(state, []agent.File{file}); err == nil {
		t.Error("settings were written through a link")
	}
	if entries, err := os.ReadDir(other); err != nil || len(entries) > 0 {
		t.Errorf("outside there are %v, %v", entries, err)
	}
}
