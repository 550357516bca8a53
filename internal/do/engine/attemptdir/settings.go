package attemptdir

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// maxSettings is the size in bytes over which a program's settings are not read.
const maxSettings = 1 << 20

// WriteSettings writes the files that a program needs before its start, where they
// are not there as they should be. They lie below stateDir in a folder of the agent's,
// which may have put links there. later are those that only the supervisor can
// write, who knows the gateway's address.
func WriteSettings(stateDir string, settings []agent.File) (later []agent.File, err error) {
	for _, f := range settings {
		if strings.Contains(f.Content, agent.GatewayAddress) {
			later = append(later, f)
			continue
		}
		name, err := filepath.Rel(stateDir, f.Path)
		if err == nil {
			if old, rerr := files.ReadBelow(stateDir, name, maxSettings); rerr == nil && string(old) == f.Content {
				continue
			}
			err = files.ReplaceBelow(stateDir, name, []byte(f.Content), 0o600, false)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot write the agent's settings: %w", err)
		}
	}
	return later, nil
}
