// Package livetest starts the sandbox program as carrick does, and tests it through its standard input and output. It
// uses the program that CARRICK_SANDBOX names, or builds one.
package livetest
