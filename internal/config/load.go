package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"rouse"
)

// Paths says where configuration comes from.
type Paths struct {
	// Explicit is the file named by --config or ROUSE_CONFIG; it must exist.
	Explicit string
	// Own are the places of rouse.jsonc; those that exist are read.
	Own []string
	// OpenCode are the places of OpenCode's configuration, likewise.
	OpenCode []string
	// Home expands "~/"; Getenv reads a variable (os.Getenv).
	Home   string
	Getenv func(string) string
	// Accounts holds keys; nil for none.
	Accounts *Accounts
	// Extra providers are added to each load, behind the configured ones: the
	// drill provider. They replace a configured one of the same id.
	Extra []*Provider
	// Programs are the agent programs that are known by name.
	Programs []Program
	// LookPath finds a program; "" when it is not there. Nil finds none.
	LookPath func(name string) string
}

// DefaultPaths are the usual places for the user of this process.
func DefaultPaths(getenv func(string) string) Paths {
	home := getenv("HOME")
	dir := xdg(getenv, "XDG_CONFIG_HOME", home, ".config")
	own, opencode := filepath.Join(dir, "rouse"), filepath.Join(dir, "opencode")
	return Paths{
		Explicit: getenv("ROUSE_CONFIG"),
		Own:      []string{filepath.Join(own, "rouse.json"), filepath.Join(own, "rouse.jsonc")},
		OpenCode: []string{filepath.Join(opencode, "config.json"), filepath.Join(opencode, "opencode.json"), filepath.Join(opencode, "opencode.jsonc")},
		Home:     home,
		Getenv:   getenv,
	}
}

// DefaultData is the usual data folder: ROUSE_DATA, else $XDG_DATA_HOME/rouse,
// else ~/.local/share/rouse.
func DefaultData(getenv func(string) string) string {
	if dir := getenv("ROUSE_DATA"); dir != "" {
		return dir
	}
	return filepath.Join(xdg(getenv, "XDG_DATA_HOME", getenv("HOME"), ".local/share"), "rouse")
}

// xdg ignores a relative variable, as the specification demands.
func xdg(getenv func(string) string, name, home, fallback string) string {
	if dir := getenv(name); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(home, fallback)
}

// Load reads all sources. An error is Invalid and its message names file,
// line, column and key; findings that stop nothing are in Warnings.
func Load(p Paths) (*Config, error) {
	if p.Getenv == nil {
		p.Getenv = os.Getenv
	}
	var f file
	c := &Config{}
	where := map[string]string{}
	read := func(name string, strict, must bool) error {
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) && !must {
			return nil
		}
		if err != nil {
			return unreadable(name, err)
		}
		src := &source{name: name, dir: filepath.Dir(name), text: text, strict: strict, where: where,
			refs: refs{getenv: p.Getenv, home: p.Home, open: openFile}}
		var into any = &f
		if !strict {
			into = f.view()
		}
		err = src.read(into)
		c.Warnings = append(c.Warnings, src.warnings...)
		c.Files = append(c.Files, name)
		return err
	}
	for _, name := range p.OpenCode {
		if err := read(name, false, false); err != nil {
			return nil, err
		}
	}
	for _, name := range p.Own {
		if err := read(name, true, false); err != nil {
			return nil, err
		}
	}
	if p.Explicit != "" {
		if err := read(p.Explicit, true, true); err != nil {
			return nil, err
		}
	}
	return c, c.build(p, &f, where)
}

func unreadable(name string, err error) error {
	why := "cannot be read"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		why = "does not exist"
	case errors.Is(err, fs.ErrPermission):
		why = "may not be read"
	}
	e := rouse.Errorf(rouse.Invalid, op, "the configuration file %s %s", name, why)
	e.Err = err
	return e
}

// build turns the merged files into the configuration.
func (c *Config) build(p Paths, f *file, where map[string]string) error {
	c.Server, c.Limits, c.Retention, c.Log = f.Server, f.Limits, f.Retention, f.Log
	c.fill()
	if err := c.check(where); err != nil {
		return err
	}
	b := &builder{file: f, where: where, getenv: p.Getenv, accounts: p.Accounts, stored: map[string]bool{}}
	if p.Accounts != nil {
		stored, err := p.Accounts.List()
		if err != nil {
			b.warn("", "the account store cannot be read: "+rouse.SafeMessage(err))
		}
		for _, a := range stored {
			b.stored[a.Provider] = true
		}
	}
	c.Providers = withExtra(b.providers(), p.Extra)
	c.Model, c.SmallModel = b.modelRef("model", f.Model), b.modelRef("small_model", f.Small)
	c.Permission = f.Rules.list
	c.Agents = b.agents()
	programs, err := b.programs(p)
	if err != nil {
		return err
	}
	c.withPrograms(b, programs)
	c.Warnings = append(c.Warnings, b.warnings...)
	for _, path := range []string{"model", "small_model"} {
		ref := map[string]rouse.ModelRef{"model": c.Model, "small_model": c.SmallModel}[path]
		if ref.IsZero() {
			continue
		}
		if _, err := c.Resolve(ref); err != nil {
			b.warnings = nil
			b.warn(path, path+": "+rouse.SafeMessage(err))
			c.Warnings = append(c.Warnings, b.warnings...)
		}
	}
	return nil
}

// withExtra appends providers that come from the program itself; each takes
// the place of a configured one of the same id.
func withExtra(list, extra []*Provider) []*Provider {
	for _, e := range extra {
		replaced := false
		for i, p := range list {
			if p.ID == e.ID {
				list[i], replaced = e, true
			}
		}
		if !replaced {
			list = append(list, e)
		}
	}
	return list
}

// check refuses values that no part of the program could use.
func (c *Config) check(where map[string]string) error {
	fail := func(path, format string, args ...any) error {
		e := rouse.FieldError(op, path, format, args...)
		e.Msg = where[path] + ": " + path + ": " + e.Msg
		return e
	}
	switch {
	case c.Server.Port > 65535:
		return fail("server.port", "%d is no port: use 1 to 65535", c.Server.Port)
	case !oneOf(c.Log.Level, "debug", "info", "warn", "error"):
		return fail("log.level", "%s: use debug, info, warn or error", quote(c.Log.Level))
	case !oneOf(c.Log.Format, "text", "json"):
		return fail("log.format", "%s: use text or json", quote(c.Log.Format))
	}
	return nil
}

func oneOf(v string, allowed ...string) bool {
	for _, a := range allowed {
		if v == a {
			return true
		}
	}
	return false
}

// syntaxPlace is how the parser names the place of a syntax error.
var syntaxPlace = regexp.MustCompile(`^(?:hujson: )?line (\d+), column (\d+): `)

// syntaxError turns the parser's error into "file:line:column: what".
func syntaxError(name string, err error) error {
	text := err.Error()
	if m := syntaxPlace.FindStringSubmatch(text); m != nil {
		name, text = name+":"+m[1]+":"+m[2], text[len(m[0]):]
	}
	return rouse.Errorf(rouse.Invalid, op, "%s: %s", name, strings.TrimPrefix(text, "hujson: "))
}
