// Package linkfile reads and writes the file of a link. It contains the guide, the two sides and the answers. A
// [FileError] reports a fault with its file, line and key.
package linkfile
