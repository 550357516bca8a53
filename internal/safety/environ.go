package safety

import (
	"slices"
	"strings"
)

// Variables are patterns of a user's own over the levels' lists. A pattern is
// a name in which * stands for any characters; case does not count.
type Variables struct {
	Hide  []string // not for children at normal and paranoid
	Allow []string // for children at every level, whatever else says no
}

// secretNames are the variables that hold other tools' secrets.
var secretNames = []string{
	"*_TOKEN", "*_TOKEN_*", "TOKEN", "*TOKEN", "*_SECRET", "*_SECRETS", "*_SECRET_*", "SECRET_*", "SECRET", "*_PASSWORD", "*_PASSWORD_*", "*PASSWORD", "PASSWORD", "*_PASSWD", "*_PASS", "*_PASSPHRASE",
	"*_API_KEY", "*_APIKEY", "*_API_KEYS", "API_KEY", "APIKEY", "*_ACCESS_KEY", "*_ACCESS_KEY_*", "*_PRIVATE_KEY", "*_PRIVATE_KEY_*", "*_SECRET_KEY", "*_SIGNING_KEY", "*_ENCRYPTION_KEY", "*_MASTER_KEY",
	"*_AUTH_KEY", "*_ACCOUNT_KEY", "*_LICENSE_KEY", "*_DEPLOY_KEY", "*_SSH_KEY", "SSH_KEY", "*_KEY_BASE", "*_APP_KEY", "*_CREDENTIALS", "*_CREDENTIAL", "*_CREDENTIALS_*", "*_CREDS", "*_AUTH", "*_AUTHTOKEN", "*_COOKIE",
	"*_CONNECTION_STRING", "*_DSN", "*_WEBHOOK_URL", "*_WEBHOOK",
	"AWS_*", "AZURE_*", "ARM_CLIENT_*", "GOOGLE_*", "GCLOUD_*", "CLOUDSDK_AUTH_*", "GITHUB_TOKEN", "GITHUB_PAT", "GH_TOKEN", "GH_PAT", "GITLAB_*", "BITBUCKET_*", "NPM_TOKEN", "NODE_AUTH_TOKEN", "npm_config__auth*", "CARGO_REGISTRY_TOKEN", "CARGO_REGISTRIES_*", "TWINE_*", "PYPI_*", "GEM_HOST_API_KEY",
	"DOCKER_AUTH_CONFIG", "DOCKER_PASSWORD", "KUBECONFIG", "VAULT_*", "CONSUL_HTTP_*", "NOMAD_TOKEN", "TF_VAR_*", "TF_TOKEN_*", "DIGITALOCEAN_*", "HCLOUD_TOKEN", "LINODE_*", "CLOUDFLARE_*", "CF_API_*", "HEROKU_*", "FLY_*", "VERCEL_*", "NETLIFY_*", "SUPABASE_*", "FIREBASE_*",
	"SLACK_*", "DISCORD_*", "TELEGRAM_*", "TWILIO_*", "SENDGRID_*", "MAILGUN_*", "STRIPE_*", "PAYPAL_*", "DATADOG_*", "DD_API_KEY", "DD_APP_KEY", "SENTRY_AUTH_TOKEN", "SENTRY_DSN", "NEW_RELIC_*", "PAGERDUTY_*", "SNYK_*", "SONAR_*", "CODECOV_*", "JIRA_*", "LINEAR_*", "NOTION_*", "OP_SESSION_*", "OP_SERVICE_*", "BW_SESSION",
	"PGPASSWORD", "PGPASSFILE", "MYSQL_PWD", "REDISCLI_AUTH", "MONGODB_URI", "SSH_AUTH_SOCK", "SSH_ASKPASS", "GIT_ASKPASS", "GPG_AGENT_INFO", "GNUPGHOME", "NETRC", "KRB5CCNAME", "SOPS_*", "AGE_*", "ANSIBLE_VAULT_*",
	// keys of model providers, which an agent gets for itself only
	"ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "MISTRAL_*", "DEEPSEEK_*", "GROQ_*", "XAI_*", "OPENROUTER_*", "COHERE_*", "TOGETHER_*", "FIREWORKS_*", "HUGGING*", "HF_TOKEN", "REPLICATE_*",
}

// harmless are names that a pattern of secretNames would hide for nothing.
var harmless = []string{
	"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PAGER", "AWS_DEFAULT_OUTPUT", "AWS_CA_BUNDLE", "GOOGLE_CLOUD_PROJECT", "GITLAB_CI", "VERCEL_ENV", "HEROKU_APP_NAME",
}

// plain are the variables that paranoid lets through: what programs need to
// run at all, where toolchains are, and how the network is reached.
var plain = []string{
	"HOME", "PATH", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "TERMINFO", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CI", "EDITOR", "PAGER",
	"TMPDIR", "TMP", "TEMP", "XDG_*", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "GIT_SSL_CAINFO",
	"GOPATH", "GOROOT", "GOBIN", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOTOOLCHAIN", "CGO_*", "CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_*", "RUSTFLAGS", "JAVA_HOME", "M2_HOME", "MAVEN_OPTS", "GRADLE_USER_HOME", "GRADLE_OPTS",
	"NODE_PATH", "NODE_ENV", "NODE_OPTIONS", "NVM_DIR", "NVM_BIN", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "UV_CACHE_DIR", "PIP_CACHE_DIR",
	"GEM_HOME", "GEM_PATH", "RBENV_ROOT", "BUNDLE_PATH", "PERL5LIB", "DOTNET_ROOT", "ANDROID_HOME", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH", "MAKEFLAGS", "NIX_*", "LOCALE_ARCHIVE", "PAWL_PORT_BASE",
}

// proxies may hold a password, and nothing works without them.
var proxies = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY"}

// Environ returns what children of a level get of env (K=V each), in its
// order, and the names of what is withheld, sorted. needs are patterns of what
// the child itself works with, such as its provider's key. The result never
// has a value in a name; env is not changed.
func (l Level) Environ(env, needs []string, own Variables) (kept, withheld []string) {
	kept = make([]string, 0, len(env))
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if l.lets(strings.ToUpper(name), value, needs, own) {
			kept = append(kept, kv)
		} else {
			withheld = append(withheld, name)
		}
	}
	slices.Sort(withheld)
	return kept, slices.Compact(withheld)
}

func (l Level) lets(name, value string, needs []string, own Variables) bool {
	switch {
	case l == "" || l == Permissive, matches(own.Allow, name):
		return true
	case matches(own.Hide, name):
		return false
	case matches(needs, name), matches(proxies, name), matches(harmless, name) && l == Normal:
		return true
	case l == Paranoid && !matches(plain, name), matches(secretNames, name), secretValue(value):
		return false
	}
	return true
}

// secretValue is true for a value that shows what it is: a key of a known
// format, or an address with a password that is not on this machine.
func secretValue(value string) bool {
	if len(value) > maxLine {
		value = value[:maxLine]
	}
	if known, _ := knownSecret(value); known != "" {
		return true
	}
	_, rest, ok := strings.Cut(value, "://")
	if !ok {
		return false
	}
	authority, _, _ := strings.Cut(rest, "/")
	user, _, ok := cutLast(authority, "@")
	return ok && strings.Contains(user, ":") && !loopback(value)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// matches says whether a name, in upper case, fits one of the patterns.
func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if glob(strings.ToUpper(p), name) {
			return true
		}
	}
	return false
}

// glob matches a pattern in which * stands for any characters, in time linear
// in the name for each star.
func glob(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, head)
	if !ok {
		return false
	}
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], more
	}
}
