"""Processes killed, disks filled and torn, frames mutated. Short counts in `make test`, full ones in `make soak`."""
