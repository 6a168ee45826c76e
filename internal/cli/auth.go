package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/mattn/go-isatty"

	"rouse"
	"rouse/internal/client"
	"rouse/internal/config"
)

type authCmd struct {
	Login  authLogin  `cmd:"" help:"Keep the key of a provider."`
	List   authList   `cmd:"" help:"List the providers that have a key here."`
	Logout authLogout `cmd:"" help:"Forget the key of a provider."`
}

func (authCmd) Help() string {
	return `Keys are kept in the system's keyring where one answers, else in accounts.json
(0600) in the data folder. They are never printed.`
}

type authLogin struct {
	Provider string `arg:"" help:"The provider's id, such as anthropic."`
}

func (authLogin) Help() string {
	return `The key is asked for without echo, or read from stdin when that is piped.

Examples:
  rouse auth login anthropic
  pass show anthropic | rouse auth login anthropic`
}

// Run keeps a key.
func (c *authLogin) Run(a *app) error {
	key, err := a.secret("Key of " + c.Provider + ": ")
	if err != nil {
		return err
	}
	acc, err := config.OpenAccounts(a.data(), a.getenv).Put(a.ctx, c.Provider, key, time.Now())
	if err != nil {
		return err
	}
	where := "accounts.json in the data folder"
	if acc.Store == "keyring" {
		where = "the system's keyring"
	}
	a.notef("the key of %s is kept in %s", c.Provider, where)
	if !a.isKnown(c.Provider) {
		a.notef("! no provider of that name is known or configured; `rouse providers` lists them")
	}
	return a.reloadServer(c.Provider)
}

// isKnown says whether a key of that name can be of use.
func (a *app) isKnown(id string) bool {
	if slices.ContainsFunc(config.KnownProviders(), func(k config.Known) bool { return k.ID == id }) {
		return true
	}
	c, err := config.Load(a.paths())
	if err != nil {
		return true // that is not the place to complain about the configuration
	}
	p, ok := c.Provider(id)
	return ok && (p.Unusable == "" || p.BaseURL != "")
}

// secret reads one line, without echo on a terminal.
func (a *app) secret(prompt string) (string, error) {
	if f, ok := a.in.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		fmt.Fprint(a.err, prompt)
		text, err := term.ReadPassword(f.Fd())
		fmt.Fprintln(a.err)
		if err != nil {
			return "", usage("the key cannot be read from the terminal")
		}
		return strings.TrimSpace(string(text)), nil
	}
	line, err := bufio.NewReader(io.LimitReader(a.in, 64<<10)).ReadString('\n')
	if line = strings.TrimSpace(line); line == "" {
		if err != nil && err != io.EOF {
			return "", usage("the key cannot be read from stdin")
		}
		return "", usage("there is no key: type it on a terminal or pipe it in")
	}
	return line, nil
}

// reloadServer tells a server that runs on the data folder that keys changed.
// For a new key it waits until the server can use the provider, a moment.
func (a *app) reloadServer(login string) error {
	run, err := client.ReadRunning(a.data())
	if err != nil {
		return nil // none runs
	}
	cl, err := client.Find(client.Where{Data: a.data(), Getenv: func(string) string { return "" }})
	if err != nil {
		return nil
	}
	defer cl.Close()
	if _, err := cl.Health(a.ctx); err != nil {
		return nil // what is written there is out of date
	}
	p, err := os.FindProcess(run.PID)
	if err == nil {
		err = p.Signal(hangup)
	}
	if err != nil {
		a.notef("! the running server could not be told; restart it, or send it SIGHUP")
		return nil
	}
	if login == "" {
		a.notef("the running server reads its providers again")
		return nil
	}
	if a.connected(cl, login) {
		a.notef("the running server can use it now")
	} else {
		a.notef("! the running server was told, but cannot use %s; see `rouse providers`", login)
	}
	return nil
}

// connected waits up to two seconds until the server can use a provider.
func (a *app) connected(cl *client.Client, provider string) bool {
	ctx, cancel := context.WithTimeout(a.ctx, 2*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := cl.Providers(ctx)
		if err == nil && slices.Contains(list.Connected, provider) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

type authList struct {
	JSON bool `name:"json" help:"Print {accounts}."`
}

func (authList) Help() string {
	return `Example:
  rouse auth list`
}

// Run lists accounts, without keys.
func (c *authList) Run(a *app) error {
	list, err := config.OpenAccounts(a.data(), a.getenv).List()
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(map[string]any{"accounts": list})
	}
	if len(list) == 0 {
		a.notef("no keys are kept here")
		return nil
	}
	rows := make([][]string, len(list))
	for i, acc := range list {
		rows[i] = []string{acc.Provider, acc.Store, acc.Updated.Format(time.DateTime)}
	}
	return a.table([]string{"PROVIDER", "KEPT IN", "SINCE"}, rows)
}

type authLogout struct {
	Provider string `arg:"" help:"The provider's id."`
}

func (authLogout) Help() string {
	return `Example:
  rouse auth logout anthropic`
}

// Run forgets a key.
func (c *authLogout) Run(a *app) error {
	err := config.OpenAccounts(a.data(), a.getenv).Delete(a.ctx, c.Provider)
	if rouse.KindOf(err) == rouse.NotFound && err != nil {
		return &exit{exitRefused, err}
	}
	if err != nil {
		return err
	}
	a.notef("the key of %s is forgotten", c.Provider)
	return a.reloadServer("")
}
