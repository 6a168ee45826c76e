package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"rouse"
	"rouse/internal/config"
	"rouse/internal/routing"
)

// WallRow is a usage limit that is known to stand.
type WallRow struct {
	ID         string      `json:"id"`
	Provider   string      `json:"provider"`
	Account    string      `json:"account"`
	LimitName  *string     `json:"limit_name" nullable:"true"`
	Model      *string     `json:"model" nullable:"true" doc:"A model or a family; null is the whole account"`
	Class      rouse.Class `json:"class"`
	State      string      `json:"state" enum:"open,half_open,closed"`
	Message    *string     `json:"message" nullable:"true"`
	OpenedAt   *string     `json:"opened_at" format:"date-time"`
	RefusedAt  *string     `json:"refused_at" format:"date-time" doc:"The last refusal"`
	Refusals   int         `json:"refusals"`
	ResetAt    *string     `json:"reset_at" nullable:"true" format:"date-time" doc:"As the provider said; null when it did not"`
	Confidence *string     `json:"confidence" nullable:"true" enum:"high,medium,low"`
	Source     *string     `json:"source" nullable:"true" doc:"Where the reset was read"`
	ProbeAt    *string     `json:"probe_at" nullable:"true" format:"date-time" doc:"When the next prompt may try it; null when only a person or a close by hand does"`
	ProbeTurn  *string     `json:"probe_turn" nullable:"true" doc:"The turn that tries it now"`
	ClosedAt   *string     `json:"closed_at" nullable:"true" format:"date-time"`
	ClosedBy   *string     `json:"closed_by" nullable:"true" doc:"A turn, hand, or superseded"`
	Held       []string    `json:"held" doc:"Sessions whose next prompt waits for it"`
}

func wallRow(w *rouse.Wall, now time.Time) *WallRow {
	return &WallRow{ID: w.ID, Provider: w.Provider, Account: w.Account, LimitName: some(w.LimitName), Model: some(w.Model), Class: w.Class,
		State: w.StateAt(now), Message: some(w.Message), OpenedAt: stamp(w.OpenedAt), RefusedAt: stamp(w.RefusedAt), Refusals: w.Refusals,
		ResetAt: stamp(w.ResetAt), Confidence: some(w.Confidence), Source: some(w.Source), ProbeAt: stamp(w.ProbeAt),
		ProbeTurn: some(w.ProbeTurn), ClosedAt: stamp(w.ClosedAt), ClosedBy: some(w.ClosedBy), Held: []string{}}
}

// WallsInput selects walls.
type WallsInput struct {
	All bool `query:"all" doc:"Closed ones too, the newest thousand in all"`
}

// WallsOutput lists walls, oldest first.
type WallsOutput struct {
	Body struct {
		Walls []*WallRow `json:"walls"`
	}
}

