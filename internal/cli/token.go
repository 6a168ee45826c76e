package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rouse"
	"rouse/internal/client"
)

type tokenCmd struct {
	Path bool `help:"Print where the token is kept instead."`
	Link bool `help:"Print a login link for a browser instead."`
	JSON bool `name:"json" help:"Print {token, path, link}."`
}

func (tokenCmd) Help() string {
	return `The token is made at the server's first start. OpenCode's clients take it as
OPENCODE_SERVER_PASSWORD.

Examples:
  OPENCODE_SERVER_PASSWORD=$(rouse token) opencode attach http://127.0.0.1:4096
  curl -H "Authorization: Bearer $(rouse token)" http://127.0.0.1:4096/session`
}

// loginLink carries the token in the form that the door accepts in a query.
func loginLink(base, token string) string {
	return base + "/?auth_token=" + base64.RawURLEncoding.EncodeToString([]byte("rouse:"+token))
}

// Run prints the token.
func (c *tokenCmd) Run(a *app) error {
	path := filepath.Join(a.data(), "token")
	run, err := client.ReadRunning(a.data())
	if err == nil && run.TokenFile != "" {
		path = run.TokenFile
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &exit{exitRefused, rouse.Errorf(rouse.NotFound, "token", "there is no token in the data folder yet: it is made when `rouse serve` starts for the first time")}
	}
	if err != nil {
		return &exit{exitRefused, &rouse.Error{Kind: rouse.Denied, Op: "token", Msg: "the token file cannot be read", Err: err}}
	}
	token := strings.TrimSpace(string(text))
	link := ""
	if run.URL != "" {
		link = loginLink(run.URL, token)
	}
	switch {
	case c.JSON:
		return a.printJSON(struct {
			Token string `json:"token"`
			Path  string `json:"path"`
			Link  string `json:"link,omitempty"`
		}{token, path, link})
	case c.Path:
		token = path
	case c.Link && link == "":
		return usage("no server runs on the data folder, so there is no address to link to")
	case c.Link:
		token = link
	}
	_, err = fmt.Fprintln(a.out, token)
	return rouse.Wrap("cli: print", err)
}
