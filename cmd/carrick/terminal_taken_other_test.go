//go:build !linux

package main

func (p *terminal) taken() {}
