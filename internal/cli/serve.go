package cli

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"

	"rouse"
	"rouse/internal/daemon"
)

type serveCmd struct {
	Host        string  `help:"Address to bind (default: 127.0.0.1, or server.host)." placeholder:"ADDR"`
	Port        *int    `short:"p" help:"Port to bind; 0 lets the system choose (default: 4096, or server.port)." placeholder:"PORT"`
	NoAuth      bool    `help:"Ask for no token. Only on loopback."`
	Drill       bool    `help:"Add the simulated provider drill, whose models fail in every way."`
	HoldOrphans bool    `name:"hold-orphans" help:"With --drill: keep the turns of dead servers as they are until POST /rouse/v1/drill/release."`
	Speed       float64 `name:"drill-speed" help:"With --drill: let the watch and the cancel ladder run this many times faster." placeholder:"N"`
	ReadyJSON   bool    `name:"ready-json" help:"Print one JSON line {url, pid, data, token_file} when requests are accepted, and nothing else on stdout."`
	LogLevel    string  `help:"debug, info, warn or error (default: info, or log.level)." enum:",debug,info,warn,error" default:""`
	LogFormat   string  `help:"text or json (default: text, or log.format)." enum:",text,json" default:""`
}

func (serveCmd) Help() string {
	return `Serves OpenCode's wire and Rouse's own API on one port. A token is made in the
data folder at the first start; every request needs it. One server per data
folder.

SIGTERM or Ctrl-C stops: running turns get a few seconds and are then marked
interrupted; a second signal ends at once. SIGHUP reads the configuration again;
a bad file keeps the old one.

Examples:
  rouse serve
  rouse serve --drill --port 0 --ready-json
  rouse serve --drill --drill-speed 60     # five minutes of silence in five seconds
  rouse serve --host 0.0.0.0 --data /srv/rouse`
}

// Run serves until it is told to stop.
func (c *serveCmd) Run(a *app) error {
	opts := daemon.Options{
		Paths: a.paths(), Host: c.Host, Port: -1, Data: firstText(a.root.Data, a.getenv("ROUSE_DATA")),
		NoAuth: c.NoAuth, Drill: c.Drill, DrillSpeed: c.Speed, HoldOrphans: c.HoldOrphans, LogTo: a.err,
	}
	opts.Paths.Accounts = nil // they are in the data folder, which the configuration may name
	if c.LogLevel != "" || c.LogFormat != "" {
		opts.Logger = newLogger(a, c.LogLevel, c.LogFormat)
	}
	switch {
	case c.HoldOrphans && !c.Drill:
		return usage("--hold-orphans is for drills only: use it with --drill")
	case c.Speed != 0 && !c.Drill:
		return usage("--drill-speed is for simulations only: use it with --drill")
	case c.Speed < 0 || c.Speed > 0 && c.Speed < 1:
		return usage("--drill-speed %g: use 1 or more", c.Speed)
	}
	if c.Port != nil {
		if opts.Port = *c.Port; opts.Port < 0 || opts.Port > 65535 {
			return usage("--port %d: use 0 to 65535", opts.Port)
		}
	}
	defer on(syscall.SIGPIPE, func() {})() // sessions go on when nobody reads the log
	stop, forget := func() {}, func() {}
	defer func() { stop(); forget() }()
	opts.Ready = func(r daemon.Ready) {
		forget = a.leaving.add(r.Sweep)
		// The server logs what came of it, also that a bad file kept the old one.
		stop = on(syscall.SIGHUP, func() { _ = r.Reload() })
		for _, w := range r.Warnings {
			a.notef("! %s", w)
		}
		c.ready(a, r)
	}
	return daemon.Run(a.ctx, opts)
}

// ready tells whoever started the server that it accepts requests.
func (c *serveCmd) ready(a *app, r daemon.Ready) {
	if c.ReadyJSON {
		_ = a.printJSON(struct {
			URL       string `json:"url"`
			PID       int    `json:"pid"`
			Data      string `json:"data"`
			TokenFile string `json:"token_file"`
		}{r.URL, r.PID, r.Data, r.TokenFile}) // a reader that went away does not stop the server
		return
	}
	st := styleOf(a.out, a.getenv)
	fmt.Fprintf(a.out, "rouse %s serves at %s\n", rouse.Version, st.bold(r.URL))
	fmt.Fprintf(a.out, "  data   %s\n", r.Data)
	switch {
	case r.NoAuth:
		fmt.Fprintf(a.out, "  %s\n", st.yellow("no token is asked for"))
	case r.NewToken:
		fmt.Fprintf(a.out, "  login  %s\n", loginLink(r.URL, r.Token))
	default:
		fmt.Fprintf(a.out, "  token  kept in %s; `rouse token` prints it\n", r.TokenFile)
	}
	if c.Drill {
		fmt.Fprintf(a.out, "  drill  rouse run -m drill/stream \"hello\"\n")
	}
}

// newLogger logs to stderr as the flags say.
func newLogger(a *app, level, format string) *slog.Logger {
	var l slog.Level
	_ = l.UnmarshalText([]byte(level)) // one of the flag's values; "" is info
	opts := &slog.HandlerOptions{Level: l}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(a.err, opts))
	}
	return slog.New(slog.NewTextHandler(a.err, opts))
}

// embedded is a server inside this process, for one command.
type embedded struct {
	ready daemon.Ready
	stop  context.CancelFunc
	ended chan error
}

// startEmbedded runs a server on a folder until stop, which waits for its end.
func startEmbedded(ctx context.Context, opts daemon.Options) (*embedded, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &embedded{stop: cancel, ended: make(chan error, 1)}
	ready := make(chan daemon.Ready, 1)
	opts.Ready = func(r daemon.Ready) { ready <- r }
	go func() { e.ended <- daemon.Run(ctx, opts) }() // waited for in close
	select {
	case e.ready = <-ready:
		return e, nil
	case err := <-e.ended:
		cancel()
		if err == nil {
			err = rouse.Errorf(rouse.Internal, "cli: embedded server", "the server ended before it was ready")
		}
		return nil, err
	}
}

// close stops the server and waits for it.
func (e *embedded) close() error {
	e.stop()
	return <-e.ended
}

// quiet is the logger of an embedded server: only what a person must know.
func (a *app) quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelError}))
}
