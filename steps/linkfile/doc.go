// Package linkfile reads and writes the file of a link: which guide, which two sides, and the answers. A [FileError]
// reports a fault with its file, line and key.
package linkfile
