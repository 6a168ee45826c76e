package api

import (
	"context"

	"rouse"
	"rouse/internal/config"
)

// Programs asks agent programs what they can do.
type Programs interface {
	// Report starts a program, opens a session in it and ends it again; that
	// takes seconds. NotFound for one that is not known.
	Report(ctx context.Context, name string) (rouse.ProgramReport, error)
	// Reports are the latest reports of this server, by name.
	Reports() map[string]rouse.ProgramReport
}

// ProgramRow is an agent program as `rouse agents` shows it.
type ProgramRow struct {
	Name  string `json:"name" doc:"As an agent is named"`
	Title string `json:"title"`
	// Provider is the id under which its models are named.
	Provider   string   `json:"provider_id"`
	Command    []string `json:"command"`
	Installed  bool     `json:"installed"`
	Configured bool     `json:"configured"`
	Package    string   `json:"package,omitempty"`
	Processes  string   `json:"processes" enum:"per-session,shared"`
	Unusable   string   `json:"unusable,omitempty"`
	// Report is what the last probe brought; absent before the first.
	Report *rouse.ProgramReport `json:"report,omitempty"`
}

// ProgramsOutput lists the agent programs.
type ProgramsOutput struct {
	Body struct {
		Programs []ProgramRow `json:"programs"`
	}
}

func (o *own) programs(context.Context, *struct{}) (*ProgramsOutput, error) {
	out := &ProgramsOutput{}
	out.Body.Programs = ProgramRows(o.Config(), o.Programs.Reports())
	return out, nil
}

// ProgramRows describes the programs of a configuration with what is known of
// them.
func ProgramRows(c *config.Config, reports map[string]rouse.ProgramReport) []ProgramRow {
	rows := make([]ProgramRow, 0, len(c.Programs))
	for _, p := range c.Programs {
		row := ProgramRow{Name: p.Name, Title: p.Title, Provider: p.ProviderID(), Command: p.Command, Installed: p.Path != "",
			Configured: p.Configured, Package: p.Package, Processes: "per-session", Unusable: p.Unusable()}
		if p.Shared {
			row.Processes = "shared"
		}
		if r, ok := reports[p.Name]; ok {
			row.Report = &r
		}
		rows = append(rows, row)
	}
	return rows
}

// ProgramInput names a program.
type ProgramInput struct {
	Name string `path:"name"`
}

// ProgramOutput is what a probe brought.
type ProgramOutput struct{ Body rouse.ProgramReport }

func (o *own) probeProgram(ctx context.Context, in *ProgramInput) (*ProgramOutput, error) {
	r, err := o.Programs.Report(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return &ProgramOutput{r}, nil
}
