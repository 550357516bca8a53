// Package outputs finds what runs print: in this machine's folder of a run, else where
// all machines of a board look, to which the process that drives a run copies it while it grows.
//
//	the run's folder ── Copier ──▶ a shared folder ──▶ Open
//
// Anybody who reaches the shared folder may have put something there, so no link is
// followed out of a run's folder in it. What pawl needs for itself, such as the environment of an agent, is never
// copied there.
package outputs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/spool"
)

// Open opens the folder of a run's iteration: that below runs, a folder of this
// machine, else what the machines share.
func Open(runs string, shared *Folder, run, iteration string) (*os.Root, error) {
	if run != filepath.Base(run) || !filepath.IsLocal(run) {
		return nil, fmt.Errorf("%q is no run", run)
	}
	root, err := os.OpenRoot(filepath.Join(runs, run))
	if err == nil {
		root, err = intoFolder(root, iteration)
	}
	if shared != nil && errors.Is(err, fs.ErrNotExist) {
		return shared.openIteration(run, iteration)
	}
	return root, err
}

// ReasonGone explains why the output of an iteration cannot be shown, or where it is.
func ReasonGone(shared *Folder, left *loop.Pushed) string {
	if left == nil || shared != nil {
		return "no longer kept"
	}
	return "on the machine of worker " + left.Worker + ", if it is kept there; cluster.files shares it"
}

// intoFolder goes to a folder below root, and closes root.
func intoFolder(root *os.Root, name string) (*os.Root, error) {
	defer func() { _ = root.Close() }()
	return root.OpenRoot(name)
}

// Remove removes what is shared of a run.
func Remove(shared *Folder, run string) error {
	if shared == nil {
		return nil
	}
	return shared.removeRun(run)
}

// Compact reduces what an iteration has left, once all that is needed to resume it is
// stored elsewhere: streams are packed, and of pawl's own notes only those stay that
// other machines may see.
func Compact(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return files.UnlessGone(err)
	}
	defer func() { _ = root.Close() }()
	return settleFolder(root, ".")
}

func settleFolder(root *os.Root, dir string) error {
	entries, err := fs.ReadDir(root.FS(), dir)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir() && hasCopiedFiles(dir, e.Name()):
			err = errors.Join(err, settleFolder(root, name))
		case !e.Type().IsRegular(), !names().MatchString(e.Name()):
		case path.Ext(name) == ".json":
			err = errors.Join(err, shortenFile(root, name))
		case slices.Contains([]string{".out", ".err", ".jsonl", ".md"}, path.Ext(name)):
			err = errors.Join(err, spool.Pack(root, name))
		}
	}
	return err
}

func shortenFile(root *os.Root, name string) error {
	in, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	data, err := briefWithoutContent(in)
	if err != nil {
		return err
	}
	return replaceFile(root, name, data)
}

// What is kept of one process's evidence, and how many names are looked at for it.
const (
	MaxEvidence      = 20      // files
	MaxEvidenceBytes = 5 << 20 // of one file
	maxEvidenceNames = 1000
)

// plainText is the media type of reports, of whatever kind: a browser shows their text and runs nothing in them.
const plainText = "text/plain; charset=utf-8"

// evidenceTypes are the media types of what is kept by the ends of names, and how a picture begins.
var evidenceTypes = map[string]struct{ media, begins string }{
	".png": {"image/png", "\x89PNG\r\n\x1a\n"}, ".gif": {"image/gif", "GIF8"}, ".webp": {"image/webp", "RIFF"},
	".jpg": {"image/jpeg", "\xff\xd8\xff"}, ".jpeg": {"image/jpeg", "\xff\xd8\xff"},
	".txt": {media: plainText}, ".log": {media: plainText}, ".md": {media: plainText}, ".json": {media: plainText},
	".xml": {media: plainText}, ".csv": {media: plainText}, ".html": {media: plainText}, ".tap": {media: plainText},
}

const kindsOfEvidence = "png, jpg, gif, webp, txt, log, md, json, xml, csv, html, tap"

// EvidenceType returns the media type of a file of evidence by its name; "" for what is not kept.
func EvidenceType(name string) string {
	return evidenceTypes[strings.ToLower(filepath.Ext(name))].media
}

// KeepEvidence copies what a gate, or the agent where gate is "", left in the folder from to files of the folder to,
// whose names begin with that of from, and removes from. Who wrote it may be hostile: no link is followed, and a file
// whose content is not what its name says is not kept. left says what was not, and why.
func KeepEvidence(from, to, gate string) (kept []loop.Evidence, left []string) {
	root, err := os.OpenRoot(from)
	if err != nil {
		return nil, nil // nothing was left
	}
	defer func() { _ = root.Close() }()
	seen := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if seen++; seen > maxEvidenceNames || len(kept) == MaxEvidence {
			left = append(left, "what is more than "+fmt.Sprint(MaxEvidence, " files"))
			return fs.SkipAll
		}
		if err != nil || e.IsDir() {
			return err
		}
		as := filepath.Base(from) + "." + strings.ReplaceAll(name, "/", ".")
		data, why := readEvidence(from, name)
		if slices.ContainsFunc(kept, func(e loop.Evidence) bool { return e.File == as }) {
			why = errors.New("another file is kept as " + as)
		}
		if why == nil {
			why = errors.Join(os.MkdirAll(to, 0o700), files.ReplaceBelow(to, as, data, 0o600, false))
		}
		if why != nil {
			left = append(left, fmt.Sprintf("%q: %v", name, why))
			return nil
		}
		kept = append(kept, loop.Evidence{Gate: gate, File: as, Bytes: int64(len(data))})
		return nil
	})
	if err = errors.Join(err, files.RemoveAll(from)); err != nil {
		left = append(left, err.Error())
	}
	return kept, left[:min(len(left), MaxEvidence)]
}

// readEvidence reads one file that is kept, or says why it is not.
func readEvidence(dir, name string) ([]byte, error) {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return nil, errors.New("its name cannot be printed")
	}
	kind := evidenceTypes[strings.ToLower(filepath.Ext(name))]
	if kind.media == "" {
		return nil, errors.New("it is no picture, text or report (" + kindsOfEvidence + ")")
	}
	data, err := files.ReadBelow(dir, name, MaxEvidenceBytes)
	if errors.Is(err, files.ErrLink) {
		return nil, errors.New("it is a symbolic link")
	}
	if err != nil {
		return nil, err
	}
	isSame := bytes.HasPrefix(data, []byte(kind.begins))
	if kind.media == plainText {
		isSame = utf8.Valid(data)
	}
	if !isSame {
		return nil, errors.New("its content is not what its name says")
	}
	return data, nil
}
