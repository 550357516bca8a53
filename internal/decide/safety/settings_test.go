package safety

import "testing"

// Settings of package managers keep what builds need, and lose what is secret.
func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"registry=https://npm.example.org/\n//npm.example.org/:_authToken=abc\n@a:registry=https://b/\n", "registry=https://npm.example.org/\n@a:registry=https://b/\n"},
		{"_auth = dXNlcjpwYXNz\nemail=a@b\n//r/:_password=x\n//r/:username=u\n", "email=a@b\n"},
		{"[global]\nindex-url = https://u:pw@pypi.example.org/simple\n", "[global]\nindex-url = https://pypi.example.org/simple\n"},
		{"<settings><mirrors><m/></mirrors>\n<servers>\n<server><password>x</password></server>\n</servers></settings>", "<settings><mirrors><m/></mirrors>\n</settings>"},
		{"<packageSources/>\n<packageSourceCredentials><a/></packageSourceCredentials>\n", "<packageSources/>\n\n"},
		{"org.gradle.jvmargs=-Xmx2g\nossrhPassword=pw\nnexusToken=t\n", "org.gradle.jvmargs=-Xmx2g\n"},
		{"[registries.corp]\nindex = \"sparse+https://c/\"\ntoken = \"abc\"\n", "[registries.corp]\nindex = \"sparse+https://c/\"\ntoken = \"\"\n"},
		{"npmRegistryServer: \"https://r\"\nnpmAuthToken: \"t\"\n", "npmRegistryServer: \"https://r\"\nnpmAuthToken: \"\"\n"},
		{"BUNDLE_PATH: \"vendor\"\nBUNDLE_GEMS__CORP__COM: \"u:pw\"\n", "BUNDLE_PATH: \"vendor\"\nBUNDLE_GEMS__CORP__COM: \"\"\n"},
		{"channels:\n  - https://conda.example.org/t/tk-123/main\n", "channels:\n  - https://conda.example.org/main\n"},
		{"GOPROXY=https://me:pw@proxy\nGOPRIVATE=corp\nGOAUTH=netrc\n", "GOPROXY=https://proxy\nGOPRIVATE=corp\n"},
		{"plain = ghp_16C7e42F292c6912E7710c838347Ae178B4a\n", ""},
	} {
		if got := WithoutSecrets(c[0]); got != c[1] {
			t.Errorf("%q becomes %q, want %q", c[0], got, c[1])
		}
	}
}
