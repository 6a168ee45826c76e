package native

var listModelsTool = tool{
	name:        "list_models",
	description: "Lists the models that can be used now, as provider/model.",
	schema:      schemaOf(),
	run: func(k *call) (result, error) {
		k.running("", nil)
		text, err := k.t.c.deps.ListModels(k.ctx)
		if err != nil {
			return result{}, toolError("The models could not be listed.")
		}
		text, cut := clipText(text)
		return result{title: "Models", output: text, metadata: map[string]any{"truncated": cut}}, nil
	},
}
