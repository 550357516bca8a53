package git

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// The parts of an index file that are read here (gitformat-index(5)).
const (
	indexHead     = 12      // bytes: signature, version, number of entries
	indexStat     = 40      // bytes of an entry before the object: times, device, mode, owner, size
	indexAssumed  = 1 << 15 // flags of an entry
	indexMore     = 1 << 14 // more flags follow
	indexNameMask = 1<<12 - 1
	indexSparse   = 1 << 14 // of the flags that follow
	indexLimit    = 64 << 20
)

// readIndex lists an index file as git ls-files -s -v does, with the tree that it
// is for certain, if the file tells. It knows the versions 2 and 3, whole in one
// file; for any other the error says that git must be asked. No file is no entries.
func (r *Repo) readIndex(file string) (all []Entry, tree string, err error) {
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > indexLimit {
		return nil, "", errUnusual
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, "", err
	}
	hashed := len(r.Zero()) / 2
	if len(data) < indexHead+hashed || string(data[:4]) != "DIRC" {
		return nil, "", errUnusual
	}
	h := r.newHash()
	h.Write(data[:len(data)-hashed])
	if sum := data[len(data)-hashed:]; !bytes.Equal(sum, h.Sum(nil)) && !bytes.Equal(sum, make([]byte, hashed)) { // zeros: index.skipHash
		return nil, "", errUnusual
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	rest := data[indexHead : len(data)-hashed]
	if version != 2 && version != 3 || uint64(count)*uint64(indexStat+hashed) > uint64(len(rest)) {
		return nil, "", errUnusual
	}
	all = make([]Entry, 0, count)
	for range count {
		e, size, ok := indexEntry(rest, hashed)
		if !ok {
			return nil, "", errUnusual
		}
		all, rest = append(all, e), rest[size:]
	}
	tree, err = r.indexTree(rest)
	return all, tree, err
}

// indexEntry reads the first entry of data, and tells its size in the file.
func indexEntry(data []byte, hashed int) (e Entry, size int, ok bool) {
	at := indexStat + hashed
	if len(data) < at+4 {
		return e, 0, false
	}
	e.Mode = fmt.Sprintf("%06o", binary.BigEndian.Uint32(data[24:]))
	e.Object = hex.EncodeToString(data[indexStat:at])
	flags := binary.BigEndian.Uint16(data[at:])
	e.Stage, e.Assumed = int(flags>>12&3), flags&indexAssumed != 0
	at += 2
	if flags&indexMore != 0 {
		e.Sparse = binary.BigEndian.Uint16(data[at:])&indexSparse != 0
		at += 2
	}
	length := int(flags & indexNameMask)
	if length == indexNameMask || len(data) <= at+length {
		length = bytes.IndexByte(data[at:], 0)
	}
	if length <= 0 || len(data) <= at+length || data[at+length] != 0 {
		return e, 0, false
	}
	e.Path = string(data[at : at+length])
	size = (at+length)/8*8 + 8 // one to eight zeros follow
	return e, size, size <= len(data) && e.Mode != modeTree
}

// indexTree reads what follows the entries. It refuses what changes their meaning:
// git's rule is that such an extension begins with a small letter.
func (r *Repo) indexTree(data []byte) (tree string, err error) {
	for len(data) > 0 {
		if len(data) < 8 || data[0] < 'A' || data[0] > 'Z' {
			return "", errUnusual
		}
		size := uint64(binary.BigEndian.Uint32(data[4:])) + 8
		if size > uint64(len(data)) {
			return "", errUnusual
		}
		if string(data[:4]) == "TREE" {
			tree = r.cachedTree(data[8:size])
		}
		data = data[size:]
	}
	return tree, nil
}

// cachedTree is the tree of the whole index: the first entry, whose name is empty.
// It has no entries (-1) since something was changed.
func (r *Repo) cachedTree(data []byte) string {
	head, rest, ok := bytes.Cut(data, []byte{'\n'})
	if hashed := len(r.Zero()) / 2; !ok || len(head) < 2 || head[0] != 0 || head[1] == '-' || len(rest) < hashed {
		return ""
	} else if id := hex.EncodeToString(rest[:hashed]); r.isID(id) {
		return id
	}
	return ""
}
