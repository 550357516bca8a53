package safety_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/safety"
)

// A command that another program is told to run counts, however it is told to,
// and a harmless one is no reason to stop that program.
func TestCommandsInOptions(t *testing.T) {
	t.Parallel()
	rules := safety.Rules{Level: safety.Normal, Root: "/home/ann/work/app", Home: "/home/ann"}
	for _, form := range []string{
		"sh -c 'CMD'", "bash -lc 'CMD'", "bash -o pipefail -c 'CMD'", "fish --command 'CMD'", "zsh --rcfile x -c 'CMD'",
		"flock x -c 'CMD'", "flock x --command 'CMD'", "flock --timeout 3 x CMD", "runuser -u ann -- CMD",
		"env -S 'CMD'", "env --split-string='CMD'", "watch --interval 3 'CMD'",
		"nix-shell --run 'CMD'", "npx --package a CMD", "trap 'CMD' EXIT", "ssh host 'CMD'",
	} {
		for command, dangerous := range map[string]bool{"rm -rf /": true, "ls /": false} {
			text := strings.ReplaceAll(form, "CMD", command)
			if f, found := rules.Command(text); found != dangerous {
				t.Errorf("%s: found is %v: %s", text, found, f.Reason())
			}
		}
	}
}
