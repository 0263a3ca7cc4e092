// Package diff compares objects as YAML, without fields that differ by
// themselves and without the values of Secrets.
package diff
