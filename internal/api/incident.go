package api

import (
	"context"

	"rouse"
	"rouse/internal/store"
)

// IncidentRow is what a person sees of a failure.
type IncidentRow struct {
	ID             string   `json:"id"`
	Session        string   `json:"session"`
	Turn           string   `json:"turn"`
	Generation     uint64   `json:"generation"`
	Kind           string   `json:"kind" doc:"provider_quota_limited, provider_auth, agent_error, interrupted …"`
	Source         string   `json:"source"`
	Provider       *string  `json:"provider" nullable:"true"`
	Model          *string  `json:"model" nullable:"true"`
	Message        *string  `json:"message" nullable:"true"`
	OccurredAt     *string  `json:"occurred_at" format:"date-time"`
	ResetAt        *string  `json:"reset_at" nullable:"true" format:"date-time"`
	RemediationURL *string  `json:"remediation_url" nullable:"true"`
	Status         string   `json:"status" enum:"open,resolved,superseded"`
	Actions        []string `json:"actions" doc:"What this server offers to do about it"`
}

func incidentRow(i *rouse.Incident) IncidentRow {
	return IncidentRow{ID: i.ID, Session: i.SessionID, Turn: i.TurnID, Generation: i.Generation, Kind: i.Kind, Source: i.Source, Provider: some(i.Provider),
		Model: some(i.Model), Message: some(i.Message), OccurredAt: stamp(i.OccurredAt), ResetAt: stamp(i.ResetAt), RemediationURL: some(i.RemediationURL),
		Status: i.Status, Actions: i.Actions()}
}

// IncidentsInput selects incidents.
type IncidentsInput struct {
	Status  string `query:"status" enum:"open,resolved,superseded" doc:"Only incidents in this status"`
	Session string `query:"session" doc:"Only incidents of this session"`
	Limit   int    `query:"limit" minimum:"0" maximum:"10000" doc:"Of the newest; 0 is 1000"`
}

// IncidentsOutput lists incidents, newest first.
type IncidentsOutput struct {
	Body struct {
		Incidents []IncidentRow `json:"incidents"`
	}
}

func (o *own) incidents(ctx context.Context, in *IncidentsInput) (*IncidentsOutput, error) {
	f := store.IncidentFilter{Session: in.Session, Status: in.Status, Limit: in.Limit}
	if f.Limit == 0 {
		f.Limit = 1000
	}
	list, err := o.Store.Incidents(ctx, f)
	if err != nil {
		return nil, err
	}
	out := &IncidentsOutput{}
	out.Body.Incidents = []IncidentRow{}
	for i := range list {
		out.Body.Incidents = append(out.Body.Incidents, incidentRow(&list[i]))
	}
	return out, nil
}

// IncidentInput names an incident.
type IncidentInput struct {
	ID string `path:"id"`
}

// IncidentOutput is one incident.
type IncidentOutput struct{ Body IncidentRow }

func (o *own) incident(ctx context.Context, in *IncidentInput) (*IncidentOutput, error) {
	i, err := o.Store.Incident(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &IncidentOutput{incidentRow(i)}, nil
}
