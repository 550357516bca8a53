package prompt

import (
	"math"
	"os"
	"strings"
	"testing"
)

// What a public vocabulary of 200,000 entries makes of these texts.
var counted = []struct {
	text   string
	tokens int
}{
	{"", 0},
	{"a", 1},
	{"Hello, world!", 4},
	{"The quick brown fox jumps over the lazy dog.", 10},
	{"1234567890", 4},
	{"if err != nil {\n\treturn err\n}\n", 9},
	{"func main() {\n\tfmt.Println(\"hi\")\n}\n", 10},
	{"你好，世界", 3},
	{"안녕하세요", 2},
	{"Привет, мир!", 5},
}

func TestTokensOfKnownTexts(t *testing.T) {
	t.Parallel()
	for _, test := range counted {
		got := Tokens(test.text)
		if off := math.Abs(float64(got - test.tokens)); off > 1+0.3*float64(test.tokens) {
			t.Errorf("Tokens(%q) = %d, want about %d", test.text, got, test.tokens)
		}
	}
}

// English prose has about four characters to a token, code fewer, numbers and
// encoded data hardly two.
func TestTokensByKindOfText(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile("tokens_test.go")
	if err != nil {
		t.Fatal(err)
	}
	prose, _ := Builtin("act/edit-and-test")
	for _, test := range []struct {
		name, text string
		low, high  float64 // bytes to a token
	}{
		{"prose", prose, 4, 5},
		{"code", string(code), 2.5, 4},
		{"digits", strings.Repeat("314159", 100), 2.8, 3.5},
		{"base64", strings.Repeat("aGVsbG8gd29ybGQhIHRoaXMgaXMgYmFzZTY0Lg", 20), 1.2, 2.2},
		{"rule", strings.Repeat("=", 160), 10, 80},
		{"Chinese", strings.Repeat("程序在新的进程中启动代理并检查结果", 20), 2.5, 5},
		{"blank lines", strings.Repeat("\n", 1000), 500, 1001},
	} {
		got := float64(len(test.text)) / float64(Tokens(test.text))
		if got < test.low || got > test.high {
			t.Errorf("%s: %.2f bytes to a token, want %.1f to %.1f", test.name, got, test.low, test.high)
		}
	}
}

func TestTokensAllocatesNothing(t *testing.T) {
	text := strings.Repeat("Some text, 你好, \xff and 12345 numbers.\n", 100)
	if n := testing.AllocsPerRun(10, func() { Tokens(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 4230: "4,230", 100000: "100,000", 1234567: "1,234,567",
		-1: "-1", -999: "-999", -1000: "-1,000", math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := Thousands(n); got != want {
			t.Errorf("Thousands(%d) = %s, want %s", n, got, want)
		}
	}
}

// Every text that is not empty has a token, and none has many more than bytes.
func FuzzTokens(f *testing.F) {
	f.Add("Hello, world")
	f.Add("\n\n  \t\xff\xfe")
	f.Add("AAAAaaaa1111----")
	f.Fuzz(func(t *testing.T, text string) {
		if n := Tokens(text); (text == "") != (n == 0) || n > 3*len(text) {
			t.Errorf("Tokens(%q) = %d", text, n)
		}
	})
}

func BenchmarkTokens(b *testing.B) {
	code, err := os.ReadFile("template.go")
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat(string(code), 20)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if Tokens(text) == 0 {
			b.Fatal("none")
		}
	}
}

func BenchmarkCompose(b *testing.B) {
	in := small()
	in.Feedback = hard()
	in.Budget = 100_000
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compose(in); err != nil {
			b.Fatal(err)
		}
	}
}
