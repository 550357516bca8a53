//go:build !linux

package process

import (
	"fmt"
	"io"
	"os"
)

// Sealed is what r has, as a file without a name. It is read from its beginning.
func Sealed(r io.Reader) (*os.File, error) {
	f, err := os.CreateTemp("", "pawl-*")
	if err != nil {
		return nil, fmt.Errorf("cannot make a copy: %v", err)
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = io.Copy(f, r)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("cannot make a copy: %v", err)
	}
	return f, nil
}
