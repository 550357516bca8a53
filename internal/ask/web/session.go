package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Session is how a server is reached. It is kept in a file that only the user
// can read, so that another terminal can print the URL again, and so that
// pages that are open find their way back when the server is started again.
type Session struct {
	URL   string           `json:"url"` // e.g. http://127.0.0.1:7295
	Token string           `json:"token"`
	Owner process.Identity `json:"owner"`
}

// ErrNoSession is that no server was started here.
var ErrNoSession = errors.New("no server was started here")

// SessionDir returns the folder of the session, below the state folder of a repository.
// No agent may read it.
func SessionDir(stateDir string) string { return filepath.Join(stateDir, "serve") }

func sessionFile(stateDir string) string { return filepath.Join(SessionDir(stateDir), "session.json") }

// LoadSession reads the last session; ErrNoSession when there is none.
func LoadSession(stateDir string) (s Session, err error) {
	err = files.ReadJSON(sessionFile(stateDir), &s)
	if errors.Is(err, fs.ErrNotExist) {
		return s, ErrNoSession
	}
	if err != nil {
		return Session{}, fmt.Errorf("cannot read how the server is reached: %v", err)
	}
	return s, nil
}

// Alive is true while the server of the session runs, or may run.
func (s Session) Alive() bool { return s.Owner.PID != 0 && process.Alive(s.Owner) }

// Link is the address to open in a browser, once: it holds the token.
func (s Session) Link() string { return s.URL + "/?token=" + s.Token }

// Save stores the session for this user alone.
func (s Session) Save(stateDir string) error {
	err := os.MkdirAll(SessionDir(stateDir), 0o700)
	if err == nil {
		err = files.ReplaceJSON(sessionFile(stateDir), s, false)
	}
	if err != nil {
		return fmt.Errorf("cannot keep how the server is reached: %v", err)
	}
	return nil
}

// NewToken makes a token of 256 bits by chance.
func NewToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it cannot fail
	return hex.EncodeToString(b[:])
}

// IsToken reports whether the token has the form of those that NewToken makes.
func IsToken(token string) bool {
	b, err := hex.DecodeString(token)
	return err == nil && len(b) == 32
}

// makeKey derives a secret from the token. The token cannot be computed from it, so that
// what a browser keeps on disk is not the token.
func makeKey(use, token string) string {
	sum := sha256.Sum256([]byte("pawl " + use + "\x00" + token))
	return hex.EncodeToString(sum[:])
}

// equalSecrets compares in constant time.
func equalSecrets(given, want string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
