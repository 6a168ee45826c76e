// Package cli is the command line: every command is a struct that kong fills
// and a Run that talks to a server through internal/client. What is printed to
// stdout is the answer; everything about how it came is on stderr.
package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"rouse"
	"rouse/internal/client"
	"rouse/internal/config"
	"rouse/internal/daemon"
)

// root is all commands.
type root struct {
	Server string `help:"Address of the server (default: $$ROUSE_SERVER, else the one that runs on the data folder)." placeholder:"URL"`
	Token  string `help:"Token of the server (default: $$ROUSE_TOKEN, $$OPENCODE_SERVER_PASSWORD, else the data folder's)." placeholder:"TOKEN"`
	Data   string `help:"Data folder (default: $$ROUSE_DATA, else $$XDG_DATA_HOME/rouse)." placeholder:"DIR"`
	Config string `help:"Configuration file, on top of the usual ones (default: $$ROUSE_CONFIG)." placeholder:"FILE"`

	Serve      serveCmd      `cmd:"" help:"Run the server."`
	Run        runCmd        `cmd:"" help:"Send one prompt and stream the answer to its end."`
	Launch     launchCmd     `cmd:"" help:"Start a session headless and check that it generates."`
	Ps         psCmd         `cmd:"" help:"List sessions and what each one does."`
	Top        topCmd        `cmd:"" help:"Show what busy sessions do, live."`
	Health     healthCmd     `cmd:"" help:"Say what a session does, with the evidence."`
	Wait       waitCmd       `cmd:"" help:"Wait until a session reaches something."`
	Tail       tailCmd       `cmd:"" help:"Follow what sessions say and do."`
	Messages   messagesCmd   `cmd:"" help:"Print a session's messages."`
	Abort      abortCmd      `cmd:"" help:"End the running turn of a session."`
	Pause      pauseCmd      `cmd:"" help:"Let a session finish its turn and start no other."`
	Resume     resumeCmd     `cmd:"" help:"Run what waits in a paused session."`
	Incidents  incidentsCmd  `cmd:"" help:"What went wrong, and what can be done about it."`
	Rescue     rescueCmd     `cmd:"" help:"End a hung turn and wake the session with facts."`
	Drain      drainCmd      `cmd:"" help:"Let running turns end, then stop the server."`
	Backup     backupCmd     `cmd:"" help:"Copy the database, also of a running server."`
	Restore    restoreCmd    `cmd:"" help:"Put a backup in place of the database."`
	Models     modelsCmd     `cmd:"" help:"List models."`
	Providers  providersCmd  `cmd:"" help:"List providers and whether each can take work."`
	Agents     agentsCmd     `cmd:"" help:"List agents."`
	Walls      wallsCmd      `cmd:"" help:"List usage limits that are known to stand, and close them."`
	Preflight  preflightCmd  `cmd:"" help:"Ask whether a model can take work now."`
	Explain    explainCmd    `cmd:"" help:"Say what Rouse makes of evidence."`
	Auth       authCmd       `cmd:"" help:"Keep the keys of providers."`
	Tokens     tokenCmd      `cmd:"" name:"token" help:"Print the token of the data folder's server."`
	Doctor     doctorCmd     `cmd:"" help:"Check this installation and say what to do."`
	Drill      drillCmd      `cmd:"" help:"Practise on simulated providers."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
	Completion completionCmd `cmd:"" help:"Print a completion script for a shell."`
}

// app is what every command gets.
type app struct {
	ctx    context.Context
	in     io.Reader
	out    io.Writer
	err    io.Writer
	getenv func(string) string
	root   *root
	model  *kong.Application
	style  style // of stderr

	leaving *leaving
}

// Main runs the command line given without the program's name and gives the
// exit code. ctx ends it as Ctrl-C does.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	if runtime.GOOS == "windows" {
		fmt.Fprintln(stderr, "rouse: Windows is not supported: process groups and signals are needed that it does not have. Use WSL.")
		return exitUsage
	}
	type halt int // kong ends the program after --help; here it ends Main
	defer func() {
		switch r := recover().(type) {
		case nil:
		case halt:
			code = int(r)
		default:
			panic(r)
		}
	}()
	var r root
	parser, err := kong.New(&r,
		kong.Name("rouse"),
		kong.Description("Runs coding agents headless and tells the truth about them."),
		kong.Writers(stdout, stderr),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), durations),
		kong.Exit(func(code int) { panic(halt(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
	)
	if err != nil {
		fmt.Fprintln(stderr, "rouse:", err)
		return exitInternal
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	for _, arg := range args {
		if !utf8.ValidString(arg) { // the parser would go on with another text
			fmt.Fprintf(stderr, "rouse: the argument %q is not valid UTF-8\n", rouse.Clip(arg, 100))
			return exitUsage
		}
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "rouse: %s\nTry `rouse --help`.\n", mistake(err))
		return exitUsage
	}
	last := &leaving{}
	ctx, stop := interruptible(ctx, last)
	defer stop()
	a := &app{ctx: ctx, leaving: last, in: stdin, out: stdout, err: stderr, getenv: os.Getenv, root: &r, model: parser.Model, style: styleOf(stderr, os.Getenv)}
	err = parsed.Run(a)
	if err != nil {
		if text := say(err); text != "" {
			fmt.Fprintln(stderr, "rouse: "+text)
		}
	}
	return codeOf(err)
}

// data is the data folder that is meant.
func (a *app) data() string {
	if a.root.Data != "" {
		return a.root.Data
	}
	return config.DefaultData(a.getenv)
}

// paths are the configuration's places, with the account store.
func (a *app) paths() config.Paths {
	p := config.DefaultPaths(a.getenv)
	if a.root.Config != "" {
		p.Explicit = a.root.Config
	}
	p.Accounts = config.OpenAccounts(a.data(), a.getenv)
	return daemon.WithPrograms(p)
}

// client finds the server that is meant.
func (a *app) client() (*client.Client, error) {
	return client.Find(client.Where{Server: a.root.Server, Token: a.root.Token, Data: a.data(), Getenv: a.getenv})
}

// notef says something about the course of things, on stderr.
func (a *app) notef(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }

// printJSON writes one value and a line feed.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return rouse.Wrap("cli: print", enc.Encode(v))
}
