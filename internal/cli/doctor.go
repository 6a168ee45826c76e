package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"rouse"
	"rouse/internal/client"
	"rouse/internal/config"
)

type doctorCmd struct {
	JSON bool `name:"json" help:"Print {ok, checks}."`
}

func (doctorCmd) Help() string {
	return `Looks at the data folder, the configuration, the keys, the server and the tools
it needs; each line says what it found and what to do. Exits with 1 if something
must be mended before Rouse can work.

Example:
  rouse doctor`
}

// finding is one line of the doctor.
type finding struct {
	Check string `json:"check"`
	Level string `json:"level"` // ok, warn or fail
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"`
}

// Run checks everything.
func (c *doctorCmd) Run(a *app) error {
	var list []finding
	add := func(f ...finding) { list = append(list, f...) }
	add(checkData(a.data())...)
	_, err := os.Stat(a.data())
	noFolder := err == nil && !folder(a.data()) // nothing is kept in it: that is said above
	paths := a.paths()
	if noFolder {
		paths.Accounts = nil
	}
	conf, f := checkConfig(paths)
	add(f...)
	if conf != nil {
		connected, programs := askServer(a)
		add(checkProviders(conf, connected, programs)...)
	}
	if !noFolder {
		add(checkAccounts(a)...)
	}
	add(checkServer(a, conf)...)
	add(checkTools(a)...)
	failed := 0
	for _, f := range list {
		if f.Level == "fail" {
			failed++
		}
	}
	if c.JSON {
		if err := a.printJSON(map[string]any{"ok": failed == 0, "checks": list}); err != nil {
			return err
		}
	} else {
		a.findings(list)
	}
	if failed > 0 {
		return &exit{exitInternal, rouse.Errorf(rouse.Invalid, "doctor", "%d check(s) failed", failed)}
	}
	return nil
}

func (a *app) findings(list []finding) {
	st := styleOf(a.out, a.getenv)
	paint := map[string]func(string) string{"ok": st.green, "warn": st.yellow, "fail": st.red}
	for _, f := range list {
		fmt.Fprintf(a.out, "%s  %-10s %s\n", paint[f.Level](fmt.Sprintf("%-4s", f.Level)), f.Check, oneLine(f.Text))
		if f.Do != "" {
			fmt.Fprintf(a.out, "                  → %s\n", f.Do)
		}
	}
}

func checkConfig(paths config.Paths) (*config.Config, []finding) {
	conf, err := config.Load(paths)
	if err != nil {
		return nil, []finding{{"config", "fail", say(err), "mend the file"}}
	}
	text := "no file; the defaults hold"
	if len(conf.Files) > 0 {
		text = strings.Join(conf.Files, ", ")
	}
	out := []finding{{"config", "ok", text, ""}}
	for _, w := range conf.Warnings {
		out = append(out, finding{"config", "warn", w, ""})
	}
	return conf, out
}

