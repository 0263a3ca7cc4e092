// Package livetest starts the sandbox program as carrick does, and looks at
// what it runs from outside. The program is the one that CARRICK_SANDBOX
// names, else it is built first.
package livetest
