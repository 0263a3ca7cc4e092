// Package nearest finds the name that a user probably meant.
package nearest
