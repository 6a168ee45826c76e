package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"rouse"
)

type incidentsCmd struct {
	List incidentsList `cmd:"" default:"withargs" help:"List incidents, newest first."`
	Act  incidentsAct  `cmd:"" help:"Do what an incident offers."`
}

func (incidentsCmd) Help() string {
	return `An incident is a turn that failed or was interrupted, until a later turn of its
session completes.

Examples:
  rouse incidents
  rouse incidents act inc_0123 resume
  rouse incidents act inc_0123 continue_with -m anthropic/claude-sonnet-4-6`
}

type incidentsList struct {
	Status  string `enum:"open,resolved,superseded,all" default:"open" help:"open, resolved, superseded or all."`
	Session string `help:"Only this session's." placeholder:"ID"`
	JSON    bool   `name:"json" help:"Print {incidents: […]} as the API gives it."`
}

// Run lists.
func (c *incidentsList) Run(a *app) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	status := c.Status
	if status == "all" {
		status = ""
	}
	list, raw, err := cl.Incidents(a.ctx, status, c.Session)
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(raw)
	}
	if len(list) == 0 {
		a.notef("no incidents")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSESSION\tKIND\tSTATUS\tAT\tMESSAGE\tACTIONS")
	for _, i := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i.ID, i.Session, i.Kind, i.Status, i.OccurredAt,
			short(strings.Join(strings.Fields(i.Message), " "), 60), strings.Join(i.Actions, " "))
		if i.Link != "" {
			fmt.Fprintf(w, "\t\t\t\t\t%s\t\n", i.Link)
		}
	}
	return rouse.Wrap("cli: print", w.Flush())
}

type incidentsAct struct {
	Incident string `arg:"" help:"The incident's id."`
	Action   string `arg:"" enum:"resume,fresh_start,continue_with,dismiss" help:"resume, fresh_start, continue_with or dismiss."`
	Model    string `short:"m" help:"continue_with: the model." placeholder:"PROVIDER/MODEL"`
	JSON     bool   `name:"json" help:"Print {incident, status, session, turn}."`
}

// Run acts and prints the session that the prompt went to.
func (c *incidentsAct) Run(a *app) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	session, _, raw, err := cl.Act(a.ctx, c.Incident, c.Action, c.Model)
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(raw)
	}
	if session == "" {
		a.notef("dismissed")
		return nil
	}
	_, err = fmt.Fprintln(a.out, session)
	return rouse.Wrap("cli: print", err)
}
