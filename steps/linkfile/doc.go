// Package linkfile reads and writes the file of a link: which guide, which two sides, and the answers. What is wrong in
// one is a [FileError] with file, line and key.
package linkfile
