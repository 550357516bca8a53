package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

// dist is what the browser gets: built from the sources in web at the top, and kept beside
// the code so that a build of pawl needs nothing else.
//
//go:embed all:dist
var dist embed.FS

// asset is one file as it is served: made once, at the start.
type asset struct {
	kind   string // its type
	etag   string
	plain  []byte
	packed []byte // the same, compressed; nil when there is none
	// lasting: the name has a hash of the content, so it never changes.
	lasting bool
}

// types are those of the files that pages are made of; the system's own table
// may say otherwise.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".woff2": "font/woff2", ".json": "application/json", ".webmanifest": "application/manifest+json",
	".txt": "text/plain; charset=utf-8",
}

// assets reads what is embedded, and compresses what gets smaller by it: what a
// compressor makes differs from version to version, so it is not kept.
func assets() map[string]asset {
	all := map[string]asset{}
	root, err := fs.Sub(dist, "dist")
	if err != nil {
		return all // there is always a folder of that name
	}
	_ = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path.Base(name), ".") {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		a := asset{kind: types[path.Ext(name)], etag: `"` + hex.EncodeToString(sum[:12]) + `"`, plain: data,
			lasting: strings.HasPrefix(name, "assets/")}
		if a.kind == "" {
			a.kind = mime.TypeByExtension(path.Ext(name))
		}
		if packed := compress(data); len(packed) < len(data) {
			a.packed = packed
		}
		all["/"+name] = a
		return nil
	})
	return all
}

func compress(data []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is a good one
	_, _ = w.Write(data)                                  // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// pages serves the browser's side. An address without a file of its own is a
// place in the application, which finds its way by itself.
func pages() http.Handler {
	all := assets()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if changes(r) {
			problem(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED",
				"Pages are read only").suggest("What can be done is at " + base + "/openapi.json").write(w)
			return
		}
		a, ok := all[r.URL.Path]
		if !ok && path.Ext(r.URL.Path) == "" {
			a, ok = all["/index.html"]
		}
		if !ok {
			problem(http.StatusNotFound, "NO_SUCH_ADDRESS", "There is no page %s",
				clip(r.URL.Path, 200)).suggest("Go to the first page: /").write(w)
			return
		}
		a.serve(w, r)
	})
}

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("ETag", a.etag)
	h.Set("Cache-Control", "no-cache")
	if a.lasting {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	data := a.plain
	if a.packed != nil {
		h.Set("Vary", "Accept-Encoding")
		if accepts(r, "gzip") {
			h.Set("Content-Encoding", "gzip")
			h.Set("ETag", strings.TrimSuffix(a.etag, `"`)+`-gz"`)
			data = a.packed
		}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// accepts is true when a browser takes an encoding.
func accepts(r *http.Request, encoding string) bool {
	for _, header := range r.Header.Values("Accept-Encoding") {
		for one := range strings.SplitSeq(header, ",") {
			name, quality, _ := strings.Cut(strings.TrimSpace(one), ";")
			if strings.EqualFold(strings.TrimSpace(name), encoding) && strings.TrimSpace(quality) != "q=0" {
				return true
			}
		}
	}
	return false
}
