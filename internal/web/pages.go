package web

import (
	"bytes"
	"embed"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/fault"
)

// dist is what the browser gets: built from the sources in web at the top, and kept beside
// the code so that a build of pawl needs nothing else.
//
//go:embed all:dist
var dist embed.FS

// types are those of the files that pages are made of; the system's own table
// may say otherwise.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".webmanifest": "application/manifest+json",
}

// pages serves the browser's side. An address without a file of its own is a
// place in the application, which finds its way by itself.
func pages(w http.ResponseWriter, r *http.Request) {
	if changes(r) {
		problem(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED",
			"Pages are read only").suggest("What can be done is at " + base + "/openapi.json").write(w)
		return
	}
	name := path.Clean(r.URL.Path)
	switch {
	case path.Ext(name) != "":
	case strings.HasPrefix(name, "/terminal/"):
		name = "/terminal.html"
		w.Header().Set("Content-Security-Policy", terminalPolicy)
	default:
		name = "/index.html"
	}
	data, err := dist.ReadFile("dist" + name)
	kind := types[path.Ext(name)]
	if err != nil || kind == "" {
		problem(http.StatusNotFound, "NO_SUCH_ADDRESS", "There is no page %s",
			fault.Cut(r.URL.Path, 200)).suggest("Go to the first page: /").write(w)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	if strings.HasPrefix(name, "/assets/") { // its name has a hash of the content
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}
