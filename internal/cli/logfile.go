package cli

import (
	"log/slog"
	"os"
	"path/filepath"
)

// logFile appends to .pawl/log.jsonl. The file is opened for each record: an
// agent may delete the folder at any time, and losing it loses nothing.
type logFile string

// openLog makes the log of a root. One that cannot be written is silent: the
// database has the same events.
func openLog(root string) *slog.Logger {
	return slog.New(slog.NewJSONHandler(logFile(filepath.Join(root, ".pawl", "log.jsonl")), nil))
}

// Write adds one record. They come one at a time.
func (path logFile) Write(p []byte) (int, error) {
	if err := os.MkdirAll(filepath.Dir(string(path)), 0o755); err != nil {
		return 0, err
	}
	f, err := os.OpenFile(string(path), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.Write(p)
}
