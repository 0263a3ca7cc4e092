// Package livetest tests the sandbox program through its standard input and output, the way carrick uses it. It runs
// the program in CARRICK_SANDBOX, or builds one if the variable is not set.
package livetest
