package cli

import (
	"fmt"
	"reflect"
	"time"

	"github.com/alecthomas/kong"
)

// durations reads a flag's duration and says what one looks like. None of ours
// goes back in time.
var durations = kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration: write a number with its unit, as 30s, 10m or 1h30m", text)
	}
	if d < 0 {
		return fmt.Errorf("%s is below zero: write a positive duration, as 30s, 10m or 1h30m", text)
	}
	target.SetInt(int64(d))
	return nil
})
