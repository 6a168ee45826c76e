package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"rouse"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completionCmd) Help() string {
	return `Examples:
  source <(rouse completion bash)
  rouse completion zsh > "${fpath[1]}/_rouse"
  rouse completion fish > ~/.config/fish/completions/rouse.fish`
}

// Run prints the script.
func (c *completionCmd) Run(a *app) error {
	words := commandWords(a.model.Node, nil)
	var b strings.Builder
	switch c.Shell {
	case "bash":
		bash(&b, words)
	case "zsh":
		b.WriteString("#compdef rouse\nautoload -U +X bashcompinit && bashcompinit\n")
		bash(&b, words)
	case "fish":
		fish(&b, words)
	}
	_, err := io.WriteString(a.out, b.String())
	return rouse.Wrap("cli: print", err)
}

// words are what may follow a command: its sub-commands and flags.
type words struct {
	path  []string
	subs  []*kong.Node
	flags []*kong.Flag
}

func commandWords(n *kong.Node, path []string) []words {
	w := words{path: path}
	for _, group := range n.AllFlags(true) {
		w.flags = append(w.flags, group...)
	}
	out := []words{}
	for _, sub := range n.Children {
		if sub.Type != kong.CommandNode || sub.Hidden {
			continue
		}
		w.subs = append(w.subs, sub)
		out = append(out, commandWords(sub, append(append([]string{}, path...), sub.Name))...)
	}
	return append([]words{w}, out...)
}

func (w words) all() string {
	var out []string
	for _, s := range w.subs {
		out = append(out, s.Name)
	}
	for _, f := range w.flags {
		out = append(out, "--"+f.Name)
	}
	return strings.Join(out, " ")
}

func bash(b *strings.Builder, list []words) {
	b.WriteString("_rouse() {\n  local cur=${COMP_WORDS[COMP_CWORD]} path= word\n" +
		"  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n" +
		"    case \"$path $word\" in\n")
	for _, w := range list {
		if len(w.path) > 0 {
			fmt.Fprintf(b, "      %q) path=%q ;;\n", " "+strings.Join(w.path, " "), " "+strings.Join(w.path, " "))
		}
	}
	b.WriteString("    esac\n  done\n  local words=\n  case \"$path\" in\n")
	for _, w := range list {
		path := ""
		if len(w.path) > 0 {
			path = " " + strings.Join(w.path, " ")
		}
		fmt.Fprintf(b, "    %q) words=%q ;;\n", path, w.all())
	}
	b.WriteString("  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n  [[ ${#COMPREPLY[@]} -eq 0 ]] && COMPREPLY=($(compgen -f -- \"$cur\"))\n}\ncomplete -o filenames -F _rouse rouse\n")
}

func fish(b *strings.Builder, list []words) {
	for _, w := range list {
		when := "__fish_use_subcommand"
		if len(w.path) > 0 {
			when = "__fish_seen_subcommand_from " + w.path[len(w.path)-1]
		}
		for _, s := range w.subs {
			fmt.Fprintf(b, "complete -c rouse -n %s -f -a %s -d %s\n", fishQuote(when), s.Name, fishQuote(s.Help))
		}
		for _, f := range w.flags {
			short := ""
			if f.Short != 0 {
				short = " -s " + string(f.Short)
			}
			fmt.Fprintf(b, "complete -c rouse -n %s -l %s%s -d %s\n", fishQuote(when), f.Name, short, fishQuote(f.Help))
		}
	}
}

func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
