// Package masked holds secret values: however one is printed, logged or encoded,
// it says "(hidden)".
package masked
