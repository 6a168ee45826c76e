package config

import "rouse"

// base is what every agent may do before anything else is said: everything,
// except that leaving the directory and reading secrets is asked for. Only
// who talks to a person may put a question to one.
func base(questions bool) []rouse.PermissionRule {
	question := rouse.Deny
	if questions {
		question = rouse.Allow
	}
	return []rouse.PermissionRule{
		{Permission: "*", Pattern: "*", Action: rouse.Allow},
		{Permission: "external_directory", Pattern: "*", Action: rouse.Ask},
		{Permission: "question", Pattern: "*", Action: question},
		{Permission: "read", Pattern: "*.env", Action: rouse.Ask},
		{Permission: "read", Pattern: "*.env.*", Action: rouse.Ask},
		{Permission: "read", Pattern: "*.env.example", Action: rouse.Allow},
	}
}

func rule(permission string, action rouse.Action) rouse.PermissionRule {
	return rouse.PermissionRule{Permission: permission, Pattern: "*", Action: action}
}

// builtin makes the agents that are always there. Their names and modes are
// what OpenCode's clients expect from GET /agent (opencode 1.18.33), builder
// standing for its build and explorer for its explore.
func builtin() []*Agent {
	cold := 0.5
	nothing := []rouse.PermissionRule{rule("*", rouse.Deny)}
	return []*Agent{
		{
			Name: "builder", Mode: Primary, Native: true, Rules: base(true),
			Description: "Does the work: reads, changes and runs things as its permissions allow. The default.",
		},
		{
			Name: "plan", Mode: Primary, Native: true,
			Description: "Looks and plans; changes no file.",
			Prompt:      planPrompt,
			Rules:       append(base(true), rule("edit", rouse.Deny)),
		},
		{
			Name: "explorer", Mode: Subagent, Native: true,
			Description: "Finds its way in a codebase: which files there are, where something is used, how a part works. Changes nothing. Say how thorough it should be: quick, medium or very thorough.",
			Prompt:      explorerPrompt,
			Rules: append(base(false), rule("*", rouse.Deny), rule("grep", rouse.Allow), rule("glob", rouse.Allow),
				rule("list", rouse.Allow), rule("bash", rouse.Allow), rule("read", rouse.Allow),
				rule("external_directory", rouse.Ask), rule("edit", rouse.Deny)),
		},
		{
			Name: "worker", Mode: Subagent, Native: true, Rules: append(base(false), rule("todowrite", rouse.Deny)),
			Description: "Carries out one well-described piece of work, with all tools, and says what it did.",
			Prompt:      workerPrompt,
		},
		{
			Name: "general", Mode: Subagent, Native: true, Rules: append(base(false), rule("todowrite", rouse.Deny)),
			Description: "Answers a complex question or does several steps on its own; several of them can work at once.",
		},
		{Name: "compaction", Mode: Primary, Native: true, Hidden: true, Rules: append(base(false), nothing...), Prompt: compactionPrompt},
		{Name: "title", Mode: Primary, Native: true, Hidden: true, Rules: append(base(false), nothing...), Prompt: titlePrompt, Temperature: &cold},
		{Name: "summary", Mode: Primary, Native: true, Hidden: true, Rules: append(base(false), nothing...), Prompt: summaryPrompt},
	}
}

const planPrompt = `You are planning, not building. Read what you need, ask when something essential is open, and end with a plan:
the steps in order, the files each one touches, what could go wrong, how to see that it worked.
Do not change files and do not run commands that change anything, even when asked to go ahead: say that the plan is ready instead.`

const explorerPrompt = `You find things in a codebase for another agent. Search by name and by content, read what matters, follow the threads as far as the asked thoroughness says.
Change nothing: no files, and no commands with effects.
Answer with what you found: absolute paths with line numbers, the few lines of code that carry the answer, and what you looked for and did not find.`

const workerPrompt = `You carry out one task for another agent, which sees only your last message. Do the task completely and nothing beyond it.
Nobody can answer questions while you work. When something essential is missing, stop and say which decision is needed.
End with what you changed (paths), how you checked it, and what is left.`

const compactionPrompt = `You condense the conversation so far, so that another agent can go on with it and knows nothing else.
Write, each where it applies: the goal and the constraints in the person's own terms; decisions and their reasons; what is done, with paths, names and commands exactly as they were; what is in progress; what failed and why; the next steps.
Do not answer anything that was asked in the conversation, and do not address the person. Use the language of the conversation.`

const titlePrompt = `You name conversations. Answer with a title for the conversation that begins with the given message: one line, at most 50 characters, in the language of the message, without quotes or a full stop.
Keep names of files, functions, errors and tickets. Never answer the message itself.`

const summaryPrompt = `You say in two or three sentences what was done in the conversation, for somebody who was not there. Write as a note on the work, in the past tense; no questions, no advice.`
