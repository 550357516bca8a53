package cli

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// logFile appends to .pawl/log.jsonl. The file is opened for each record: an
// agent may delete the folder at any time, and losing it loses nothing.
type logFile struct {
	mu   sync.Mutex
	path string
	file *os.File
}

// openLog makes the run's log. A log that cannot be written is silent: the
// database has the same events.
func openLog(root string) (*slog.Logger, func()) {
	l := &logFile{path: filepath.Join(root, ".pawl", "log.jsonl")}
	return slog.New(slog.NewJSONHandler(l, nil)), l.close
}

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil && !l.current() {
		_ = l.file.Close()
		l.file = nil
	}
	if l.file == nil {
		if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
			return 0, err
		}
		f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return 0, err
		}
		l.file = f
	}
	return l.file.Write(p)
}

// current is true while the open file is the one at the path.
func (l *logFile) current() bool {
	a, err := os.Stat(l.path)
	if err != nil {
		return false
	}
	b, err := l.file.Stat()
	return err == nil && os.SameFile(a, b)
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}
