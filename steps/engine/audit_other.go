//go:build !unix

package engine

const noFollow = 0
