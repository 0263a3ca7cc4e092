// Package diff compares objects as YAML, without fields that servers set and without the values of Secrets.
package diff
