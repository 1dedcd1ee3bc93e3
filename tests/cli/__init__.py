"""The `penstock` command as people and scripts meet it: a process with arguments, output and an exit code."""
