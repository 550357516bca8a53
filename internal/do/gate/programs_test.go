package gate

import (
	"strings"
	"testing"
)

func TestPrograms(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"go test ./...":                                  "go",
		"uv run pytest && npm test":                      "uv npm",
		"cd web && CI=1 npm test | tee log; make check":  "npm tee make",
		"! test -f bad.txt":                              "",
		"! grep x y":                                     "",
		"./gradlew test":                                 "",
		".venv/bin/pytest":                               "",
		". .venv/bin/activate && make test":              "",
		"PATH=$PWD/bin:$PATH tool":                       "",
		"export PATH=bin && tool":                        "",
		"command -v tool || exit 0":                      "",
		"tool1 || tool2":                                 "tool1",
		"if true; then tool; fi":                         "",
		"for f in *; do tool $f; done":                   "",
		"tool $(other)":                                  "",
		`echo "a; tool" && grep 'x && y' z 2>&1`:         "grep",
		"f() { tool; }; f":                               "",
		"$TOOL x":                                        "",
		"exec tool":                                      "",
		"":                                               "",
		"mkdir -p build && cmake -S . -B build":          "mkdir cmake",
		"test -z \"$(gofmt -l .)\"":                      "",
		"go vet ./... > out.txt 2>&1\ngolangci-lint run": "go golangci-lint",
	} {
		if got := strings.Join(Programs(command), " "); got != want {
			t.Errorf("%q needs %q, want %q", command, got, want)
		}
	}
}
