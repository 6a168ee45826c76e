package native

import (
	"encoding/json"
	"fmt"

	"rouse"
	"rouse/internal/engine"
)

var todoWriteTool = tool{
	name:        "todowrite",
	description: `Replaces the session's list of things to do. Use it for work of three steps and more; keep exactly one item in_progress and mark items completed as soon as they are.`,
	schema:      json.RawMessage(`{"type":"object","required":["todos"],"additionalProperties":false,"properties":{"todos":{"type":"array","items":{"type":"object","required":["content","status","priority"],"properties":{"content":{"type":"string","description":"What is to do"},"status":{"type":"string","enum":["pending","in_progress","completed","cancelled"]},"priority":{"type":"string","enum":["high","medium","low"]}}}}}}`),
	run:         runTodoWrite,
}

var todoReadTool = tool{
	name: "todoread", permission: "todowrite",
	description: "Gives the session's list of things to do.",
	schema:      schemaOf(),
	run:         runTodoRead,
}

func runTodoWrite(k *call) (result, error) {
	var in struct{ Todos []rouse.Todo }
	if err := k.decode(&in); err != nil {
		return result{}, err
	}
	if in.Todos == nil {
		return result{}, k.missing("todos")
	}
	for i := range in.Todos {
		d := &in.Todos[i]
		switch d.Status {
		case "pending", "in_progress", "completed", "cancelled":
		default:
			return result{}, toolError(fmt.Sprintf("The status %q of item %d is none of pending, in_progress, completed, cancelled.", rouse.Clip(d.Status, 40), i+1))
		}
		switch d.Priority {
		case "high", "medium", "low":
		case "":
			d.Priority = "medium"
		default:
			return result{}, toolError(fmt.Sprintf("The priority %q of item %d is none of high, medium, low.", rouse.Clip(d.Priority, 40), i+1))
		}
	}
	if err := k.permit(wish{permission: "todowrite", patterns: []string{"*"}, always: []string{"*"}}); err != nil {
		return result{}, err
	}
	k.running("", nil)
	k.t.send(engine.Plan{Todos: in.Todos}, true, 0)
	return todoResult(in.Todos), nil
}

func runTodoRead(k *call) (result, error) {
	k.running("", nil)
	todos, err := k.t.c.deps.Todos(k.ctx, k.t.p.SessionID)
	if err != nil {
		return result{}, toolError("The list could not be read.")
	}
	return todoResult(todos), nil
}

// todoResult shows a list; its title counts what is not done.
func todoResult(todos []rouse.Todo) result {
	open := 0
	for _, d := range todos {
		if d.Status != "completed" && d.Status != "cancelled" {
			open++
		}
	}
	if todos == nil {
		todos = []rouse.Todo{}
	}
	b, err := json.MarshalIndent(todos, "", "  ")
	if err != nil {
		b = []byte("[]")
	}
	return result{title: fmt.Sprintf("%d todos", open), output: string(b), metadata: map[string]any{"todos": todos, "truncated": false}}
}
