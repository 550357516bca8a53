package program

import (
	"bytes"
	"cmp"
	_ "embed" // of providers.json
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Read reads the file that says all of a program. own is the format of its stream, nil where
// that is another program's.
//
// Its keys are the fields of [Program] and of its parts. A door says in "to" which of
// providers.json it is like, and a service in "of"; with "keyed" the program also reaches all
// providers of that list whose key is set.
func Read(text string, own *Format) Program {
	p := Program{Own: own}
	in := struct {
		*Program
		Grace, Quiet    span
		Doors, Services []json.RawMessage
		Keyed           bool
	}{Program: &p}
	decodeStrictly([]byte(text), &in)
	p.Binary = cmp.Or(p.Binary, p.Name)
	p.Grace, p.Quiet = time.Duration(in.Grace), time.Duration(in.Quiet)
	p.Wrapped = lists.Each(p.Wrapped, platformWords(runtime.GOOS, runtime.GOARCH).Replace)
	p.Doors = lists.Each(in.Doors, readDoor)
	if in.Keyed {
		in.Services = append(in.Services, providers().Keyed...)
	}
	p.Services = lists.Each(in.Services, readService)
	return p
}

//go:embed providers.json
var providersFile []byte

// providers are those that several programs reach.
var providers = sync.OnceValue(func() (all struct {
	Doors, Services map[string]json.RawMessage
	Keyed           []json.RawMessage
}) {
	decodeStrictly(providersFile, &all)
	return all
})

func readDoor(text json.RawMessage) (d Door) {
	var like struct{ To string }
	_ = json.Unmarshal(text, &like) // what is wrong with it is seen below
	decodeStrictly(providers().Doors[like.To], &d)
	decodeStrictly(text, &d)
	return d
}

func readService(text json.RawMessage) (s Service) {
	var like struct{ Of string }
	if _ = json.Unmarshal(text, &like); like.Of != "" {
		decodeStrictly(providers().Services[like.Of], &s)
	}
	decodeStrictly(text, &s)
	return s
}

func decodeStrictly(text []byte, into any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		panic(fmt.Sprintf("program: %v: %s", err, text)) // our own file, read by every test
	}
}

// span is a duration with its unit.
type span time.Duration

// UnmarshalText reads one such as 5s.
func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = span(d)
	return err
}

// UnmarshalText reads a key such as "NAME", or "NAME in Header" where the header is not its protocol's.
func (k *Key) UnmarshalText(text []byte) error {
	k.Variable, k.Header, _ = strings.Cut(string(text), " in ")
	return nil
}

// UnmarshalJSON reads a part: the members of an object, or the elements of a list.
func (p *Part) UnmarshalJSON(text []byte) error {
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return err
	}
	*p = Part(b.String()[1 : b.Len()-1])
	return nil
}

// platformWords fills in what packages of npm call a machine.
func platformWords(system, arch string) *strings.Replacer {
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
	target := cmp.Or(map[string]string{"darwin": "apple-darwin"}[system], "unknown-linux-musl")
	arch = cmp.Or(map[string]string{"amd64": "x64"}[arch], arch)
	return strings.NewReplacer("{os}", system, "{arch}", arch, "{target}", machine+"-"+target)
}