// askServer gives the providers that a running server can give work to, which may be
// more than the configuration names, and the agent programs with what it knows
// of them; nil where none answers.
func askServer(a *app) (connected []string, programs []client.Program) {
	cl, err := a.client()
	if err != nil {
		return nil, nil // what there is to say is said of the server
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(a.ctx, 5*time.Second)
	defer cancel()
	list, err := cl.Providers(ctx)
	if err != nil {
		return nil, nil
	}
	programs, _ = cl.Programs(ctx) // without them, nothing is known of any
	return list.Connected, programs
}

func checkProviders(conf *config.Config, served []string, programs []client.Program) []finding {
	var out []finding
	usable := 0
	for _, p := range conf.Providers {
		if p.Unusable == "" {
			usable++
			if p.Program != "" {
				out = append(out, checkProgram(p, programs))
				continue
			}
			out = append(out, finding{"provider", "ok", fmt.Sprintf("%s: %d models, from %s", p.ID, len(p.Models), p.Source), ""})
			continue
		}
		out = append(out, finding{"provider", "warn", p.ID + ": " + p.Unusable, ""})
	}
	if usable == 0 && len(served) > 0 {
		out = append(out, finding{"provider", "ok", "none is configured that can take work; the server that runs has " + strings.Join(served, ", "), ""})
	} else if usable == 0 {
		out = append(out, finding{"provider", "warn", "no provider can take work", "rouse auth login PROVIDER, or try `rouse serve --drill`"})
	} else if ref, err := conf.Default(); err == nil {
		if _, err := conf.Resolve(ref); err != nil {
			out = append(out, finding{"provider", "fail", "the default " + say(err), "set model in rouse.jsonc"})
		}
	}
	return out
}

// checkProgram says of an agent program that is installed what the server knows.
func checkProgram(p *config.Provider, programs []client.Program) finding {
	program := client.Program{Name: p.Program}
	for _, x := range programs {
		if x.Name == p.Program {
			program = x
		}
	}
	switch state, why := probed(program); state {
	case "fails":
		return finding{"provider", "warn", p.ID + ": the agent program fails: " + why, ""}
	case "usable":
		return finding{"provider", "ok", p.ID + ": the agent program works, as of " + clock(program.Report.At), ""}
	default:
		return finding{"provider", "ok", p.ID + ": " + why, ""}
	}
}

func checkAccounts(a *app) []finding {
	list, err := config.OpenAccounts(a.data(), a.getenv).List()
	if err != nil {
		return []finding{{"accounts", "fail", say(err), ""}}
	}
	var out []finding
	ctx, cancel := context.WithTimeout(a.ctx, 5*time.Second)
	defer cancel()
	for _, acc := range list {
		if _, err := config.OpenAccounts(a.data(), a.getenv).Get(ctx, acc.Provider); err != nil {
			out = append(out, finding{"accounts", "warn", say(err), "unlock the keyring, or log in again with ROUSE_KEYRING=off"})
		}
	}
	if len(out) == 0 {
		out = append(out, finding{"accounts", "ok", fmt.Sprintf("%d key(s) kept here", len(list)), ""})
	}
	return out
}

func checkServer(a *app, conf *config.Config) []finding {
	cl, err := a.client()
	if errors.Is(err, client.ErrNoServer) {
		return checkPort(conf)
	}
	if err != nil {
		return []finding{{"server", "fail", say(err), ""}}
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(a.ctx, 5*time.Second)
	defer cancel()
	h, err := cl.Health(ctx)
	switch {
	case errors.Is(err, client.ErrUnreachable) && a.root.Server == "" && a.getenv("ROUSE_SERVER") == "":
		return append([]finding{{"server", "warn", "the server of the data folder ended without saying so", "it is recovered when it starts again"}}, checkPort(conf)...)
	case err != nil:
		return []finding{{"server", "fail", cl.URL() + ": " + say(err), ""}}
	}
	switch err := cl.Ready(ctx); {
	case rouse.KindOf(err) == rouse.Full:
		return []finding{{"server", "fail", cl.URL() + " answers, but its database refuses writes: no prompt is accepted, and no end of a turn is stored", "make room on the disk of its data folder; it goes on by itself"}}
	case err != nil:
		return []finding{{"server", "fail", cl.URL() + ": " + say(err), ""}}
	case h.Version != rouse.Version:
		return []finding{{"server", "warn", fmt.Sprintf("%s runs version %s, this is %s", cl.URL(), h.Version, rouse.Version), "restart it"}}
	}
	return []finding{{"server", "ok", cl.URL() + " answers", ""}}
}

func checkPort(conf *config.Config) []finding {
	if conf == nil {
		return nil
	}
	addr := net.JoinHostPort(conf.Server.Host, strconv.Itoa(conf.Server.Port))
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return []finding{{"server", "warn", "none runs, and " + addr + " cannot be bound: something else may use it", "rouse serve --port 0"}}
	}
	_ = l.Close()
	return []finding{{"server", "ok", "none runs; " + addr + " is free", ""}}
}

func checkTools(a *app) []finding {
	var out []finding
	for _, tool := range []struct{ name, level, without string }{
		{"sh", "fail", "the bash tool cannot run anything"},
		{"bash", "warn", "the bash tool falls back to sh"},
		{"git", "warn", "branches and worktrees are not recognised"},
	} {
		if path := look(a.getenv("PATH"), tool.name); path != "" {
			out = append(out, finding{"tools", "ok", tool.name + " is " + path, ""})
		} else {
			out = append(out, finding{"tools", tool.level, tool.name + " is not on the PATH: " + tool.without, "install " + tool.name})
		}
	}
	if runtime.GOOS != "linux" {
		out = append(out, finding{"system", "warn", runtime.GOOS + ": escaped processes are not swept by their marker", ""})
	}
	return out
}

// look finds a program on a PATH.
func look(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		full := filepath.Join(dir, name)
		if st, err := os.Stat(full); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return full
		}
	}
	return ""
}
