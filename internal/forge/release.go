package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pawl-dev/pawl/internal/report"
)

// Releases is who knows pawl's newest release. It is asked by 'pawl upgrade --check' only.
const Releases = "https://api.github.com/repos/pawl-dev/pawl/releases/latest"

// Release is what GitHub, and who answers like it, says of one.
type Release struct {
	Name string    `json:"tag_name"`
	Page string    `json:"html_url"`
	When time.Time `json:"published_at"`
}

// NewestRelease asks a URL that answers as GitHub does.
func NewestRelease(ctx context.Context, url string) (r Release, err error) {
	web := http.Client{
		Timeout: callLimit, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return r, err
	}
	resp, err := web.Do(req)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return r, fmt.Errorf("%s knows of none (404): none may be published yet", url)
	}
	if resp.StatusCode != http.StatusOK {
		return r, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&r)
	if err != nil || r.Name == "" {
		return r, fmt.Errorf("%s does not answer with a release", url)
	}
	r.Name, r.Page = report.Line(r.Name, 60), report.Line(r.Page, 300)
	return r, nil
}
