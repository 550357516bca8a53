package main

import (
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawl-dev/pawl/internal/test/pgtest"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"pawl-cluster": main}) }

// Machines share what runs print by a bucket of S3.
func TestBucket(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs PostgreSQL")
	}
	database := pgtest.Start(t).New(t)
	backend := s3mem.New()
	if err := backend.CreateBucket("outputs"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	query := "region=eu-central-1&use_path_style=true&endpoint=" + url.QueryEscape(server.URL)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("..", "..", "testdata", "bucket"),
		Setup: func(env *testscript.Env) error {
			home := env.WorkDir + ".home"
			for k, v := range map[string]string{
				"HOME": home, "TMPDIR": home + "/tmp", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8", "QUERY": query,
				"PAWL_CLUSTER_STORE": database + "&repository=acme/shop", "PAWL_CLUSTER_FILES": "s3://outputs/shop?" + query,
				"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
			} {
				env.Setenv(k, v)
			}
			return os.MkdirAll(home+"/tmp", 0o755)
		},
	})
}
