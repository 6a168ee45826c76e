// Package diagnostics reads what an agent program writes to its standard error:
// which line proves that an attempt or a prompt failed, of which class the
// failure is, and what of it may be shown. All of it is pure: no clock, no
// input, no state but what the caller holds. What is not understood proves
// nothing, and is counted by its reason.
package diagnostics
