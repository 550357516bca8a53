package setup

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/forge"
)

// What is asked for releases may say anything: the answer is a release, or an error that says who said what.
func TestNewestRelease(t *testing.T) {
	t.Parallel()
	const good = `{"tag_name": "v1.3.0", "html_url": "https://example.org/v1.3.0", "published_at": "2026-11-20T08:00:00Z", "assets": []}`
	for _, tt := range []struct {
		name, version, body, want string
		status                    int
	}{
		{"newer", "v1.2.0", good, "This is pawl v1.2.0. The newest release is v1.3.0, of 2026-11-20: https://example.org/v1.3.0", 200},
		{"the same", "v1.3.0", good, "This is pawl v1.3.0, the newest release.", 200},
		{"the same, with its commit", "v1.3.0 (0123456789ab)", good, "This is pawl v1.3.0, the newest release.", 200},
		{"from source", "(devel)", good, "This is pawl (devel). The newest release is v1.3.0, of 2026-11-20: https://example.org/v1.3.0", 200},
		{"none yet", "", `{"message": "Not Found"}`, "none may be published yet", 404},
		{"limited", "", "", "answers 403 Forbidden", 403},
		{"a page", "", "<html>Log in</html>", "does not answer with a release", 200},
		{"something else", "", `{"name": "x"}`, "does not answer with a release", 200},
		{"without end", "", `{"tag_name": "` + strings.Repeat("v", 2<<20), "does not answer with a release", 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body) // who reads no further is seen by the client
			}))
			defer server.Close()
			r, err := forge.NewestRelease(t.Context(), server.URL)
			got := comparison(tt.version, r)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
