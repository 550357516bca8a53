package merge

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

func readFileErr(path string) ([]byte, error) { return os.ReadFile(path) }

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := readFileErr(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func try(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func time0() time.Time { return time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC) }

// atReview is a state in which pull requests are being looked at.
func atReview(s queue.State, id string) queue.State {
	s.Command = queue.Command{Seq: s.Seq, Kind: queue.DoReview, IDs: []string{id}}
	return s
}

func stepOf(row sqlite.Queue, state queue.State) sqlite.QueueStep {
	return sqlite.QueueStep{Queue: row, Before: row.State.Entries, State: state, At: time0()}
}
