package safety

import (
	"strings"
	"testing"
)

// Settings of package managers keep what builds need, and lose what is secret.
func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"registry=https://npm.example.org/\n//npm.example.org/:_authToken=abc\n@a:registry=https://b/\n", "registry=https://npm.example.org/\n@a:registry=https://b/\n"},
		{"_auth = dXNlcjpwYXNz\nemail=a@b\n//r/:_password=x\n//r/:username=u\n", "email=a@b\n"},
		{"//r/:key=abc\n//r/:keyfile=/k\n//r/:certfile=/c\nkey=\"abc\"\nsave-exact=true\nauthor=ann\n", "key=\"\"\nsave-exact=true\nauthor=ann\n"},
		{"//r/ : _authToken = abc\n  //r/:_authToken=${NPM}\n//auth.corp.example/:always=1\n", "//auth.corp.example/:always=1\n"},
		{"[global]\nindex-url = https://u:pw@pypi.example.org/simple\n", "[global]\nindex-url = https://pypi.example.org/simple\n"},
		{"proxy=ann:pw@proxy.example:3128\nhttps-proxy = \"ann:p:w@proxy.example:3128\"\nnoproxy=a,b\n", "proxy=proxy.example:3128\nhttps-proxy = \"proxy.example:3128\"\nnoproxy=a,b\n"},
		{"index-url = https://auth.example.org:8443/simple?token=abc\n", "index-url = https://auth.example.org:8443/simple\n"},
		{"url = https://dl.example.io/aB3xY9kLmN0pQrS7tUvW/org/python\n", "url = https://dl.example.io/org/python\n"},
		{"<settings><mirrors><m/></mirrors>\n<servers>\n<server><password>x</password></server>\n</servers></settings>", "<settings><mirrors><m/></mirrors>\n</settings>"},
		{"<profile><repo.pass>x</repo.pass><jdk>17</jdk>\n<deployToken>\n x\n</deployToken></profile>", "<profile><repo.pass></repo.pass><jdk>17</jdk>\n<deployToken></deployToken></profile>"},
		{"<packageSources/>\n<packageSourceCredentials><a/></packageSourceCredentials>\n", "<packageSources/>\n\n"},
		{"<add key=\"http_proxy.password\" value=\"x\" />\n<add key=\"nuget\" value=\"https://n/\" />\n", "<add key=\"http_proxy.password\" value=\"\" />\n<add key=\"nuget\" value=\"https://n/\" />\n"},
		{"org.gradle.jvmargs=-Xmx2g -Dhttp.proxyPassword=pw -Dx=1\nossrhPassword=pw\nnexusToken=t\n", "org.gradle.jvmargs=-Xmx2g -Dhttp.proxyPassword= -Dx=1\n"},
		{"allprojects { repositories { maven { url 'https://r/'; credentials { username 'ann'; password 'pw' } } } }\n", "allprojects { repositories { maven { url 'https://r/'; credentials { username \"\"; password \"\" } } } }\n"},
		{"credentials {\n  username = \"ann\"\n  password = 'pw'\n}\n", "credentials {\n  username = \"\"\n  password = \"\"\n}\n"},
		{"export MAVEN_OPTS=\"-Xmx1g -Drepo.password=pw -Drepo.token='t'\"\n", "export MAVEN_OPTS=\"-Xmx1g -Drepo.password= -Drepo.token=\"\"\"\n"},
		{"[registries.corp]\nindex = \"sparse+https://c/\"\ntoken = \"abc\"\n", "[registries.corp]\nindex = \"sparse+https://c/\"\ntoken = \"\"\n"},
		{"[install.scopes]\ncorp = { token = \"abc\", url = \"https://r/\" }\nother = {url=\"https://u:pw@r/\",password='x'}\n", "[install.scopes]\ncorp = { token = \"\", url = \"https://r/\" }\nother = {url=\"https://r/\",password=\"\"}\n"},
		{"npmRegistryServer: \"https://r\"\nnpmAuthToken: \"t\"\n", "npmRegistryServer: \"https://r\"\nnpmAuthToken: \"\"\n"},
		{"npmScopes:\n  corp:\n    npmAuthIdent: ann:pw\n    npmAlwaysAuth: true\n    npmRegistryServer: https://r\nnpmRegistries:\n  //r:\n    npmAuthToken: >-\n      t\n      u\nnodeLinker: pnp\n", "npmScopes:\n  corp:\n    npmRegistryServer: https://r\nnpmRegistries:\n  //r:\nnodeLinker: pnp\n"},
		{"BUNDLE_PATH: \"vendor\"\nBUNDLE_GEMS__CORP__COM: \"u:pw\"\n", "BUNDLE_PATH: \"vendor\"\nBUNDLE_GEMS__CORP__COM: \"\"\n"},
		{"channels:\n  - https://conda.example.org/t/tk-123/main\n", "channels:\n  - https://conda.example.org/main\n"},
		{"GOPROXY=https://me:pw@proxy\nGOPRIVATE=corp\nGOAUTH=netrc\n", "GOPROXY=https://proxy\nGOPRIVATE=corp\n"},
		{"{\"http-basic\": {\"r\": {\"username\": \"ann\", \"password\": \"pw\"}}, \"sort-packages\": true}\n", "{\"http-basic\": {\"r\": {\"username\": \"\", \"password\": \"\"}}, \"sort-packages\": true}\n"},
		{"{<<\"$write_key\">>,<<\"abc\">>}.\n", "{<<\"$write_key\">>,<<\"\">>}.\n"},
		{"options(repos = c(CRAN = \"https://ann:pw@cran.example/\"), token = \"x\")\n", "options(repos = c(CRAN = \"https://cran.example/\"), token = \"\")\n"},
		{"plain = ghp_16C7e42F292c6912E7710c838347Ae178B4a\n", ""},
		{"[build]\nrustflags = [\"-C\", \"target-cpu=native\"]\n[target.x86_64-unknown-linux-gnu]\nlinker = \"clang\"\n", "[build]\nrustflags = [\"-C\", \"target-cpu=native\"]\n[target.x86_64-unknown-linux-gnu]\nlinker = \"clang\"\n"},
		{"strict-ssl=false\ncafile=/etc/ssl/ca.pem\nnode-linker=hoisted\n@corp:registry=https://r.example/npm/npm-all/\n", "strict-ssl=false\ncafile=/etc/ssl/ca.pem\nnode-linker=hoisted\n@corp:registry=https://r.example/npm/npm-all/\n"},
	} {
		if got := WithoutSecrets(c[0]); got != c[1] {
			t.Errorf("%q becomes\n%q, want\n%q", c[0], got, c[1])
		}
	}
}

func FuzzWithoutSecrets(f *testing.F) {
	f.Add("a: |\n token = \"x\"\n//u:p@h/?")
	f.Fuzz(func(t *testing.T, text string) {
		if got := WithoutSecrets("password=" + strings.ReplaceAll(text, "\n", "")); strings.Contains(got, "password="+text) && len(text) > 3 {
			t.Errorf("%q", got)
		}
	})
}
