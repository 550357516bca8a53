package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tools is a program of the scripts: it calls pawl's tools with the official client.
//
//	tools [-http] TOOL ARGUMENTS [TOOL ARGUMENTS …]
//
// It starts 'pawl mcp', or asks the server that 'pawl serve' runs. The texts of the results
// go to stdout; it fails when pawl refuses a call.
func tools() {
	if err := calling(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func calling(args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var to mcp.Transport
	if len(args) > 0 && args[0] == "-http" {
		args = args[1:]
		out, err := exec.Command("pawl", "serve", "--url", "--json").Output()
		if err != nil {
			return fmt.Errorf("no server: %v", err)
		}
		var server struct{ Address, Token string }
		if err := json.Unmarshal(out, &server); err != nil {
			return err
		}
		to = &mcp.StreamableClientTransport{Endpoint: server.Address + "/mcp",
			HTTPClient: &http.Client{Transport: &bearer{token: server.Token}}}
	} else {
		pawl := exec.Command("pawl", "mcp")
		pawl.Stderr = os.Stderr
		to = &mcp.CommandTransport{Command: pawl, TerminateDuration: time.Minute}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "script", Version: "1"}, nil).Connect(ctx, to, nil)
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(args) && err == nil; i += 2 {
		err = call(ctx, session, args[i], args[i+1])
	}
	return errors.Join(err, session.Close())
}

func call(ctx context.Context, session *mcp.ClientSession, tool, arguments string) error {
	r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		return err
	}
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			fmt.Println(t.Text)
		}
	}
	if r.IsError {
		return errors.New("refused")
	}
	return nil
}

// bearer sends a token with each request.
type bearer struct {
	http.Transport

	token string
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.Transport.RoundTrip(r)
}
