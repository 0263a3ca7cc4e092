// Package nearest finds the name that was probably meant.
package nearest
