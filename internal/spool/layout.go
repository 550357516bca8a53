package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/pawl-dev/pawl/internal/files"
)

// layout says where a stream is that is not simply its file.
type layout struct {
	// Head is how much of the file is the stream's beginning.
	Head int64 `json:"head"`
	// Part is the length of a part; 0 when the stream has ended and is one file.
	Part int64 `json:"part,omitempty"`
	// First is the offset of the oldest part, or of what follows in the file
	// after what was left out; Last is that of the newest part.
	First int64 `json:"first"`
	Last  int64 `json:"last,omitempty"`
	// Note is the length of the line that stands for what was left out.
	Note int64 `json:"note,omitempty"`
}

func layoutName(path string) string { return path + ".parts" }

func partName(path string, at int64) string { return path + "." + strconv.FormatInt(at, 10) }

// loadLayout is empty for a stream that is its file.
func loadLayout(dir fs.FS, name string) (l layout, err error) {
	data, err := fs.ReadFile(dir, layoutName(name))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err == nil && (l.Head <= 0 || l.Part < 0 || l.First < l.Head || l.Note < 0 || l.Part > 0 && l.Last < l.First) {
		err = errors.New("it makes no sense")
	}
	if err != nil {
		return layout{}, fmt.Errorf("cannot read where the parts of %s are: %v", name, err)
	}
	return l, nil
}

func storeLayout(path string, l layout) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return files.Replace(layoutName(path), data, 0o600, false)
}
