package native

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rouse"
	"rouse/internal/proc"
)

// Bounds of the bash tool.
const (
	bashTimeout = 2 * time.Minute
	bashLongest = time.Hour
	bashOutput  = 30 << 10 // bytes that the model sees
	longSleep   = 120      // seconds
)

var bashTool = tool{
	name: "bash",
	description: `Runs a script in bash, in the working directory. The output of both streams comes back together, its middle left out when it is long.
Give a short description of what it does. It ends after two minutes unless timeout says otherwise (milliseconds, at most an hour).
Use the file tools to read, change and find files. Quote paths with blanks. Processes left in the background end with the session.
Do not wait with sleep for something that takes long: end the turn and come back to it.`,
	schema: schemaOf("command*:string:The script", "description:string:What it does, in five to ten words",
		"timeout:number:Milliseconds until it is ended", "workdir:string:The directory to run in instead of the working directory"),
	run: runBash,
}

// bashState is the metadata of a call.
type bashState struct {
	Output      string `json:"output"`
	Description string `json:"description,omitempty"`
}

// bashEnd is the metadata of a call that ended. Exit is null when it was ended
// by us.
type bashEnd struct {
	bashState
	Exit      *int `json:"exit"`
	Truncated bool `json:"truncated"`
}

func runBash(k *call) (result, error) {
	var in struct {
		Command, Description, Workdir string
		Timeout                       float64
	}
	if err := k.decode(&in); err != nil {
		return result{}, err
	}
	if strings.TrimSpace(in.Command) == "" {
		return result{}, k.missing("command")
	}
	dir := k.t.c.spec.Directory
	if in.Workdir != "" {
		dir = k.t.resolve(in.Workdir)
	}
	if err := k.permitScript(in.Command, dir); err != nil {
		return result{}, err
	}
	timeout := bashTimeout
	if in.Timeout > 0 {
		timeout = min(time.Duration(min(in.Timeout, 1e9))*time.Millisecond, bashLongest)
	}
	return k.script(in.Command, in.Description, dir, timeout)
}

// permitScript asks for what a script does: leaving the directory, then each of
// its commands.
func (k *call) permitScript(script, dir string) error {
	if err := k.enter(dir, true); err != nil {
		return err
	}
	for _, path := range outsidePaths(script) {
		if err := k.enter(k.t.resolve(path), false); err != nil {
			return err
		}
	}
	w := wish{permission: "bash", patterns: commandsOf(script), metadata: map[string]string{"command": script}}
	for _, p := range w.patterns {
		first, _, _ := strings.Cut(p, " ")
		if a := first + " *"; !slices.Contains(w.always, a) {
			w.always = append(w.always, a)
		}
	}
	return k.permit(w)
}

// script runs a script and reports its output while it grows.
func (k *call) script(script, description, dir string, timeout time.Duration) (result, error) {
	k.running(description, bashState{Description: description})
	k.t.c.mu.Lock()
	k.t.c.ran = true
	k.t.c.mu.Unlock()
	env := append(slices.Clone(k.t.c.spec.Env), sessionVariable+"="+k.t.p.SessionID)
	res, err := proc.Run(k.ctx, proc.Command{Dir: dir, Shell: script, Env: env, Timeout: timeout, MaxOutput: bashOutput,
		OnOutput: func(s string) { k.progress("", bashState{Output: s, Description: description}) }})
	out := result{title: script, output: res.Output}
	end := bashEnd{bashState: bashState{Output: res.Output, Description: description}, Truncated: res.Truncated}
	if !res.Killed {
		end.Exit = &res.Exit
	}
	out.metadata = end
	switch {
	case err != nil && k.ctx.Err() == nil:
		why := cmp.Or(rouse.SafeMessage(err), "it could not be started")
		return result{}, toolError("The command could not be run: " + why)
	case err != nil:
		out.output += "\n\n<shell_metadata>\nThe turn was cancelled while the command ran.\n</shell_metadata>"
		return out, context.Cause(k.ctx)
	case res.TimedOut:
		out.output += fmt.Sprintf("\n\n<shell_metadata>\nThe command was ended because it ran longer than %s.\n</shell_metadata>", timeout)
	case res.Exit != 0:
		out.output += fmt.Sprintf("\n\n<shell_metadata>\nExit code %d\n</shell_metadata>", res.Exit)
	}
	if s := longestSleep(script); s > longSleep {
		out.output += fmt.Sprintf("\n\n<shell_warning>\nThe script sleeps for %d seconds. A turn should not wait longer than %d: end it and come back later.\n</shell_warning>", s, longSleep)
	}
	return out, nil
}

var sleepWord = regexp.MustCompile(`^sleep((?:\s+\d+(?:\.\d+)?[smhd]?)+)$`)

// longestSleep is the longest bare sleep of a script, in seconds.
func longestSleep(script string) int {
	longest := 0.0
	for _, c := range commandsOf(script) {
		m := sleepWord.FindStringSubmatch(c)
		if m == nil {
			continue
		}
		sum := 0.0
		for _, f := range strings.Fields(m[1]) {
			unit := map[byte]float64{'s': 1, 'm': 60, 'h': 3600, 'd': 86400}[f[len(f)-1]]
			if unit == 0 {
				unit = 1
			}
			n, _ := strconv.ParseFloat(strings.TrimRight(f, "smhd"), 64) // the pattern lets numbers pass only
			sum += n * unit
		}
		longest = max(longest, sum)
	}
	return int(min(longest, 1e9))
}
