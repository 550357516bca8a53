package supervisor

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A result from before the machine's start may speak of files that a power loss
// took: the job counts as lost.
func TestAResultFromBeforeTheBootIsNone(t *testing.T) {
	t.Parallel()
	job := Job{ID: "job", Files: filepath.Join(t.TempDir(), "job")}
	if err := storeResult(job.Files, Result{ID: job.ID}); err != nil {
		t.Fatal(err)
	}
	if _, ok := knownResult(job); !ok {
		t.Error("a result of now is not known")
	}
	long := time.Unix(1, 0)
	if err := os.Chtimes(job.Files+".result.json", long, long); err != nil {
		t.Fatal(err)
	}
	if _, ok := knownResult(job); ok {
		t.Error("a result from before the boot is known")
	}
}
