package spool

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// packed is the suffix of a stream that is compressed.
const packed = ".gz"

// Streams of these sizes are packed: less is a block of the disk anyway, and more is
// not to be in memory at once.
const (
	leastPacked = 4 << 10
	mostPacked  = 8 << 20
)

// Pack compresses a stream that nobody writes to any more, where that is worth it. At
// any time one of both files is whole.
func Pack(root *os.Root, name string) (err error) {
	parts, err := partsOf(root.FS(), name)
	if err != nil || len(parts) > 0 {
		return err
	}
	in, info, err := regular(root, name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if n := info.Size(); n < leastPacked || n > mostPacked {
		return nil
	}
	temp := name + packed + ".new"
	out, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(out)
	_, err = io.Copy(z, in)
	if err = errors.Join(err, z.Close(), out.Sync(), out.Close()); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	if err := root.Rename(temp, name+packed); err != nil {
		return err
	}
	return root.Remove(name)
}

// NameOf is the name of the stream that a file has, packed or not.
func NameOf(file string) string { return strings.TrimSuffix(file, packed) }

// unpacked is a stream that was compressed.
type unpacked struct{ *bytes.Reader }

func (unpacked) Close() error { return nil }

// unpack opens a stream that [Pack] has compressed.
func unpack(root *os.Root, name string) (head, fs.FileInfo, error) {
	f, info, err := regular(root, name+packed)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot unpack %s: %v", name, err)
	}
	text, err := io.ReadAll(io.LimitReader(z, mostPacked+1))
	if err == nil && len(text) > mostPacked {
		err = errors.New("it is larger than what pawl packs")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot unpack %s: %v", name, err)
	}
	return unpacked{bytes.NewReader(text)}, info, nil
}
