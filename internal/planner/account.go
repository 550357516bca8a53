package planner

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/ratelimit"
)

// account names the account of an agent: runs with the same program, model,
// base URL, keys and configuration meet the same limits. Only a hash is kept.
func (d draft) account(name string, command []string, ag engine.Agent) string {
	parts := []string{name, ag.Model}
	for _, word := range command {
		// A file of the project is another one in another project.
		if path := filepath.Join(d.Config.Root, word); !filepath.IsAbs(word) && isRegular(path) {
			word = path
		}
		parts = append(parts, word)
	}
	if ag.Isolate { // its login is in the repository's state
		parts = append(parts, config.StateDir(d.Config.Root, d.Env))
	}
	return ratelimit.Key(append(parts, identifying(slices.Concat(d.Env, ag.Env))...)...)
}

// identifying are the variables that may say who pays for a call and where it
// goes, of a list of K=V whose later entries win, in the order of their names.
// One too many shares less; one that is missing waits for the limit of another
// account.
func identifying(env []string) []string {
	values := map[string]string{}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		if identifies(k) {
			values[k] = v
		}
	}
	var list []string
	for k, v := range values {
		if v != "" {
			list = append(list, k+"="+v)
		}
	}
	slices.Sort(list)
	return list
}

func identifies(name string) bool {
	switch name {
	case "HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
		"AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_REGION", "GOOGLE_APPLICATION_CREDENTIALS":
		return true
	}
	if strings.HasPrefix(name, "PAWL_") {
		return false
	}
	for _, end := range []string{
		"_API_KEY", "_TOKEN", "_BASE_URL", "_API_BASE", "_API_HOST", "_ENDPOINT", "_CONFIG_DIR",
		"_PROJECT", "_ORG_ID", "_USE_BEDROCK", "_USE_VERTEX",
	} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}
