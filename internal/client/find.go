package client

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rouse"
)

// Where says how to find a server; each field may be empty.
type Where struct {
	Server string // --server; else ROUSE_SERVER; else the data folder's
	Token  string // --token; else ROUSE_TOKEN; else OPENCODE_SERVER_PASSWORD; else the token file
	Data   string // the data folder whose server is meant
	Getenv func(string) string
}

// Running is what a server writes into its data folder while it runs.
type Running struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
	// TokenFile is empty when the server asks for no token.
	TokenFile string `json:"token_file"`
}

// ErrNoServer is in the chain of Find's error when nothing names a server.
var ErrNoServer = errors.New("no server named")

// Find gives a client of the server that is meant. It calls nobody: a server
// that is named but does not answer is the first call's error.
func Find(w Where) (*Client, error) {
	token := firstOf(w.Token, w.Getenv("ROUSE_TOKEN"), w.Getenv("OPENCODE_SERVER_PASSWORD"))
	server := firstOf(w.Server, w.Getenv("ROUSE_SERVER"))
	run, err := ReadRunning(w.Data)
	if server == "" {
		if err != nil {
			return nil, err
		}
		server = run.URL
	}
	if token == "" && err == nil && (run.URL == strings.TrimRight(server, "/") || server == run.URL) {
		token = readToken(run.TokenFile)
	}
	return New(server, token)
}

// ReadRunning reads server.json of a data folder. No such file is an
// Unavailable error with ErrNoServer and ErrUnreachable in its chain.
func ReadRunning(data string) (Running, error) {
	const op = "client: find server"
	var run Running
	text, err := os.ReadFile(filepath.Join(data, "server.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return run, &rouse.Error{Kind: rouse.Unavailable, Op: op, Err: errors.Join(ErrNoServer, ErrUnreachable),
			Msg: "no server runs on the data folder " + data + ": start one with `rouse serve`, or name one with --server"}
	}
	if err == nil {
		err = json.Unmarshal(text, &run)
	}
	if err != nil || run.URL == "" {
		return run, &rouse.Error{Kind: rouse.Unavailable, Op: op, Err: errors.Join(ErrNoServer, ErrUnreachable, err),
			Msg: "server.json in the data folder " + data + " cannot be read"}
	}
	return run, nil
}

// readToken gives "" when the file cannot be read: the server's own answer
// then says that a token is missing.
func readToken(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