func (o *own) walls(ctx context.Context, in *WallsInput) (*WallsOutput, error) {
	const most = 1000
	list := func(ctx context.Context) ([]rouse.Wall, error) { return o.Store.Walls(ctx) }
	if in.All {
		list = func(ctx context.Context) ([]rouse.Wall, error) { return o.Store.AllWalls(ctx, most) }
	}
	walls, err := list(ctx)
	if err != nil {
		return nil, err
	}
	waiting, err := o.Store.Waiting(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	out := &WallsOutput{}
	out.Body.Walls = []*WallRow{}
	for i := range walls {
		row := wallRow(&walls[i], now)
		row.Held = held(&walls[i], waiting, now)
		out.Body.Walls = append(out.Body.Walls, row)
	}
	return out, nil
}

// held lists the sessions whose next prompt waits for a wall.
func held(w *rouse.Wall, waiting []rouse.Turn, now time.Time) []string {
	out := []string{}
	last := ""
	for i := range waiting {
		t := &waiting[i]
		if t.SessionID == last {
			continue
		}
		last = t.SessionID
		b := rouse.Bid{TurnID: t.ID, SessionID: t.SessionID, Model: t.Model, Unattended: t.Unattended, Behind: t.Behind, Force: t.Force}
		if routing.Decide(now, b, []rouse.Wall{*w}).Verdict == rouse.Hold {
			out = append(out, t.SessionID)
		}
	}
	return out
}

// WallInput names a wall.
type WallInput struct {
	ID string `path:"id"`
}

// WallOutput is one wall.
type WallOutput struct{ Body WallRow }

func (o *own) closeWall(ctx context.Context, in *WallInput) (*WallOutput, error) {
	w, err := o.Sessions.CloseWall(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &WallOutput{*wallRow(w, time.Now())}, nil
}

// standing is the wall that a fresh launch of a model would run into; nil when
// it may try.
func (o *own) standing(ctx context.Context, model rouse.ModelRef, now time.Time) (*rouse.Wall, error) {
	if model.IsZero() {
		return nil, nil
	}
	walls, err := o.Store.Walls(ctx)
	if err != nil {
		return nil, err
	}
	return routing.Decide(now, rouse.Bid{Model: model, Unattended: true}, walls).Wall, nil
}

// wallOpen is the body of a launch that a wall refuses.
type wallOpen struct {
	Name string `json:"name"`
	Data struct {
		Message string   `json:"message"`
		Wall    *WallRow `json:"wall"`
	} `json:"data"`
}

// admitLaunch refuses a launch that would run into a known wall, before
// anything is made.
func (o *own) admitLaunch(ctx context.Context, agent string, named rouse.ModelRef) error {
	now := time.Now()
	w, err := o.standing(ctx, o.Sessions.ModelOf(agent, named), now)
	if err != nil || w == nil {
		return err
	}
	return refusedByWall(w, now, "nothing was launched. Wait for it, use another model, or force it.")
}

// refusedByWall is the 409 of a wall; then says what did not happen and what to do.
func refusedByWall(w *rouse.Wall, now time.Time, then string) error {
	body := wallOpen{Name: "WallOpen"}
	body.Data.Message, body.Data.Wall = wallSentence(w, now)+"; "+then, wallRow(w, now)
	return &statusError{status: http.StatusConflict, body: body, text: body.Data.Message}
}

// wallSentence says what stands in the way and until when, if that is known.
func wallSentence(w *rouse.Wall, now time.Time) string {
	what := "usage limit"
	switch {
	case w.Class == rouse.ClassBilling:
		what = "billing limit"
	case w.LimitName != "":
		what = w.LimitName + " usage limit"
	}
	s := "The " + what + " of provider " + w.Provider
	if w.Model != "" {
		s += " for " + w.Model
	}
	switch {
	case w.StateAt(now) == rouse.WallIsHalf:
		return s + " is being tried by another prompt"
	case !w.ResetAt.IsZero():
		return s + " stands until " + *stamp(w.ResetAt)
	case w.Class == rouse.ClassBilling:
		return s + " stands until somebody settles it"
	}
	return s + " stands; the provider does not say until when"
}

// PreflightInput names a model as "provider/model"; empty is the default one.
type PreflightInput struct {
	Model string `query:"model"`
}

// PreflightOutput says whether the model can take work now.
type PreflightOutput struct {
	Body struct {
		Usable       bool     `json:"usable"`
		Model        *string  `json:"model" nullable:"true"`
		Reason       *string  `json:"reason" nullable:"true" enum:"unknown_model,not_connected,no_credentials,wall"`
		Message      *string  `json:"message" nullable:"true"`
		Wall         *WallRow `json:"wall" doc:"null unless a wall is the reason"`
		Until        *string  `json:"until" nullable:"true" format:"date-time" doc:"When capacity returns, as the provider said; null when it did not"`
		UsableModels []string `json:"usable_models"`
	}
}

func (o *own) preflight(ctx context.Context, in *PreflightInput) (*PreflightOutput, error) {
	c, now := o.Config(), time.Now()
	out := &PreflightOutput{}
	b := &out.Body
	walls, err := o.Store.Walls(ctx)
	if err != nil {
		return nil, err
	}
	b.UsableModels = usableNow(c, walls, now)
	ref, err := c.Default()
	if in.Model != "" {
		if ref, err = rouse.ParseModelRef(in.Model); err != nil {
			return nil, rouse.FieldError("preflight", "model", "%s", rouse.SafeMessage(err))
		}
	}
	b.Model = some(ref.String())
	if err == nil {
		_, err = c.Resolve(ref)
	}
	if err != nil {
		b.Reason, b.Message = some(unusable(c, ref)), some(rouse.SafeMessage(err))
		if *b.Reason == "no_credentials" {
			b.Message = some(noKey(c, ref.Provider))
		}
		return out, nil
	}
	w := routing.Decide(now, rouse.Bid{Model: ref, Unattended: true}, walls).Wall
	if b.Usable = w == nil; !b.Usable {
		b.Reason, b.Message, b.Wall, b.Until = some("wall"), some(wallSentence(w, now)+"."), wallRow(w, now), stamp(w.ResetAt)
	}
	return out, nil
}

// unusable names why a model that cannot be resolved takes no work.
func unusable(c *config.Config, ref rouse.ModelRef) string {
	p, ok := c.Provider(ref.Provider)
	known := slices.ContainsFunc(config.KnownProviders(), func(k config.Known) bool { return k.ID == ref.Provider })
	switch {
	case ok && p.NoKey, !ok && known:
		return "no_credentials"
	case !ok, p.Unusable != "":
		return "not_connected"
	}
	return "unknown_model"
}

// noKey says what a provider without a key wants: what else could be used is not
// the answer to that.
func noKey(c *config.Config, id string) string {
	if p, ok := c.Provider(id); ok {
		return "The provider " + id + " cannot be used: " + p.Unusable + "."
	}
	text := "The provider " + id + " has no key: run `rouse auth login " + id + "`"
	for _, k := range config.KnownProviders() {
		if k.ID == id && len(k.Env) > 0 {
			text += ", or set " + k.Env[0] + " for the server"
		}
	}
	return text + "."
}

// usableNow lists the models that can take work and are behind no wall.
func usableNow(c *config.Config, walls []rouse.Wall, now time.Time) []string {
	out := []string{}
	for _, name := range c.Usable() {
		ref, err := rouse.ParseModelRef(name)
		if err == nil && routing.Decide(now, rouse.Bid{Model: ref, Unattended: true}, walls).Verdict == rouse.Admit {
			out = append(out, name)
		}
	}
	return out
}
